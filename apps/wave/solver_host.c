#include <stdlib.h>
#include <time.h>

#include "grid.h"

typedef struct {
  Solver solver;
  const Problem* problem;
  real *now, *old;
  double idle_since;
} HostSolver;

static double clock_seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Copies a box between `field` and `packed`. */
static void copy_box(const Layout* layout, const Box* box, real* field, real* packed, int pack) {
  int length = box->to[2] - box->from[2];
  for (int i = box->from[0]; i < box->to[0]; ++i)
    for (int j = box->from[1]; j < box->to[1]; ++j) {
      real* row = field + layout_at(layout, i, j, box->from[2]);
      if (pack)
        for (int k = 0; k < length; ++k) packed[k] = row[k];
      else
        for (int k = 0; k < length; ++k) row[k] = packed[k];
      packed += length;
    }
}

/* One row of cells along z. */
static void step_row(const real* restrict now, real* restrict old, const real* restrict factor,
                     const real* restrict damping, real damping_xy, ptrdiff_t sx, ptrdiff_t sy,
                     int length) {
#define AROUND(n) cell_around(p[-n], p[n], p[-n * sy], p[n * sy], p[-n * sx], p[n * sx])
  for (ptrdiff_t k = 0; k < length; ++k) {
    const real* p = now + k;
    old[k] = cell_next(p[0], AROUND(1), AROUND(2), AROUND(3), AROUND(4), old[k], factor[k],
                       damping_xy * damping[k]);
  }
#undef AROUND
}

/* Replaces `old` by the next step in a box. */
static void step_box(HostSolver* s, const Box* box) {
  if (!box_cells(box)) return;
  const Layout* layout = &s->problem->layout;
  const Medium* medium = &s->problem->medium;
  for (int i = box->from[0]; i < box->to[0]; ++i)
    for (int j = box->from[1]; j < box->to[1]; ++j) {
      size_t row = layout_at(layout, i, j, box->from[2]);
      step_row(s->now + row, s->old + row, medium->factor + row, medium->damping[2] + box->from[2],
               medium->damping[0][i] * medium->damping[1][j], layout->stride[0], layout->stride[1],
               box->to[2] - box->from[2]);
    }
}

static void begin(Solver* solver) {
  HostSolver* s = (HostSolver*)solver;
  const Problem* p = s->problem;
  for (int side = 0; side < SIDES; ++side)
    if (solver->send[side])
      copy_box(&p->layout, &p->regions.face[side], s->now, solver->send[side], 1);
}

static void compute(Solver* solver) {
  HostSolver* s = (HostSolver*)solver;
  step_box(s, &s->problem->regions.interior);
  s->idle_since = clock_seconds();
}

static void end(Solver* solver, double wavelet) {
  HostSolver* s = (HostSolver*)solver;
  const Problem* p = s->problem;
  solver->waited += clock_seconds() - s->idle_since;
  for (int side = 0; side < SIDES; ++side)
    if (solver->receive[side])
      copy_box(&p->layout, &p->regions.halo[side], s->now, solver->receive[side], 0);
  for (int side = 0; side < SIDES; ++side) step_box(s, &p->regions.shell[side]);
  for (int n = 0; n < p->sources.count; ++n)
    s->old[p->sources.at[n]] += (real)(p->sources.strength[n] * wavelet);
  real* next = s->old;
  s->old = s->now;
  s->now = next;
}

static void finish(Solver* solver) { (void)solver; }

static void restart(Solver* solver) { solver->waited = 0; }

static const real* newest(Solver* solver) { return ((HostSolver*)solver)->now; }

static void release(Solver* solver) {
  HostSolver* s = (HostSolver*)solver;
  for (int side = 0; side < SIDES; ++side) {
    free(solver->send[side]);
    free(solver->receive[side]);
  }
  free(s->now);
  free(s->old);
  free(s);
}

Solver* host_solver(const Problem* problem) {
  HostSolver* s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->problem = problem;
  Solver* solver = &s->solver;
  solver->begin = begin;
  solver->compute = compute;
  solver->end = end;
  solver->finish = finish;
  solver->restart = restart;
  solver->newest = newest;
  solver->free = release;
  s->now = calloc(problem->layout.padded, sizeof(real));
  s->old = calloc(problem->layout.padded, sizeof(real));
  int complete = s->now && s->old;
  for (int side = 0; side < SIDES; ++side) {
    size_t cells = box_cells(&problem->regions.face[side]);
    if (!cells) continue;
    solver->send[side] = malloc(cells * sizeof(real));
    solver->receive[side] = malloc(cells * sizeof(real));
    complete = complete && solver->send[side] && solver->receive[side];
  }
  if (complete) return solver;
  release(solver);
  return NULL;
}
