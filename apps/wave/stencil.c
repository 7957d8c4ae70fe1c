#include <math.h>
#include <stdlib.h>

#include "wave.h"

/* Central second difference of eighth order: weights of the cells at distance 0 to 4. */
static const double weights[HALO + 1] = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};

double stencil_courant_limit(void) {
  /* Leapfrog is stable while (v dt / h)^2 times the largest eigenvalue of the discrete Laplacian,
   * reached by the wave that alternates from cell to cell, is at most 4. */
  double eigenvalue = 0;
  for (int n = -HALO; n <= HALO; ++n) eigenvalue += fabs(weights[abs(n)]);
  return 2 / sqrt(3 * eigenvalue);
}

void medium_create(const Domain* d, const Options* o, const real* velocity, double time_step,
                   Medium* medium) {
  medium->factor = domain_array(d);
  double scale = time_step / o->spacing;
  for (size_t n = 0; n < d->padded; ++n)
    medium->factor[n] = (real)(scale * velocity[n] * (scale * velocity[n]));

  /* Sponge of Cerjan et al. (Geophysics 50, 1985): a factor exp(-(a depth)^2) at each step, with
   * the strength that they use for 20 cells scaled to other widths. */
  double strength = o->sponge ? 0.3 / o->sponge : 0;
  for (int axis = 0; axis < 3; ++axis) {
    medium->damping[axis] = malloc((size_t)d->cells[axis] * sizeof(real));
    if (!medium->damping[axis]) MPI_Abort(d->comm, 1);
    for (int i = 0; i < d->cells[axis]; ++i) {
      int at = d->first[axis] + i, far = d->grid[axis] - 1 - at;
      int depth = o->sponge - (at < far ? at : far);
      double argument = depth > 0 ? strength * depth : 0;
      medium->damping[axis][i] = (real)exp(-argument * argument);
    }
  }
}

void medium_free(Medium* medium) {
  free(medium->factor);
  for (int axis = 0; axis < 3; ++axis) free(medium->damping[axis]);
}

/* One row of cells along z. `old` is damped a second time here, as the sponge wants of both time
 * levels, so that the field at `now` need not be touched. */
static void step_row(const real* restrict now, real* restrict old, const real* restrict factor,
                     const real* restrict damping, real damping_xy, ptrdiff_t sx, ptrdiff_t sy,
                     int length) {
  const real w0 = (real)(3 * weights[0]), w1 = (real)weights[1], w2 = (real)weights[2],
             w3 = (real)weights[3], w4 = (real)weights[4];
  for (ptrdiff_t k = 0; k < length; ++k) {
    const real* p = now + k;
    real laplacian = w0 * p[0] + w1 * ((p[-1] + p[1]) + (p[-sy] + p[sy]) + (p[-sx] + p[sx])) +
                     w2 * ((p[-2] + p[2]) + (p[-2 * sy] + p[2 * sy]) + (p[-2 * sx] + p[2 * sx])) +
                     w3 * ((p[-3] + p[3]) + (p[-3 * sy] + p[3 * sy]) + (p[-3 * sx] + p[3 * sx])) +
                     w4 * ((p[-4] + p[4]) + (p[-4 * sy] + p[4 * sy]) + (p[-4 * sx] + p[4 * sx]));
    real damp = damping_xy * damping[k];
    old[k] = damp * (2 * p[0] - damp * old[k] + factor[k] * laplacian);
  }
}

void stencil_step(const Domain* d, const Medium* medium, const real* now, real* old,
                  const int from[3], const int to[3]) {
  if (to[2] <= from[2]) return;
  for (int i = from[0]; i < to[0]; ++i)
    for (int j = from[1]; j < to[1]; ++j) {
      size_t row = domain_at(d, i, j, from[2]);
      step_row(now + row, old + row, medium->factor + row, medium->damping[2] + from[2],
               medium->damping[0][i] * medium->damping[1][j], d->stride[0], d->stride[1],
               to[2] - from[2]);
    }
}
