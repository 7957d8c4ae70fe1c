#include <stdlib.h>

#include "stencil.h"

double stencil_weight(int points) { return points == 9 ? 20.0 / 6 : points - 1; }

/* Sums of the neighbours of a row's n cells, in the order of the axes; `row` and `plane` are the
 * distances of neighbours along the other axes. */
static void sum_5(const double* u, ptrdiff_t row, int n, double* sum) {
  for (int k = 0; k < n; ++k) sum[k] = (u[k - row] + u[k + row]) + (u[k - 1] + u[k + 1]);
}

static void sum_7(const double* u, ptrdiff_t plane, ptrdiff_t row, int n, double* sum) {
  for (int k = 0; k < n; ++k)
    sum[k] = ((u[k - plane] + u[k + plane]) + (u[k - row] + u[k + row])) + (u[k - 1] + u[k + 1]);
}

/* The Laplacian of nine points, whose error is the same in all directions: edges count four
 * times. */
static void sum_9(const double* u, ptrdiff_t row, int n, double* sum) {
  for (int k = 0; k < n; ++k) {
    double edges = (u[k - row] + u[k + row]) + (u[k - 1] + u[k + 1]);
    double corners = (u[k - row - 1] + u[k - row + 1]) + (u[k + row - 1] + u[k + row + 1]);
    sum[k] = (4 * edges + corners) * (1.0 / 6);
  }
}

void sweep(const Domain* d, const Options* o, int reach, const double* from, const double* source,
           double* to) {
  double weight = stencil_weight(o->points), rate = o->rate;
  ptrdiff_t row = d->wide[2], plane = row * d->wide[1];
  int begin[AXES], end[AXES];
  for (int a = 0; a < AXES; ++a) {
    begin[a] = d->halo[a] - (d->low[a] == MPI_PROC_NULL ? 0 : reach);
    end[a] = d->halo[a] + d->cells[a] + (d->high[a] == MPI_PROC_NULL ? 0 : reach);
  }
  int n = end[2] - begin[2];
  double* sum = malloc((size_t)n * sizeof *sum);
  if (!sum) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = begin[0]; i < end[0]; ++i)
    for (int j = begin[1]; j < end[1]; ++j) {
      size_t at = domain_at(d, i, j, begin[2]);
      const double *u = from + at, *s = source + at;
      if (o->points == 5)
        sum_5(u, row, n, sum);
      else if (o->points == 7)
        sum_7(u, plane, row, n, sum);
      else
        sum_9(u, row, n, sum);
      if (o->is_jacobi)
        for (int k = 0; k < n; ++k) to[at + (size_t)k] = (sum[k] + s[k]) / weight;
      else
        for (int k = 0; k < n; ++k) to[at + (size_t)k] = u[k] + rate * (sum[k] - weight * u[k]);
    }
  free(sum);
}
