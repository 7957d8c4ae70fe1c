/* Sums within a relative bound, of memory on devices: one that is expected to go by the grid of the
 * last has the bits of one that looks for the range of its elements first, as those in place do.
 * Whether the devices were made to look is checked, too.
 *
 * reductions_expected: with MPRESS_CODEC=szp:rel=1e-3, MPRESS_THRESHOLD=0. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

static int rank, size, device;
static struct Memory in, out, again;

static void set(int is_f32, int i, double value) {
  if (is_f32) {
    ((float*)in.shadow)[i] = (float)value;
  } else {
    ((double*)in.shadow)[i] = value;
  }
}

/* Sums `count` elements of what lies in `in`, not in place and in place. How often did this rank's
 * device look for a range for the first? */
static size_t both(int count, int is_f32) {
  const MPI_Datatype type = is_f32 ? MPI_FLOAT : MPI_DOUBLE;
  const size_t bytes = (size_t)count * (is_f32 ? 4 : 8);
  put(&in);
  memcpy(again.shadow, in.shadow, in.bytes);
  put(&again);
  memset(out.shadow, 0x5a, out.bytes);
  put(&out);
  const size_t before = sim_range_calls();
  CHECK_MPI(MPI_Allreduce(in.data, out.data, count, type, MPI_SUM, MPI_COMM_WORLD));
  const size_t looked = sim_range_calls() - before;
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, again.data, count, type, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sim_range_calls() - before == looked + 1);
  get(&out);
  get(&again);
  CHECK(memcmp(out.shadow, again.shadow, bytes) == 0);
  get(&in);
  return looked;
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  device = rank % sim_devices;
  const int counts[] = {70001, 150000};
  const size_t bytes = (size_t)counts[1] * 8;
  in = memory_on(device, bytes);
  out = memory_on(device, bytes);
  again = memory_on(device, bytes);
  memset(in.shadow, 0, bytes);
  for (int is_f32 = 0; is_f32 < 2; ++is_f32) {
    for (int k = 0; k < 2; ++k) {
      const int count = counts[k];
      const struct {
        double scale; /* of all elements but rank 1's last */
        double last;  /* that one; 0: as the others */
        size_t looks; /* for the range first */
      } rounds[] = {
          {0.91, 0, 0},     {0.91, 0, 0},
          {0.911, 0, 0},    {0.912, 0, 0},
          {3, 0, 0},        /* made again */ {3, 0, 1},
          {3, 0, 0},        {3, 0, 0},
          {3, 7, 0},        /* made again */ {3, 7, 1},
          {3, 7, 0},        {3, 7, 0},
          {3, INFINITY, 0}, {3, NAN, 1},
          {3, NAN, 0},      {3, INFINITY, 0},
          {0, 0, 0},        /* no range */ {0, 0, 1},
          {1e-6, 0, 0},     {1e-6, 0, 1},
      };
      for (int warm = 0; warm < 6; ++warm) { /* until memory is open, and calls are expected */
        for (int i = 0; i < count; ++i) set(is_f32, i, 0.91 * wave_at(i + 1000 * rank));
        both(count, is_f32);
      }
      for (size_t r = 0; r < sizeof rounds / sizeof *rounds; ++r) {
        for (int i = 0; i < count; ++i) {
          const double value = rounds[r].scale * wave_at(i + 1000 * rank);
          set(is_f32, i,
              rank == 1 && i == count - 1 && rounds[r].last != 0 ? rounds[r].last : value);
        }
        CHECK(both(count, is_f32) == rounds[r].looks);
      }
    }
  }
  /* Sums of one size whose range changes at each call look ever more seldom before it is known, and
   * keep none of other sizes from that. */
  unsigned steady_looks = 0, changing_looks = 0;
  for (int round = 0; round < 40; ++round) {
    for (int k = 0; k < 2; ++k) {
      const double scale = k == 0 ? 0.91 : pow(1.1, round);
      for (int i = 0; i < counts[k]; ++i) set(1, i, scale * wave_at(i + 1000 * rank));
      *(k == 0 ? &steady_looks : &changing_looks) += (unsigned)both(counts[k], 1);
    }
  }
  CHECK(steady_looks <= 2 && changing_looks >= 34);
  drop(&in);
  drop(&out);
  drop(&again);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) printf("ok\n");
  return 0;
}
