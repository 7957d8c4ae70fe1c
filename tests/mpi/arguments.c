/* Wrong arguments are MPI's to refuse, and a null buffer of no elements is right. With "threads"
 * under MPI_THREAD_MULTIPLE. */
#include "check.h"

enum { N = 40000 };
#define REFUSED(call) CHECK((call) != MPI_SUCCESS)

static int error_class(int code) {
  int result;
  MPI_Error_class(code, &result);
  return result;
}

static int handled = 0;

static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

/* A probe that is refused ends, also where a handler of the program's lets it pass. */
static void refused_probes(void) {
  MPI_Errhandler before, own;
  MPI_Message message;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_create_errhandler(handle, &own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Probe(999, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Mprobe(999, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  CHECK(handled == 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&own);
  MPI_Errhandler_free(&before);
}

/* A type is MPI's to refuse until it is committed, and then it is right at once. */
static void uncommitted_types(int rank) {
  static float out[N], in[2 * N];
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  MPI_Datatype run, gaps;
  MPI_Type_contiguous(N, MPI_FLOAT, &run);
  MPI_Type_vector(N, 1, 2, MPI_FLOAT, &gaps);
  CHECK(error_class(MPI_Send(out, 1, run, rank, 0, world)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Isend(out, 1, gaps, rank, 0, world, &request)) == MPI_ERR_TYPE);
#if !defined(OPEN_MPI) /* which looks at it when the request is started */
  CHECK(error_class(MPI_Ssend_init(out, 1, run, rank, 0, world, &request)) == MPI_ERR_TYPE);
#endif
  CHECK(error_class(MPI_Irecv(in, 1, gaps, rank, 0, world, &request)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Recv(in, 1, run, rank, 0, world, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Sendrecv_replace(in, 1, gaps, rank, 0, rank, 0, world,
                                         MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  MPI_Type_commit(&run);
  MPI_Type_commit(&gaps);
  fill_f32(out, N, 3);
  CHECK_MPI(MPI_Irecv(in, 1, gaps, rank, 0, world, &request));
  CHECK_MPI(MPI_Send(out, 1, run, rank, 0, world));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < N; ++i) out[i] = in[2 * i];
  CHECK(same_f32(out, N, 3));
  MPI_Type_free(&run);
  MPI_Type_free(&gaps);
}

/* Collective calls with an argument that is wrong on all ranks: nobody waits. */
static void refused_collectives(void) {
  enum { MOST = 4, EACH = N / MOST };
  static float out[N], in[N];
  const MPI_Comm world = MPI_COMM_WORLD;
  int size, counts[MOST], places[MOST];
  MPI_Datatype one;
  MPI_Comm_size(world, &size);
  CHECK(size <= MOST);
  for (int i = 0; i < size; ++i) counts[i] = EACH, places[i] = i * EACH;
  MPI_Type_contiguous(1, MPI_FLOAT, &one);
  CHECK(error_class(MPI_Bcast(out, N, one, 0, world)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Allgather(out, EACH, one, in, EACH, MPI_FLOAT, world)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Alltoall(out, EACH, one, in, EACH, MPI_FLOAT, world)) == MPI_ERR_TYPE);
  CHECK(error_class(MPI_Alltoall(out, -1, MPI_FLOAT, in, EACH, MPI_FLOAT, world)) == MPI_ERR_COUNT);
  counts[size - 1] = -1;
#if !defined(OPEN_MPI) /* which looks at no count of these */
  CHECK(error_class(MPI_Allgatherv(out, EACH, MPI_FLOAT, in, counts, places, MPI_FLOAT, world)) ==
        MPI_ERR_COUNT);
#endif
  CHECK(error_class(MPI_Alltoallv(out, counts, places, MPI_FLOAT, in, counts, places, MPI_FLOAT,
                                  world)) == MPI_ERR_COUNT);
  MPI_Type_free(&one);
  /* Later calls find each other. */
  fill_f32(out, N, 5);
  CHECK_MPI(MPI_Bcast(out, N, MPI_FLOAT, 0, world));
  CHECK(same_f32(out, N, 5));
}

int main(int argc, char** argv) {
  static float values[N], back[N];
  int rank, provided, index = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm world = MPI_COMM_WORLD;

  CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_FLOAT, rank, 0, NULL, 0, MPI_FLOAT, rank, 0, world, &status));
  CHECK_MPI(MPI_Isend(NULL, 0, MPI_FLOAT, rank, 0, world, &request));
  CHECK_MPI(MPI_Recv(NULL, 0, MPI_FLOAT, rank, 0, world, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));

  REFUSED(MPI_Send(NULL, N, MPI_FLOAT, rank, 0, world));
  REFUSED(MPI_Isend(NULL, N, MPI_FLOAT, rank, 0, world, &request));
  REFUSED(MPI_Recv(NULL, N, MPI_FLOAT, rank, 0, world, &status));
#if !defined(OPEN_MPI) /* which reads the buffer without a look at its address */
  REFUSED(MPI_Sendrecv_replace(NULL, N, MPI_FLOAT, rank, 0, rank, 0, world, &status));
#endif
  REFUSED(MPI_Send(values, N, MPI_FLOAT, 999, 0, world));
  REFUSED(MPI_Send(values, N, MPI_FLOAT, rank, -7, world));
  REFUSED(MPI_Send(values, -1, MPI_FLOAT, rank, 0, world));
  REFUSED(MPI_Send(values, N, MPI_DATATYPE_NULL, rank, 0, world));
  /* Its receive must not wait for a message that never comes, nor take a later one. */
  REFUSED(MPI_Sendrecv(values, N, MPI_FLOAT, 999, 0, back, N, MPI_FLOAT, rank, 0, world, &status));

  uncommitted_types(rank);
  refused_probes();
  refused_collectives();
  fill_f32(values, N, 1);
  CHECK_MPI(MPI_Irecv(back, N, MPI_FLOAT, rank, 0, world, &request));
  CHECK_MPI(MPI_Send(values, N, MPI_FLOAT, rank, 0, world));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(same_f32(back, N, 1));
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
