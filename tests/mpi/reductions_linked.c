/* Reductions of data that lies on devices of one host, as it is: all sizes, forms and operations;
 * now and then a member has memory of the host, so that all have to go otherwise. All values and
 * sums are integers, but for the last calls: there the order of the ranks tells.
 *
 * reductions_linked SEED CALLS [held]: the third, where it can be told what mpress holds. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { most_bytes = 3 << 19, most_ranks = 16, under_way = 4 };

static int rank, size;
static unsigned long long state;

/* The same numbers on all ranks. */
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % below;
}

/* A call, as all ranks know it. */
struct Call {
  int kind; /* of MPI_Allreduce, Reduce, Reduce_scatter, Reduce_scatter_block */
  int is_f64, is_complex, root, in_place, host_rank;
  MPI_Op op;
  int count; /* of what each rank brings, in items */
  int counts[most_ranks];
  struct Memory send, receive;
  MPI_Request request;
};

static double brought(const struct Call* call, int by, size_t i, double scale) {
  const double x = (double)((i * 7 + (size_t)by * 13 + (size_t)call->count) % 101) - 50;
  if (call->op == MPI_PROD) return ldexp(x < 0 ? -1 : 1, (int)fabs(x) % 8); /* exact */
  return scale * x;
}

static size_t items(const struct Call* call) { return call->is_complex ? 2 : 1; }
static size_t width(const struct Call* call) { return call->is_f64 ? 8 : 4; }

static MPI_Datatype type_of(const struct Call* call) {
  if (call->is_complex) return call->is_f64 ? MPI_C_DOUBLE_COMPLEX : MPI_C_FLOAT_COMPLEX;
  return call->is_f64 ? MPI_DOUBLE : MPI_FLOAT;
}

static double element(const struct Call* call, const char* memory, size_t i) {
  return call->is_f64 ? ((const double*)memory)[i] : (double)((const float*)memory)[i];
}

static void set_element(const struct Call* call, char* memory, size_t i, double value) {
  if (call->is_f64) {
    ((double*)memory)[i] = value;
  } else {
    ((float*)memory)[i] = (float)value;
  }
}

static struct Call draw_call(void) {
  struct Call call;
  memset(&call, 0, sizeof call);
  call.kind = (int)draw(4);
  call.is_f64 = draw(2) == 0;
  const MPI_Op others[] = {MPI_MIN, MPI_MAX, MPI_PROD};
  call.op = draw(3) > 0 ? MPI_SUM : others[draw(3)];
  call.is_complex = call.op == MPI_SUM && draw(4) == 0;
  call.root = (int)draw((unsigned)size);
  call.in_place = draw(3) == 0;
  call.host_rank = draw(6) == 0 ? (int)draw((unsigned)size) : -1;
  const size_t item = width(&call) * items(&call);
  const unsigned bytes = draw(3) == 0 ? draw(most_bytes) : draw(3) ? draw(200000) : draw(3000);
  call.count = (int)(bytes / item);
  if (call.kind == 3) call.count = call.count / size * size;
  for (int left = call.count, r = 0; r < size; ++r) {
    const int own = call.kind == 3  ? call.count / size
                    : r == size - 1 ? left
                    : draw(4) == 0  ? 0
                                    : (int)draw((unsigned)left + 1);
    call.counts[r] = own;
    left -= own;
  }
  return call;
}

static void fill(struct Call* call, double scale) {
  const int device = rank == call->host_rank ? -1 : rank % sim_devices;
  const size_t bytes = (size_t)call->count * items(call) * width(call) + 64;
  call->send = memory_on(device, bytes);
  call->receive = memory_on(device, bytes);
  struct Memory* const from = call->in_place ? &call->receive : &call->send;
  for (size_t i = 0; i < (size_t)call->count * items(call); ++i) {
    set_element(call, from->shadow, i, brought(call, rank, i, scale));
  }
  put(&call->send);
  put(&call->receive);
}

static void begin(struct Call* call, int is_blocking) {
  const MPI_Datatype type = type_of(call);
  const int is_reduce = call->kind == 1;
  const void* send = call->send.data;
  void* const receive = call->receive.data;
  if (call->in_place) send = is_reduce && rank != call->root ? receive : MPI_IN_PLACE;
  call->request = MPI_REQUEST_NULL;
  MPI_Request* const request = &call->request;
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (call->kind) {
    case 0:
      CHECK_MPI(is_blocking
                    ? MPI_Allreduce(send, receive, call->count, type, call->op, comm)
                    : MPI_Iallreduce(send, receive, call->count, type, call->op, comm, request));
      break;
    case 1:
      CHECK_MPI(
          is_blocking
              ? MPI_Reduce(send, receive, call->count, type, call->op, call->root, comm)
              : MPI_Ireduce(send, receive, call->count, type, call->op, call->root, comm, request));
      break;
    case 2:
      CHECK_MPI(is_blocking ? MPI_Reduce_scatter(send, receive, call->counts, type, call->op, comm)
                            : MPI_Ireduce_scatter(send, receive, call->counts, type, call->op, comm,
                                                  request));
      break;
    default:
      CHECK_MPI(is_blocking
                    ? MPI_Reduce_scatter_block(send, receive, call->counts[0], type, call->op, comm)
                    : MPI_Ireduce_scatter_block(send, receive, call->counts[0], type, call->op,
                                                comm, request));
  }
}

static void check_and_drop(struct Call* call, double scale) {
  size_t first = 0, count = (size_t)call->count;
  if (call->kind >= 2) {
    for (int r = 0; r < rank; ++r) first += (size_t)call->counts[r];
    count = (size_t)call->counts[rank];
  }
  if (call->kind == 1 && rank != call->root) count = 0;
  get(&call->receive);
  for (size_t i = 0; i < count * items(call); ++i) {
    const size_t at = first * items(call) + i;
    double expected = 0;
    for (int r = 0; r < size; ++r) {
      double one = brought(call, r, at, scale);
      if (!call->is_f64) one = (double)(float)one;
      if (r == 0 || (call->op == MPI_MIN && one < expected) ||
          (call->op == MPI_MAX && one > expected)) {
        expected = one;
      } else if (call->op == MPI_SUM) {
        expected = call->is_f64 ? expected + one : (double)((float)expected + (float)one);
      } else if (call->op == MPI_PROD) {
        expected = call->is_f64 ? expected * one : (double)((float)expected * (float)one);
      }
    }
    CHECK(element(call, call->receive.shadow, i) == expected);
  }
  drop(&call->send);
  drop(&call->receive);
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  CHECK(argc > 2 && size <= most_ranks);
  state = strtoull(argv[1], NULL, 10);
  for (int left = atoi(argv[2]); left > 0;) {
    struct Call calls[under_way];
    const int number = (int)draw(under_way) + 1;
    const int is_blocking = draw(2) == 0;
    for (int i = 0; i < number; ++i) {
      calls[i] = draw_call();
      /* MPICH 5.0's own copies overlap there. */
      if (calls[i].kind == 2 && !is_blocking) calls[i].in_place = 0;
      fill(&calls[i], 1);
      begin(&calls[i], is_blocking);
    }
    for (int i = 0; i < number; ++i) CHECK_MPI(MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE));
    for (int i = 0; i < number; ++i) check_and_drop(&calls[i], 1);
    left -= number;
  }
  /* A member that wants nothing lets go of what the others brought, too. */
  size_t held = 0;
  for (int i = 0; i < 24; ++i) {
    struct Call call = draw_call();
    call.kind = 2;
    call.is_f64 = call.is_complex = call.in_place = 0;
    call.host_rank = -1;
    call.count = 100000;
    memset(call.counts, 0, sizeof call.counts);
    call.counts[0] = call.count;
    fill(&call, 1);
    begin(&call, 1);
    check_and_drop(&call, 1);
    if (i == 12 && argc > 3) held = sim_held(rank % sim_devices);
  }
  CHECK(argc <= 3 || sim_held(rank % sim_devices) == held);
  for (int bytes = 600000; bytes <= 6000000; bytes *= 10) {
    struct Call call = draw_call();
    call.kind = 0;
    call.op = MPI_SUM;
    call.is_f64 = call.is_complex = call.in_place = 0;
    call.host_rank = -1;
    call.count = bytes / 4;
    fill(&call, 0.1);
    begin(&call, 1);
    check_and_drop(&call, 0.1);
  }
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
