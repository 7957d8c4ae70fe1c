/* Derived types: runs of floats in every layout, sent and received with different layouts of one
 * signature; gaps stay untouched. */
#include <complex.h>

#include "check.h"

enum { ROWS = 120, COLUMNS = 90, N = ROWS * COLUMNS };

static int rank, size, left, right;
static float grid[N], got[N], flat[N];

static float value(int owner, int i) { return (float)owner + 0.25f * (float)i; }

/* Sends one `type` from a full grid, receives it as another layout of as many floats. */
static void exchange(MPI_Datatype type, const int* places, int count) {
  MPI_Status status;
  int elements;
  for (int i = 0; i < N; ++i) grid[i] = value(rank, i), got[i] = -3, flat[i] = -3;
  /* scattered -> contiguous */
  CHECK_MPI(
      MPI_Sendrecv(grid, 1, type, right, 1, flat, N, MPI_FLOAT, left, 1, MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Get_elements(&status, MPI_FLOAT, &elements));
  CHECK(elements == count);
  for (int i = 0; i < count; ++i) CHECK(flat[i] == value(left, places[i]));
  for (int i = count; i < N; ++i) CHECK(flat[i] == -3);
  /* contiguous -> scattered */
  for (int i = 0; i < count; ++i) flat[i] = value(rank, i);
  CHECK_MPI(MPI_Sendrecv(flat, count, MPI_FLOAT, right, 2, got, 1, type, left, 2, MPI_COMM_WORLD,
                         &status));
  CHECK_MPI(MPI_Get_elements(&status, MPI_FLOAT, &elements));
  CHECK(elements == count);
  for (int i = 0; i < count; ++i) CHECK(got[places[i]] == value(left, i)), got[places[i]] = -3;
  for (int i = 0; i < N; ++i) CHECK(got[i] == -3);
  /* a shorter message fills only the first places */
  CHECK_MPI(MPI_Sendrecv(flat, count - 1, MPI_FLOAT, right, 3, got, 1, type, left, 3,
                         MPI_COMM_WORLD, &status));
  for (int i = 0; i < count - 1; ++i) CHECK(got[places[i]] == value(left, i)), got[places[i]] = -3;
  for (int i = 0; i < N; ++i) CHECK(got[i] == -3);
}

/* A type of absolute addresses, from MPI_BOTTOM. */
static void absolute(void) {
  const int halves[] = {N / 2, N / 4};
  MPI_Aint from[2], to[2];
  MPI_Datatype out, in;
  MPI_Get_address(grid, &from[0]);
  MPI_Get_address(flat, &from[1]);
  MPI_Get_address(got, &to[0]);
  MPI_Get_address(got + N / 2 + 1, &to[1]);
  MPI_Type_create_hindexed(2, halves, from, MPI_FLOAT, &out);
  MPI_Type_create_hindexed(2, halves, to, MPI_FLOAT, &in);
  MPI_Type_commit(&out);
  MPI_Type_commit(&in);
  for (int i = 0; i < N; ++i) grid[i] = value(rank, i), flat[i] = value(rank, 2 * i), got[i] = -3;
  CHECK_MPI(MPI_Sendrecv(MPI_BOTTOM, 1, out, right, 8, MPI_BOTTOM, 1, in, left, 8, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
  for (int i = 0; i < N / 2; ++i) CHECK(got[i] == value(left, i));
  for (int i = 0; i < N / 4; ++i) CHECK(got[N / 2 + 1 + i] == value(left, 2 * i));
  CHECK(got[N / 2] == -3 && got[N / 2 + 1 + N / 4] == -3);
  CHECK_MPI(MPI_Sendrecv_replace(MPI_BOTTOM, 1, in, right, 8, left, 8, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE));
  const int owner = (left + size - 1) % size;
  for (int i = 0; i < N / 2; ++i) CHECK(got[i] == value(owner, i));
  MPI_Type_free(&out);
  MPI_Type_free(&in);
}

int main(int argc, char** argv) {
  static int places[N];
  MPI_Datatype type, inner;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;

  MPI_Type_vector(ROWS, 30, COLUMNS, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < ROWS * 30; ++i) places[i] = i / 30 * COLUMNS + i % 30;
  exchange(type, places, ROWS * 30);
  MPI_Type_free(&type);

  const int sizes[] = {ROWS, COLUMNS}, part[] = {50, 40}, from[] = {10, 20};
  MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 2000; ++i) places[i] = (10 + i / 40) * COLUMNS + 20 + i % 40;
  exchange(type, places, 2000);
  MPI_Type_free(&type);

  /* Displacements that permute, though the whole has no gaps. */
  const int lengths[] = {N / 2, N / 2}, swapped[] = {N / 2, 0};
  MPI_Type_indexed(2, lengths, swapped, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < N; ++i) places[i] = (i + N / 2) % N;
  exchange(type, places, N);
  MPI_Type_free(&type);

  MPI_Type_contiguous(3, MPI_FLOAT, &inner);
  MPI_Type_create_resized(inner, 0, 5 * sizeof(float), &type);
  MPI_Type_free(&inner);
  MPI_Type_contiguous(1000, type, &inner);
  MPI_Type_free(&type);
  MPI_Type_commit(&inner);
  for (int i = 0; i < 3000; ++i) places[i] = i / 3 * 5 + i % 3;
  exchange(inner, places, 3000);
  MPI_Type_free(&inner);

  /* A type of two kinds of leaves is no run of floats, and travels all the same. */
  struct Mixed {
    double d;
    int i;
  } mixed[2000], other[2000];
  const int ones[] = {1, 1};
  const MPI_Aint offsets[] = {0, sizeof(double)};
  const MPI_Datatype kinds[] = {MPI_DOUBLE, MPI_INT};
  MPI_Type_create_struct(2, ones, offsets, kinds, &inner);
  MPI_Type_create_resized(inner, 0, sizeof(struct Mixed), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&inner);
  for (int i = 0; i < 2000; ++i) mixed[i] = (struct Mixed){rank + i, rank - i};
  CHECK_MPI(MPI_Sendrecv(mixed, 2000, type, right, 4, other, 2000, type, left, 4, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
  for (int i = 0; i < 2000; ++i) CHECK(other[i].d == left + i && other[i].i == left - i);
  MPI_Type_free(&type);

  /* Floats alone may be received with a type that begins with as many. */
  static struct Headed {
    float head[3000];
    int tail;
  } headed;
  const int head_lengths[] = {3000, 1};
  const MPI_Aint places_in_headed[] = {0, sizeof headed.head};
  const MPI_Datatype head_kinds[] = {MPI_FLOAT, MPI_INT};
  MPI_Status status;
  int received;
  MPI_Type_create_struct(2, head_lengths, places_in_headed, head_kinds, &type);
  MPI_Type_commit(&type);
  headed.tail = -1;
  fill_f32(grid, 3000, rank);
  CHECK_MPI(MPI_Sendrecv(grid, 3000, MPI_FLOAT, right, 7, &headed, 1, type, left, 7, MPI_COMM_WORLD,
                         &status));
  MPI_Get_count(&status, MPI_FLOAT, &received);
  CHECK(received == 3000 && same_f32(headed.head, 3000, left) && headed.tail == -1);
  MPI_Type_free(&type);

  static double complex z[4000], w[4000];
  for (int i = 0; i < 4000; ++i) z[i] = rank + 1e-3 * i + I * (1 + 1e-3 * i);
  CHECK_MPI(MPI_Sendrecv(z, 4000, MPI_C_DOUBLE_COMPLEX, right, 5, w, 4000, MPI_C_DOUBLE_COMPLEX,
                         left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int i = 0; i < 4000; ++i) CHECK(w[i] == left + 1e-3 * i + I * (1 + 1e-3 * i));

  absolute();

  /* Types are made and freed over and over: their handles are recycled. */
  for (int k = 0; k < 200; ++k) {
    MPI_Type_vector(ROWS, 1 + k % 40, COLUMNS, k % 3 ? MPI_FLOAT : MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < N; ++i) grid[i] = value(rank, i + k), got[i] = -3;
    CHECK_MPI(MPI_Sendrecv(grid, 1, type, right, 6, got, 1, type, left, 6, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
    for (int i = 0; i < N; ++i)
      CHECK(got[i] == (i % COLUMNS < 1 + k % 40 ? value(left, i + k) : -3));
    MPI_Type_free(&type);
  }
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
