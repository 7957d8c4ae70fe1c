/* Hints for mpress on communicators: what they are worth is in the report; here the messages must
 * be right, and what MPI_Comm_get_info tells is printed. Which ones is the argument. */
#include "check.h"

enum { N = 16384 };
static int rank, size, next, previous;
static float out[N], in[N];

static MPI_Info info_with(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  return info;
}

/* As near as the lossy codecs promise. */
static int near(const float* values, int seed) {
  for (int i = 0; i < N; ++i) {
    if (fabsf(values[i] - ((float)(seed + 1) + 1e-3f * (float)i)) > 1.1e-3f) return 0;
  }
  return 1;
}

/* One message to the next rank. */
static void send_on(MPI_Comm comm) {
  static int seed = 0;
  fill_f32(out, N, ++seed);
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, next, 3, in, N, MPI_FLOAT, previous, 3, comm,
                         MPI_STATUS_IGNORE));
  CHECK(near(in, seed));
}

/* "NAME: codec threshold", with "-" for what is not set. */
static void tell(const char* name, MPI_Comm comm) {
  const char* keys[] = {"mpress_codec", "mpress_threshold"};
  char values[2][64] = {"-", "-"};
  MPI_Info info;
  MPI_Comm_get_info(comm, &info);
  for (int i = 0; i < 2; ++i) {
    int flag;
    MPI_Info_get(info, keys[i], 63, values[i], &flag);
  }
  MPI_Info_free(&info);
  if (rank == 0) printf("%s: %s %s\n", name, values[0], values[1]);
}

static void use(const char* name, MPI_Comm* comm) {
  send_on(*comm);
  tell(name, *comm);
  MPI_Comm_free(comm);
}

static void inheritance(void) {
  MPI_Comm parent, child;
  MPI_Request request;
  MPI_Info zfp = info_with("mpress_codec", "zfp:16");
  MPI_Info large = info_with("mpress_threshold", "1M");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, zfp, &parent);
  send_on(parent);
  MPI_Comm_dup(parent, &child);
  MPI_Comm_set_info(parent, large); /* the duplicate keeps what it got */
  use("dup", &child);
  tell("parent", parent);
  MPI_Comm_idup(parent, &child, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use("idup", &child);
  MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &child);
  use("dup with nothing", &child);
  MPI_Comm_idup_with_info(parent, zfp, &child, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use("idup with zfp", &child);
  MPI_Comm_split(parent, 0, rank, &child);
  use("split", &child);
  tell("world", MPI_COMM_WORLD);
  MPI_Comm_free(&parent);
  MPI_Info_free(&zfp);
  MPI_Info_free(&large);
}

static void creation(void) {
  MPI_Comm comm;
  MPI_Group group;
  MPI_Info zfp = info_with("mpress_codec", "zfp:16");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, zfp, &comm);
  use("split_type", &comm);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
                                 MPI_UNWEIGHTED, zfp, 0, &comm);
  use("dist_graph_create_adjacent", &comm);
  const int one = 1;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, zfp, 0, &comm);
  use("dist_graph_create", &comm);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create_from_group(group, "mpress", zfp, MPI_ERRORS_ARE_FATAL, &comm);
  use("create_from_group", &comm);
  MPI_Group_free(&group);
  MPI_Info_free(&zfp);
}

/* Settings change between messages, and between starts of a persistent send. */
static void change(void) {
  const char* codecs[] = {"none", "zfp:16", "szp:abs=1e-3", "auto"};
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Ssend_init(out, N, MPI_FLOAT, next, 4, comm, &request);
  for (int i = 0; i < 4; ++i) {
    MPI_Info info = info_with("mpress_codec", codecs[i]);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    fill_f32(out, N, i);
    MPI_Start(&request);
    MPI_Recv(in, N, MPI_FLOAT, previous, 4, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(near(in, i));
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

/* Each rank another setting: frames tell receivers all they need. */
static void ranks_differ(void) {
  MPI_Comm comm;
  MPI_Info info = info_with("mpress_codec", rank % 2 ? "zfp:16" : "mpc:dim=1");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  use("dup", &comm);
  MPI_Info_free(&info);
}

static void chunk(const char* value) {
  MPI_Comm comm;
  MPI_Info info = info_with("mpress_chunk", value);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  send_on(comm);
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
}

static void tell_error(const char* call, int code) {
  int class;
  MPI_Error_class(code, &class);
  const char* text = "another error";
  if (class == MPI_SUCCESS) text = "no error";
  if (class == MPI_ERR_INFO_KEY) text = "MPI_ERR_INFO_KEY";
  if (class == MPI_ERR_INFO_VALUE) text = "MPI_ERR_INFO_VALUE";
  if (rank == 0) printf("%s: %s\n", call, text);
}

/* A wrong hint is the communicator's error, and changes nothing. */
static void wrong(const char* key, const char* value) {
  MPI_Comm comm, child;
  MPI_Group group;
  MPI_Info info = info_with(key, value);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  tell_error("set_info", MPI_Comm_set_info(comm, info));
  tell("after", comm);
  int code = MPI_Comm_dup_with_info(comm, info, &child);
  tell_error("dup_with_info", code);
  if (code == MPI_SUCCESS) MPI_Comm_free(&child);
  MPI_Comm_group(comm, &group);
  code = MPI_Comm_create_from_group(group, "mpress", info, MPI_ERRORS_RETURN, &child);
  tell_error("create_from_group", code);
  if (code == MPI_SUCCESS) MPI_Comm_free(&child);
  MPI_Group_free(&group);
  send_on(comm);
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  const char* part = argc > 1 ? argv[1] : "inheritance";
  if (!strcmp(part, "inheritance")) inheritance();
  if (!strcmp(part, "creation")) creation();
  if (!strcmp(part, "change")) change();
  if (!strcmp(part, "ranks_differ")) ranks_differ();
  if (!strcmp(part, "chunk")) chunk(argv[2]);
  if (!strcmp(part, "wrong")) wrong(argv[2], argv[3]);
  if (rank == 0) puts("ok");
  MPI_Finalize();
  return 0;
}
