#include <math.h>
#include <stdlib.h>

#include "wave.h"

double courant_limit(void) {
  /* Leapfrog is stable while (v dt / h)^2 times the largest eigenvalue of the discrete Laplacian,
   * reached by the wave that alternates from cell to cell, is at most 4. */
  double eigenvalue = fabs(WAVE_WEIGHT_0) + 2 * (fabs(WAVE_WEIGHT_1) + fabs(WAVE_WEIGHT_2) +
                                                 fabs(WAVE_WEIGHT_3) + fabs(WAVE_WEIGHT_4));
  return 2 / sqrt(3 * eigenvalue);
}

static void* allocate(const Domain* d, size_t bytes) {
  void* memory = malloc(bytes + 1);
  if (!memory) MPI_Abort(d->comm, 1);
  return memory;
}

static void find_regions(const Domain* d, Regions* regions) {
  Box all = {{0, 0, 0}, {d->cells[0], d->cells[1], d->cells[2]}};
  Box left = all; /* what no shell has taken yet */
  for (int side = 0; side < SIDES; ++side) {
    int along = side / 2, high = side % 2, n = d->cells[along];
    Box none = {{0, 0, 0}, {0, 0, 0}};
    regions->shell[side] = regions->face[side] = regions->halo[side] = none;
    if (domain_neighbour(d, side) == MPI_PROC_NULL) continue;
    Box face = all, halo = all, shell = left;
    face.from[along] = high ? n - HALO : 0;
    face.to[along] = face.from[along] + HALO;
    halo.from[along] = high ? n : -HALO;
    halo.to[along] = halo.from[along] + HALO;
    /* Where a rank has fewer cells than two shells, the low one has taken some of the high one's.
     */
    int border = high ? n - HALO : HALO;
    if (border < left.from[along]) border = left.from[along];
    if (high)
      shell.from[along] = left.to[along] = border;
    else
      shell.to[along] = left.from[along] = border;
    regions->face[side] = face;
    regions->halo[side] = halo;
    regions->shell[side] = shell;
  }
  regions->interior = left;
}

static void find_medium(const Domain* d, const Options* o, const real* velocity, double time_step,
                        Medium* medium) {
  double scale = time_step / o->spacing;
  medium->factor = allocate(d, d->layout.padded * sizeof(real));
  for (size_t n = 0; n < d->layout.padded; ++n)
    medium->factor[n] = (real)(scale * velocity[n] * (scale * velocity[n]));

  /* Sponge of Cerjan et al. (Geophysics 50, 1985): a factor exp(-(a depth)^2) at each step, with
   * the strength that they use for 20 cells scaled to other widths. */
  double strength = o->sponge ? 0.3 / o->sponge : 0;
  for (int axis = 0; axis < 3; ++axis) {
    medium->damping[axis] = allocate(d, (size_t)d->cells[axis] * sizeof(real));
    for (int i = 0; i < d->cells[axis]; ++i) {
      int at = d->first[axis] + i, far = d->grid[axis] - 1 - at;
      int depth = o->sponge - (at < far ? at : far);
      double argument = depth > 0 ? strength * depth : 0;
      medium->damping[axis][i] = (real)exp(-argument * argument);
    }
  }
}

/* Index in padded arrays of a cell of the grid, or 0 where it is another rank's. */
static size_t own_cell(const Domain* d, int x, int y, int z) {
  int local[3] = {x - d->first[0], y - d->first[1], z - d->first[2]};
  for (int axis = 0; axis < 3; ++axis)
    if (local[axis] < 0 || local[axis] >= d->cells[axis]) return 0;
  return domain_at(d, local[0], local[1], local[2]);
}

static void find_sources(const Domain* d, const Options* o, const Medium* medium,
                         Sources* sources) {
  const double pi = 3.14159265358979323846;
  size_t most = (size_t)o->shots[0] * (size_t)o->shots[1];
  sources->count = 0;
  sources->at = allocate(d, most * sizeof *sources->at);
  sources->strength = allocate(d, most * sizeof *sources->strength);
  for (int i = 0; i < o->shots[0]; ++i)
    for (int j = 0; j < o->shots[1]; ++j) {
      int x = (int)((2LL * i + 1) * d->grid[0] / (2LL * o->shots[0]));
      int y = (int)((2LL * j + 1) * d->grid[1] / (2LL * o->shots[1]));
      size_t at = most > 1 ? own_cell(d, x, y, o->source[2])
                           : own_cell(d, o->source[0], o->source[1], o->source[2]);
      if (!at) continue;
      /* A point source of 4 pi v^2 P(t) spread over one cell gives the pressure P / r at r. */
      sources->at[sources->count] = at;
      sources->strength[sources->count++] = 4 * pi * medium->factor[at] * o->amplitude / o->spacing;
    }
}

void problem_create(const Domain* d, const Options* o, const real* velocity, double time_step,
                    Problem* problem) {
  for (int axis = 0; axis < 3; ++axis) problem->cells[axis] = d->cells[axis];
  problem->layout = d->layout;
  find_regions(d, &problem->regions);
  find_medium(d, o, velocity, time_step, &problem->medium);
  find_sources(d, o, &problem->medium, &problem->sources);
}

void problem_free(Problem* problem) {
  free(problem->medium.factor);
  for (int axis = 0; axis < 3; ++axis) free(problem->medium.damping[axis]);
  free(problem->sources.at);
  free(problem->sources.strength);
}
