#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wave.h"

/* One column of velocities, m/s, at relative positions in [0, 1]: water, gently folded sediments,
 * basement, and a salt body that has risen through them: a wide head on a narrow stem. */
static void builtin_column(const Domain* d, double x, double y, real* column) {
  static const double tops[] = {0.22, 0.38, 0.54, 0.70, 0.86};
  static const double speeds[] = {1500, 1900, 2300, 2700, 3200, 3800};
  const double pi = 3.14159265358979323846;
  double folded[5];
  for (int n = 0; n < 5; ++n)
    folded[n] = tops[n] + (n == 0 ? 0
                                  : 0.012 * n * sin(2 * pi * (1.3 * x + 0.2 * n)) +
                                        0.006 * n * cos(2 * pi * (0.9 * y + 0.3 * n)));
  double u = x - 0.42, v = y - 0.50;
  double head = u * u / (0.20 * 0.20) + v * v / (0.22 * 0.22);
  for (int k = 0; k < d->cells[2]; ++k) {
    double z = (d->first[2] + k + 0.5) / d->grid[2], w = z - 0.50;
    double stem = 0.05 + 0.15 * (z - 0.55) * (z > 0.55 ? 1 : 0);
    int layer = 0;
    for (int n = 0; n < 5; ++n)
      if (z >= folded[n]) layer = n + 1;
    int salt = head + w * w / (0.11 * 0.11) < 1 || (w > 0 && u * u + v * v < stem * stem);
    column[k] = (real)(salt ? 4480 : speeds[layer]);
  }
}

/* The two samples around the relative position of cell i of n, and the weight of the second. */
static void bracket(int i, int n, int samples, int* below, int* above, double* weight) {
  double at = n > 1 ? (double)i * (samples - 1) / (n - 1) : 0;
  *below = (int)at < samples - 1 ? (int)at : samples - 1;
  *above = *below + 1 < samples ? *below + 1 : *below;
  *weight = at - *below;
}

/* Trilinear interpolation of a model that spans the whole grid. */
static void resample(const Domain* d, const float* samples, const int dims[3], double scale,
                     real* velocity) {
  for (int i = 0; i < d->cells[0]; ++i)
    for (int j = 0; j < d->cells[1]; ++j)
      for (int k = 0; k < d->cells[2]; ++k) {
        int at[3][2];
        double w[3];
        bracket(d->first[0] + i, d->grid[0], dims[0], &at[0][0], &at[0][1], &w[0]);
        bracket(d->first[1] + j, d->grid[1], dims[1], &at[1][0], &at[1][1], &w[1]);
        bracket(d->first[2] + k, d->grid[2], dims[2], &at[2][0], &at[2][1], &w[2]);
        double sum = 0;
        for (int corner = 0; corner < 8; ++corner) {
          int a = corner >> 2, b = corner >> 1 & 1, c = corner & 1;
          size_t sample = ((size_t)at[0][a] * dims[1] + at[1][b]) * dims[2] + at[2][c];
          sum += (a ? w[0] : 1 - w[0]) * (b ? w[1] : 1 - w[1]) * (c ? w[2] : 1 - w[2]) *
                 samples[sample];
        }
        velocity[domain_at(d, i, j, k)] = (real)(scale * sum);
      }
}

/* Rank 0's part: the file's values, or NULL with `error` set. */
static float* read_file(const Options* o, size_t count, char* error, size_t error_size) {
  FILE* file = fopen(o->model, "rb");
  if (!file) {
    snprintf(error, error_size, "cannot open model '%s': %s", o->model, strerror(errno));
    return NULL;
  }
  float* samples = malloc(count * sizeof(float) + 1);
  size_t bytes = samples ? fread(samples, 1, count * sizeof(float) + 1, file) : 0;
  fclose(file);
  if (!samples)
    snprintf(error, error_size, "no memory for the model's %zu values", count);
  else if (bytes != count * sizeof(float)) {
    snprintf(error, error_size, "model '%s' holds %s than the %zu bytes of %dx%dx%d f32 values",
             o->model, bytes < count * sizeof(float) ? "less" : "more", count * sizeof(float),
             o->model_dims[0], o->model_dims[1], o->model_dims[2]);
    free(samples);
    samples = NULL;
  }
  return samples;
}

static int fill_from_file(const Domain* d, const Options* o, real* velocity, char* error,
                          size_t error_size) {
  enum { PIECE = 1 << 20 };
  size_t count = (size_t)o->model_dims[0] * (size_t)o->model_dims[1] * (size_t)o->model_dims[2];
  float* samples =
      d->rank == 0 ? read_file(o, count, error, error_size) : malloc(count * sizeof(float));
  int missing = !samples;
  MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, d->comm);
  if (missing) {
    if (d->rank == 0 && samples)
      snprintf(error, error_size, "a rank has no memory for the model's %zu values", count);
    MPI_Bcast(error, (int)error_size, MPI_CHAR, 0, d->comm);
    free(samples);
    return -1;
  }
  for (size_t done = 0; done < count; done += PIECE) {
    size_t piece = count - done < PIECE ? count - done : PIECE;
    MPI_Bcast(samples + done, (int)piece, MPI_FLOAT, 0, d->comm);
  }
  resample(d, samples, o->model_dims, o->model_scale, velocity);
  free(samples);
  return 0;
}

int model_fill(const Domain* d, const Options* o, real* velocity, VelocityRange* range, char* error,
               size_t error_size) {
  if (o->model[0]) {
    if (fill_from_file(d, o, velocity, error, error_size)) return -1;
  } else {
    for (int i = 0; i < d->cells[0]; ++i)
      for (int j = 0; j < d->cells[1]; ++j)
        builtin_column(d, (d->first[0] + i + 0.5) / d->grid[0],
                       (d->first[1] + j + 0.5) / d->grid[1], velocity + domain_at(d, i, j, 0));
  }

  double extremes[2] = {-INFINITY, -INFINITY}; /* of -v and v, so that one maximum serves both */
  for (int i = 0; i < d->cells[0]; ++i)
    for (int j = 0; j < d->cells[1]; ++j) {
      const real* column = velocity + domain_at(d, i, j, 0);
      for (int k = 0; k < d->cells[2]; ++k) {
        /* A NaN is caught below: a maximum would pass over it. */
        double v = column[k] == column[k] ? column[k] : INFINITY;
        extremes[0] = extremes[0] > -v ? extremes[0] : -v;
        extremes[1] = extremes[1] > v ? extremes[1] : v;
      }
    }
  MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_DOUBLE, MPI_MAX, d->comm);
  range->slowest = -extremes[0];
  range->fastest = extremes[1];
  if (!(range->slowest >= 100 && range->fastest <= 20000)) {
    snprintf(error, error_size, "velocities from %g to %g m/s are not those of a rock or fluid%s",
             range->slowest, range->fastest,
             o->model[0] ? "; check --model-dims, the byte order, and --model-scale (1000 for km/s)"
                         : "");
    return -1;
  }
  return 0;
}
