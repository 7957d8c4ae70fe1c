/* Buffers in memory of devices, on either side of a message or both, in every call that sends or
 * receives: what arrives is right, statuses are, and what lies beside the data stays untouched. To
 * be run on two ranks and more; the argument "large" makes the largest messages 1.2 MB and more. */
#include <stddef.h>

#include "check.h"
#include "simulated_gpu.h"

/* Bytes behind a buffer that nobody may write to. */
enum { GUARD = 64, MARK = 0x5a };

/* Memory of the host or of a device, with a shadow on the host. */
struct Memory {
  int device; /* or -1 */
  size_t bytes;
  char* data;
  char* shadow;
};

static int rank, size, left, right;

static struct Memory memory_on(int device, size_t bytes) {
  struct Memory m = {device, bytes, NULL, malloc(bytes + GUARD)};
  m.data = device < 0 ? malloc(bytes + GUARD) : sim_malloc(device, bytes + GUARD);
  CHECK(m.data && m.shadow);
  memset(m.shadow, MARK, bytes + GUARD);
  return m;
}

static void put(struct Memory* m) {
  if (m->device < 0) {
    memcpy(m->data, m->shadow, m->bytes + GUARD);
  } else {
    sim_copy_in(m->data, m->shadow, m->bytes + GUARD);
  }
}

static void get(struct Memory* m) {
  if (m->device < 0) {
    memcpy(m->shadow, m->data, m->bytes + GUARD);
  } else {
    sim_copy_out(m->shadow, m->data, m->bytes + GUARD);
  }
}

static void drop(struct Memory* m) {
  if (m->device < 0) {
    free(m->data);
  } else {
    sim_free(m->data);
  }
  free(m->shadow);
}

/* What the two sides of a message are. */
struct Layout {
  const char* name;
  MPI_Datatype type;
  int unit; /* bytes of a leaf */
};

static struct Layout layouts[12];
static int layout_count;

static void add_layout(const char* name, MPI_Datatype type, int unit, int commit) {
  if (commit) CHECK_MPI(MPI_Type_commit(&type));
  layouts[layout_count++] = (struct Layout){name, type, unit};
}

static void make_layouts(void) {
  MPI_Datatype type, inner;
  add_layout("float", MPI_FLOAT, 4, 0);
  add_layout("double", MPI_DOUBLE, 8, 0);
  add_layout("int", MPI_INT, 4, 0);
  add_layout("byte", MPI_BYTE, 1, 0);
  MPI_Type_vector(6, 2, 3, MPI_FLOAT, &type);
  add_layout("vector", type, 4, 1);
  const int sizes[] = {5, 6, 7}, parts[] = {3, 4, 5}, starts[] = {1, 2, 1};
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  add_layout("subarray", type, 8, 1);
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_FLOAT, &type);
  add_layout("fortran subarray", type, 4, 1);
  const int lengths[] = {2, 1, 3}, displacements[] = {7, 0, 3};
  MPI_Type_indexed(3, lengths, displacements, MPI_INT, &type);
  add_layout("indexed", type, 4, 1);
  const MPI_Aint offsets[] = {8, 40, 0};
  const int one_each[] = {2, 1, 1};
  const MPI_Datatype kinds[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
  MPI_Type_create_struct(3, one_each, offsets, kinds, &type);
  add_layout("struct", type, 1, 1);
  MPI_Type_vector(2, 1, 2, MPI_SHORT_INT, &inner);
  MPI_Type_create_resized(inner, 0, 40, &type);
  MPI_Type_free(&inner);
  add_layout("short_int", type, 2, 1);
  const int gsizes[] = {9, 8}, distribution[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
            arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 1};
  MPI_Type_create_darray(2, 1, 2, gsizes, distribution, arguments, grid, MPI_ORDER_C, MPI_FLOAT,
                         &type);
  add_layout("darray", type, 4, 1);
}

static size_t span_of(const struct Layout* layout, int count) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(layout->type, &lb, &extent);
  return (size_t)(extent * count + 64);
}

/* The message packed by MPI itself. */
static char* pack(const struct Layout* layout, int count, const char* data, int* bytes) {
  int room;
  MPI_Pack_size(count, layout->type, MPI_COMM_WORLD, &room);
  char* packed = malloc((size_t)room + 1);
  *bytes = 0;
  MPI_Pack((void*)data, count, layout->type, packed, room, bytes, MPI_COMM_WORLD);
  return packed;
}

static void fill(struct Memory* m, const struct Layout* layout, int seed) {
  if (layout->unit == 4) {
    fill_f32((float*)m->shadow, m->bytes / 4, seed);
  } else if (layout->unit == 8) {
    for (size_t i = 0; i < m->bytes / 8; ++i) ((double*)m->shadow)[i] = (double)(i % 977) + seed;
  } else {
    for (size_t i = 0; i < m->bytes; ++i) m->shadow[i] = (char)(i * 7 + (size_t)seed);
  }
  put(m);
}

/* Did the data of `sent`, packed, arrive in `got`, and nothing else change? */
static void check_arrival(const struct Layout* layout, int count, const struct Memory* sent,
                          struct Memory* got) {
  get(got);
  int bytes, same_bytes;
  char* expected = malloc(got->bytes + GUARD);
  char* packed = pack(layout, count, sent->shadow, &bytes);
  memset(expected, MARK, got->bytes + GUARD);
  same_bytes = 0;
  MPI_Unpack(packed, bytes, &same_bytes, expected, count, layout->type, MPI_COMM_WORLD);
  if (memcmp(expected, got->shadow, got->bytes + GUARD) != 0) {
    size_t at = 0;
    while (expected[at] == got->shadow[at]) ++at;
    fprintf(stderr, "%s x %d: byte %zu of %zu is %d, not %d\n", layout->name, count, at, got->bytes,
            got->shadow[at], expected[at]);
  }
  CHECK(memcmp(expected, got->shadow, got->bytes + GUARD) == 0);
  free(packed);
  free(expected);
}

static void check_status(const struct Layout* layout, int count, const MPI_Status* status,
                         int tag) {
  int got;
  CHECK(status->MPI_SOURCE == left && status->MPI_TAG == tag);
  CHECK_MPI(MPI_Get_count(status, layout->type, &got));
  CHECK(got == count);
}

enum { WAYS = 13 };

/* One message round the ring, in one of the ways there are. */
static void exchange(int way, const struct Layout* layout, int count, int from, int to) {
  const MPI_Datatype type = layout->type;
  const MPI_Comm comm = MPI_COMM_WORLD;
  const int tag = way;
  struct Memory out = memory_on(from, span_of(layout, count));
  struct Memory in = memory_on(to, span_of(layout, count));
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  MPI_Message message;
  char* attached = NULL;
  int attached_bytes;
  fill(&out, layout, rank + 1);
  put(&in);
  switch (way) {
    case 0:
    case 1:
    case 2:
      CHECK_MPI(MPI_Irecv(in.data, count, type, left, tag, comm, &requests[0]));
      if (way == 0) CHECK_MPI(MPI_Send(out.data, count, type, right, tag, comm));
      if (way == 1) CHECK_MPI(MPI_Ssend(out.data, count, type, right, tag, comm));
      MPI_Barrier(comm);
      if (way == 2) CHECK_MPI(MPI_Rsend(out.data, count, type, right, tag, comm));
      CHECK_MPI(MPI_Wait(&requests[0], &statuses[0]));
      break;
    case 3:
      CHECK_MPI(MPI_Irecv(in.data, count, type, MPI_ANY_SOURCE, tag, comm, &requests[0]));
      CHECK_MPI(MPI_Isend(out.data, count, type, right, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Waitall(2, requests, statuses));
      break;
    case 4:
      CHECK_MPI(MPI_Issend(out.data, count, type, right, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Recv(in.data, count, type, left, MPI_ANY_TAG, comm, &statuses[0]));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      break;
    case 5:
      CHECK_MPI(MPI_Sendrecv(out.data, count, type, right, tag, in.data, count, type, left, tag,
                             comm, &statuses[0]));
      break;
    case 6: /* the data of `out` travels in `in`'s place */
      memcpy(in.shadow, out.shadow, out.bytes);
      put(&in);
      CHECK_MPI(
          MPI_Sendrecv_replace(in.data, count, type, right, tag, left, tag, comm, &statuses[0]));
      break;
    case 7:
      MPI_Pack_size(count, type, comm, &attached_bytes);
      attached_bytes += MPI_BSEND_OVERHEAD + 4096;
      attached = malloc((size_t)attached_bytes);
      MPI_Buffer_attach(attached, attached_bytes);
      CHECK_MPI(MPI_Bsend(out.data, count, type, right, tag, comm));
      CHECK_MPI(MPI_Recv(in.data, count, type, left, tag, comm, &statuses[0]));
      MPI_Buffer_detach(&attached, &attached_bytes);
      free(attached);
      break;
    case 8:
    case 9:
      CHECK_MPI(MPI_Isend(out.data, count, type, right, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Mprobe(left, tag, comm, &message, &statuses[0]));
      check_status(layout, count, &statuses[0], tag);
      if (way == 8) CHECK_MPI(MPI_Mrecv(in.data, count, type, &message, &statuses[0]));
      if (way == 9) CHECK_MPI(MPI_Imrecv(in.data, count, type, &message, &requests[0]));
      CHECK_MPI(MPI_Wait(&requests[0], way == 9 ? &statuses[0] : MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      break;
    case 10:
      CHECK_MPI(MPI_Isend(out.data, count, type, right, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Probe(MPI_ANY_SOURCE, tag, comm, &statuses[0]));
      check_status(layout, count, &statuses[0], tag);
      CHECK_MPI(MPI_Recv(in.data, count, type, left, tag, comm, &statuses[0]));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      break;
    case 11:
      CHECK_MPI(MPI_Send_init(out.data, count, type, right, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Recv_init(in.data, count, type, left, tag, comm, &requests[0]));
      for (int round = 0; round < 3; ++round) {
        fill(&out, layout, rank + 10 * round);
        CHECK_MPI(MPI_Startall(2, requests));
        CHECK_MPI(MPI_Waitall(2, requests, statuses));
      }
      CHECK_MPI(MPI_Request_free(&requests[0]));
      CHECK_MPI(MPI_Request_free(&requests[1]));
      break;
    case 12: /* larger room than the message needs, found complete by tests */
      CHECK_MPI(MPI_Irecv(in.data, count, type, left, tag, comm, &requests[0]));
      CHECK_MPI(MPI_Isend(out.data, count, type, right, tag, comm, &requests[1]));
      for (int done = 0; !done;) CHECK_MPI(MPI_Testall(2, requests, &done, statuses));
      break;
  }
  if (count > 0 || way != 8) check_status(layout, count, &statuses[0], tag);
  struct Memory from_left = memory_on(-1, out.bytes);
  fill(&from_left, layout, left + (way == 11 ? 20 : 1));
  if (way == 6) {
    get(&in);
    int bytes, place = 0;
    char* packed = pack(layout, count, from_left.shadow, &bytes);
    char* expected = malloc(in.bytes + GUARD);
    memset(expected, MARK, in.bytes + GUARD);
    memcpy(expected, out.shadow, out.bytes);
    MPI_Unpack(packed, bytes, &place, expected, count, type, comm);
    CHECK(memcmp(expected, in.shadow, in.bytes + GUARD) == 0);
    free(packed);
    free(expected);
  } else {
    check_arrival(layout, count, &from_left, &in);
  }
  drop(&from_left);
  drop(&out);
  drop(&in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  make_layouts();
  static const int places[][2] = {{0, 1}, {0, -1}, {-1, 1}, {1, 1}};
  /* The last but one is for all types. Of types with gaps, it is 12 to 480 KB of data. */
  const int is_large = argc > 1 && strcmp(argv[1], "large") == 0;
  const int counts[] = {0, 1, 5, 42, is_large ? 3001 : 1001, is_large ? 150001 : 20001};
  for (int l = 0; l < layout_count; ++l) {
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
      if (l >= 4 && c == 5) continue;
      for (int way = 0; way < WAYS; ++way) {
        const int* place = places[(way + l + (int)c) % 4];
        exchange(way, &layouts[l], counts[c], place[0], place[1]);
      }
    }
  }
  for (int l = 4; l < layout_count; ++l) MPI_Type_free(&layouts[l].type);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
