#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "wave.h"

typedef struct {
  Options options;
  Domain domain;
  Problem problem;
  Solver* solver;
  Halo halo;
  double time_step, frequency;
} Simulation;

/* Ricker wavelet of unit peak, 1.5 periods after the start. */
static double ricker(double time, double frequency) {
  const double pi = 3.14159265358979323846;
  double argument = pi * (frequency * time - 1.5);
  argument *= argument;
  return (1 - 2 * argument) * exp(-argument);
}

static void advance(Simulation* s, double time) {
  Solver* solver = s->solver;
  solver->begin(solver); /* with it the solver has done with the halos of the step before */
  halo_receive(&s->domain, &s->problem, solver, &s->halo);
  halo_send(&s->domain, &s->problem, solver, &s->halo);
  solver->compute(solver);
  halo_wait(&s->halo);
  solver->end(solver, ricker(time, s->frequency));
}

/* Alike on all ranks: -1 where a rank has no solver, with the error of one of them. */
static int create_solver(Simulation* s, char* error, size_t error_size) {
  Domain* d = &s->domain;
  char reason[MESSAGE_LENGTH] = "no memory for its cells";
#ifdef WAVE_CUDA
  s->solver = s->options.on_gpu ? cuda_solver(&s->problem, d->host_rank, reason, sizeof reason)
                                : host_solver(&s->problem);
#else
  s->solver = host_solver(&s->problem);
#endif
  int failed = s->solver ? -1 : d->rank, first;
  MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MAX, d->comm);
  if (first < 0) return 0;
  MPI_Bcast(reason, sizeof reason, MPI_CHAR, first, d->comm);
  snprintf(error, error_size, "rank %d: %.*s", first, (int)error_size - 32, reason);
  if (s->solver) s->solver->free(s->solver);
  return -1;
}

static int prepare(Simulation* s, char* error, size_t error_size) {
  const Options* o = &s->options;
  VelocityRange range;
  if (domain_create(MPI_COMM_WORLD, o, &s->domain, error, error_size)) return -1;
  real* velocity = domain_array(&s->domain);
  int failed = model_fill(&s->domain, o, velocity, &range, error, error_size);
  if (!failed) {
    double limit = courant_limit() * o->spacing / range.fastest;
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
  if (!failed) {
    problem_create(&s->domain, o, velocity, s->time_step, &s->problem);
    failed = create_solver(s, error, error_size);
    if (failed) problem_free(&s->problem);
  }
  free(velocity);
  if (failed) {
    domain_free(&s->domain);
    return -1;
  }
  if (s->domain.rank == 0)
    printf(
        "wave: %dx%dx%d cells of %g m on %d ranks (%dx%dx%d), velocities %.0f to %.0f m/s, "
        "dt %.4g s, Ricker %.4g Hz\n",
        o->grid[0], o->grid[1], o->grid[2], o->spacing, s->domain.ranks, s->domain.split[0],
        s->domain.split[1], s->domain.split[2], range.slowest, range.fastest, s->time_step,
        s->frequency);
  return 0;
}

static void print_times(const Simulation* s, double stepping, double waited) {
  const Options* o = &s->options;
  double times[2] = {stepping, waited}, sums[2], slowest;
  MPI_Reduce(times, sums, 2, MPI_DOUBLE, MPI_SUM, 0, s->domain.comm);
  MPI_Reduce(&stepping, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, s->domain.comm);
  if (s->domain.rank != 0) return;
  int steps = o->steps - o->untimed;
  double cells = (double)o->grid[0] * o->grid[1] * o->grid[2];
  printf(
      "wave: %d steps in %.3f s, %.4f ms a step, %.2f steps/s, %.2f GFLOP/s, waiting for halos "
      "%.3f s a rank (%.0f %%)\n",
      steps, slowest, 1e3 * slowest / steps, steps / slowest,
      1e-9 * CELL_FLOPS * cells * steps / slowest, sums[1] / s->domain.ranks,
      100 * sums[1] / sums[0]);
}

static int simulate(Simulation* s, char* error, size_t error_size) {
  const Options* o = &s->options;
  Solver* solver = s->solver;
  double stepping = 0, waited = 0, start = MPI_Wtime();
  for (int step = 1; step <= o->steps; ++step) {
    advance(s, (step - 1) * s->time_step);
    int due =
        o->output[0] && (step == o->steps || (o->snapshot_every && step % o->snapshot_every == 0));
    if (!due && step != o->untimed && step != o->steps) continue;
    solver->finish(solver);
    if (step > o->untimed) {
      stepping += MPI_Wtime() - start;
      waited += solver->waited;
    }
    if (due) {
      char path[PATH_LENGTH];
      snprintf(path, sizeof path, "%s-%06d.%s", o->output, step, WAVE_SUFFIX);
      if (snapshot_write(&s->domain, solver->newest(solver), path, error, error_size)) return -1;
    }
    MPI_Barrier(s->domain.comm);
    if (step == o->untimed && s->domain.rank == 0) {
      puts("wave: the timed steps begin");
      fflush(stdout);
    }
    solver->restart(solver);
    start = MPI_Wtime();
  }
  print_times(s, stepping, waited);
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
    s.solver->free(s.solver);
    problem_free(&s.problem);
    domain_free(&s.domain);
  }
  if (failed && rank == 0) fprintf(stderr, "wave: %s\n", error);
  MPI_Finalize();
  return failed;
}
