/* apps/wave's solver on a GPU where there is none: fields on the host, packed faces in memory of a
 * simulated device, which MPI and the program cannot touch. */
#include <stdio.h>
#include <stdlib.h>

#include "grid.h"
#include "simulated_gpu.h"

typedef struct {
  Solver solver;
  const Problem* problem;
  Solver* host;
} SimulatedSolver;

static size_t face_bytes(const SimulatedSolver* s, int side) {
  return box_cells(&s->problem->regions.face[side]) * sizeof(real);
}

static void begin(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  s->host->begin(s->host);
  for (int side = 0; side < SIDES; ++side)
    if (solver->send[side])
      sim_copy_in(solver->send[side], s->host->send[side], face_bytes(s, side));
}

static void compute(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  s->host->compute(s->host);
}

static void end(Solver* solver, double wavelet) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  for (int side = 0; side < SIDES; ++side)
    if (solver->receive[side])
      sim_copy_out(s->host->receive[side], solver->receive[side], face_bytes(s, side));
  s->host->end(s->host, wavelet);
}

static void finish(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  s->host->finish(s->host);
  solver->waited = s->host->waited;
}

static void restart(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  s->host->restart(s->host);
}

static const real* newest(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  return s->host->newest(s->host);
}

static void release(Solver* solver) {
  SimulatedSolver* s = (SimulatedSolver*)solver;
  for (int side = 0; side < SIDES; ++side) {
    if (!solver->send[side]) continue;
    sim_free(solver->send[side]);
    sim_free(solver->receive[side]);
  }
  s->host->free(s->host);
  free(s);
}

Solver* cuda_solver(const Problem* problem, int number, char* error, size_t error_size) {
  if (getenv("SIMULATED_GPU_NONE")) {
    snprintf(error, error_size, "--device cuda: no GPU was found");
    return NULL;
  }
  SimulatedSolver* s = calloc(1, sizeof *s);
  s->problem = problem;
  s->host = host_solver(problem);
  s->solver = (Solver){.begin = begin,
                       .compute = compute,
                       .end = end,
                       .finish = finish,
                       .restart = restart,
                       .newest = newest,
                       .free = release};
  for (int side = 0; side < SIDES; ++side) {
    if (!face_bytes(s, side)) continue;
    s->solver.send[side] = sim_malloc(number % sim_devices, face_bytes(s, side));
    s->solver.receive[side] = sim_malloc(number % sim_devices, face_bytes(s, side));
  }
  return &s->solver;
}
