#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "wave.h"

typedef struct {
  Options options;
  Domain domain;
  Medium medium;
  Halo halo;
  real *now, *old;
  double time_step, frequency;
  double waited; /* s in the completion of halo exchanges */
} Simulation;

/* Ricker wavelet of unit peak, 1.5 periods after the start. */
static double ricker(double time, double frequency) {
  const double pi = 3.14159265358979323846;
  double argument = pi * (frequency * time - 1.5);
  argument *= argument;
  return (1 - 2 * argument) * exp(-argument);
}

static void add_source(Simulation* s, double time) {
  const Domain* d = &s->domain;
  int local[3];
  for (int axis = 0; axis < 3; ++axis) {
    local[axis] = s->options.source[axis] - d->first[axis];
    if (local[axis] < 0 || local[axis] >= d->cells[axis]) return;
  }
  /* A point source of 4 pi v^2 P(t) spread over one cell gives the pressure P / r at distance r. */
  const double pi = 3.14159265358979323846;
  size_t at = domain_at(d, local[0], local[1], local[2]);
  double strength = 4 * pi * s->medium.factor[at] * s->options.amplitude / s->options.spacing;
  s->old[at] += (real)(strength * ricker(time, s->frequency));
}

/* The cells that need no halo while it is on its way, then the shell around them. */
static void advance(Simulation* s, double time) {
  const Domain* d = &s->domain;
  int from[3], to[3];
  for (int axis = 0; axis < 3; ++axis) {
    from[axis] = d->low[axis] == MPI_PROC_NULL ? 0 : HALO;
    to[axis] = d->cells[axis] - (d->high[axis] == MPI_PROC_NULL ? 0 : HALO);
    if (to[axis] < from[axis]) to[axis] = from[axis];
  }
  halo_start(d, &s->halo, s->now);
  stencil_step(d, &s->medium, s->now, s->old, from, to);
  double start = MPI_Wtime();
  halo_finish(d, &s->halo, s->now);
  s->waited += MPI_Wtime() - start;

  int low[3] = {0, 0, 0}, high[3] = {d->cells[0], d->cells[1], d->cells[2]};
  for (int axis = 0; axis < 3; ++axis) {
    high[axis] = from[axis];
    stencil_step(d, &s->medium, s->now, s->old, low, high);
    low[axis] = to[axis];
    high[axis] = d->cells[axis];
    stencil_step(d, &s->medium, s->now, s->old, low, high);
    low[axis] = from[axis];
    high[axis] = to[axis];
  }
  add_source(s, time);
  real* next = s->old;
  s->old = s->now;
  s->now = next;
}

static int prepare(Simulation* s, char* error, size_t error_size) {
  const Options* o = &s->options;
  VelocityRange range;
  if (domain_create(MPI_COMM_WORLD, o, &s->domain, error, error_size)) return -1;
  real* velocity = domain_array(&s->domain);
  int failed = model_fill(&s->domain, o, velocity, &range, error, error_size);
  if (!failed) {
    double limit = stencil_courant_limit() * o->spacing / range.fastest;
    s->time_step = o->time_step > 0 ? o->time_step : 0.9 * limit;
    s->frequency = o->frequency > 0 ? o->frequency : range.slowest / (10 * o->spacing);
    if (s->time_step > limit) {
      snprintf(error, error_size,
               "a time step of %g s is unstable: with cells of %g m and "
               "velocities up to %g m/s it must not exceed %.6g s",
               s->time_step, o->spacing, range.fastest, limit);
      failed = -1;
    }
  }
  if (!failed && o->output[0]) {
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s-velocity.%s", o->output, WAVE_SUFFIX);
    failed = snapshot_write(&s->domain, velocity, path, error, error_size);
  }
  if (failed) {
    free(velocity);
    domain_free(&s->domain);
    return -1;
  }
  medium_create(&s->domain, o, velocity, s->time_step, &s->medium);
  free(velocity);
  halo_create(&s->domain, &s->halo);
  s->now = domain_array(&s->domain);
  s->old = domain_array(&s->domain);
  s->waited = 0;
  if (s->domain.rank == 0)
    printf(
        "wave: %dx%dx%d cells of %g m on %d ranks (%dx%dx%d), velocities %.0f to %.0f m/s, "
        "dt %.4g s, Ricker %.4g Hz\n",
        o->grid[0], o->grid[1], o->grid[2], o->spacing, s->domain.ranks, s->domain.split[0],
        s->domain.split[1], s->domain.split[2], range.slowest, range.fastest, s->time_step,
        s->frequency);
  return 0;
}

static int simulate(Simulation* s, char* error, size_t error_size) {
  const Options* o = &s->options;
  double stepping = 0;
  for (int step = 1; step <= o->steps; ++step) {
    double start = MPI_Wtime();
    advance(s, (step - 1) * s->time_step);
    stepping += MPI_Wtime() - start;
    int due = step == o->steps || (o->snapshot_every && step % o->snapshot_every == 0);
    if (o->output[0] && due) {
      char path[PATH_LENGTH];
      snprintf(path, sizeof path, "%s-%06d.%s", o->output, step, WAVE_SUFFIX);
      if (snapshot_write(&s->domain, s->now, path, error, error_size)) return -1;
    }
  }
  double times[2] = {stepping, s->waited}, sums[2], slowest;
  MPI_Reduce(times, sums, 2, MPI_DOUBLE, MPI_SUM, 0, s->domain.comm);
  MPI_Reduce(&stepping, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, s->domain.comm);
  if (s->domain.rank == 0)
    printf("wave: %d steps in %.3f s, %.2f steps/s, waiting for halos %.3f s a rank (%.0f %%)\n",
           o->steps, slowest, o->steps / slowest, sums[1] / s->domain.ranks,
           100 * sums[1] / sums[0]);
  return 0;
}

int main(int argc, char** argv) {
  Simulation s;
  char error[MESSAGE_LENGTH] = "";
  int rank, failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int what = options_parse(argc, argv, &s.options, error, sizeof error);
  if (what == OPTIONS_HELP) {
    if (rank == 0) fputs(options_help(), stdout);
  } else if (what == OPTIONS_WRONG || prepare(&s, error, sizeof error)) {
    failed = 1;
  } else {
    failed = simulate(&s, error, sizeof error) != 0;
    free(s.now);
    free(s.old);
    halo_free(&s.halo);
    medium_free(&s.medium);
    domain_free(&s.domain);
  }
  if (failed && rank == 0) fprintf(stderr, "wave: %s\n", error);
  MPI_Finalize();
  return failed;
}
