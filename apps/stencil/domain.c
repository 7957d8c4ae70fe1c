#include <stdio.h>
#include <stdlib.h>

#include "stencil.h"

int domain_create(const Options* o, Domain* d, char* error) {
  int ranks, rank, position[AXES], axis = AXES - o->dims; /* the first that is cut */
  int periodic[AXES] = {o->is_periodic, o->is_periodic, o->is_periodic};
  *d = (Domain){.cart = MPI_COMM_NULL,
                .split = {1, 1, 1},
                .cells = {1, 1, 1},
                .low = {MPI_PROC_NULL, MPI_PROC_NULL, MPI_PROC_NULL},
                .high = {MPI_PROC_NULL, MPI_PROC_NULL, MPI_PROC_NULL},
                .wide = {1, 1, 1}};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int a = axis; a < AXES; ++a) d->split[a] = 0;
  MPI_Dims_create(ranks, o->dims, d->split + axis);
  for (int a = axis; a < AXES; ++a)
    if (o->grid[a] / d->split[a] < o->depth) {
      snprintf(error, MESSAGE_LENGTH,
               "--depth %d: of %d cells along %c the smallest of %d processes has %d, and sends no "
               "more",
               o->depth, o->grid[a], 'x' + a - axis, d->split[a], o->grid[a] / d->split[a]);
      return -1;
    }
  MPI_Cart_create(MPI_COMM_WORLD, o->dims, d->split + axis, periodic, 0, &d->cart);
  MPI_Comm_rank(d->cart, &rank);
  MPI_Cart_coords(d->cart, rank, o->dims, position + axis);
  for (int a = axis; a < AXES; ++a) {
    long long n = o->grid[a];
    MPI_Cart_shift(d->cart, a - axis, 1, &d->low[a], &d->high[a]);
    d->first[a] = (int)(n * position[a] / d->split[a]);
    d->cells[a] = (int)(n * (position[a] + 1) / d->split[a]) - d->first[a];
    d->halo[a] = o->depth;
    d->wide[a] = d->cells[a] + 2 * o->depth;
  }
  return 0;
}

void domain_free(Domain* d) { MPI_Comm_free(&d->cart); }

/* Is a cell in the ball around a point that is as far from the grid's middle along all axes?
 * Positions are odd around the middle, so that two opposite balls have as many cells. */
static int is_in_ball(const Options* o, const int at[AXES], double centre) {
  double squares = 0;
  for (int a = AXES - o->dims; a < AXES; ++a) {
    double x = (double)(2 * at[a] + 1 - o->grid[a]) / o->grid[a] - centre;
    squares += x * x;
  }
  return squares < 0.09;
}

/* A hot ball and one that is half as cold, or charges of opposite signs. */
static double value_at(const Options* o, const int at[AXES], double cold) {
  return is_in_ball(o, at, -0.4) ? 1 : is_in_ball(o, at, 0.4) ? cold : 0;
}

/* What holds beyond fixed borders: 1 before the first cells of x, else 0; -1 within the grid. */
static double border_at(const Options* o, const int at[AXES]) {
  int is_outside = 0;
  for (int a = 0; a < AXES; ++a) is_outside |= at[a] < 0 || at[a] >= o->grid[a];
  return !is_outside ? -1 : at[AXES - o->dims] < 0 ? 1 : 0;
}

/* An array with halos, either of the values or of the source. */
static double* fill(const Domain* d, const Options* o, int is_source) {
  double* array =
      malloc((size_t)d->wide[0] * (size_t)d->wide[1] * (size_t)d->wide[2] * sizeof *array);
  if (!array) {
    fprintf(stderr, "stencil: no memory for %dx%dx%d cells\n", d->wide[0], d->wide[1], d->wide[2]);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
  }
  for (int i = 0; i < d->wide[0]; ++i)
    for (int j = 0; j < d->wide[1]; ++j)
      for (int k = 0; k < d->wide[2]; ++k) {
        int local[AXES] = {i, j, k}, at[AXES];
        for (int a = 0; a < AXES; ++a) {
          at[a] = d->first[a] + local[a] - d->halo[a];
          if (o->is_periodic) at[a] = (at[a] + o->grid[a]) % o->grid[a];
        }
        double border = border_at(o, at);
        double* value = &array[domain_at(d, i, j, k)];
        if (is_source)
          *value = value_at(o, at, -1);
        else if (border >= 0)
          *value = border;
        else
          *value = o->is_jacobi ? 0 : value_at(o, at, -0.5);
      }
  return array;
}

double* domain_field(const Domain* d, const Options* o) { return fill(d, o, 0); }

double* domain_source(const Domain* d, const Options* o) { return fill(d, o, 1); }

int domain_write(const Domain* d, const Options* o, const double* field, char* error) {
  MPI_Datatype own, whole;
  MPI_Type_create_subarray(AXES, d->wide, d->cells, d->halo, MPI_ORDER_C, MPI_DOUBLE, &own);
  MPI_Type_create_subarray(AXES, o->grid, d->cells, d->first, MPI_ORDER_C, MPI_DOUBLE, &whole);
  MPI_Type_commit(&own);
  MPI_Type_commit(&whole);
  MPI_File file;
  int failed = MPI_File_open(d->cart, o->output, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                             &file) != MPI_SUCCESS;
  if (!failed) {
    failed |= MPI_File_set_size(file, 0) != MPI_SUCCESS;
    failed |= MPI_File_set_view(file, 0, MPI_DOUBLE, whole, "native", MPI_INFO_NULL) != MPI_SUCCESS;
    failed |= MPI_File_write_all(file, field, 1, own, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    failed |= MPI_File_close(&file) != MPI_SUCCESS;
  }
  MPI_Type_free(&own);
  MPI_Type_free(&whole);
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, d->cart);
  if (failed) snprintf(error, MESSAGE_LENGTH, "cannot write '%s'", o->output);
  return failed ? -1 : 0;
}
