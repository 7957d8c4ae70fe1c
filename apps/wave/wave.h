/* 3-D acoustic wave propagation over MPI: what the parts of the program share.
 *
 * p_tt = v(x)^2 Laplacian(p) + source, eighth order in space, second order (leapfrog) in time, on
 * a uniform grid cut into boxes, one a rank. Grid and field order: x slowest, z (depth) fastest.
 * Every cell's arithmetic depends on its global position alone, so results are the same bits on
 * any number of ranks, CPUs and GPUs.
 */
#ifndef WAVE_H
#define WAVE_H

#include <mpi.h>
#include <stddef.h>

#include "grid.h"

#define WAVE_MPI_REAL (sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE)
#define WAVE_SUFFIX (sizeof(real) == sizeof(float) ? "f32" : "f64")

enum { PREFIX_LENGTH = 1024, PATH_LENGTH = PREFIX_LENGTH + 32, MESSAGE_LENGTH = PATH_LENGTH + 256 };

static inline char axis_name(int axis) { return (char)('x' + axis); }

/* ---- options.c ---- */

typedef struct {
  int grid[3];      /* cells */
  int split[3];     /* ranks in each direction, 0 where MPI chooses */
  double spacing;   /* m */
  double time_step; /* s; 0: 0.9 of the stability limit */
  int steps;
  int untimed;                /* steps at the start that the times leave out */
  int on_gpu;                 /* fields in memory of a GPU, one a rank */
  double frequency;           /* Hz, the Ricker wavelet's peak; 0: from the slowest velocity */
  int source[3];              /* cell; -1: the middle in x and y, below the upper sponge in z */
  int shots[2];               /* sources in x and y, spread evenly at the source's depth */
  double amplitude;           /* Pa at a distance of 1 m */
  int sponge;                 /* cells */
  char model[PREFIX_LENGTH];  /* file of velocities; empty: the built-in model */
  int model_dims[3];          /* NX, NY (1: extruded along y), NZ */
  double model_scale;         /* factor that makes m/s of the file's values */
  char output[PREFIX_LENGTH]; /* prefix of snapshots; empty: none */
  int snapshot_every;         /* steps; 0: after the last step only */
} Options;

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

/* Fills `options` from the command line. On OPTIONS_WRONG `error` says what is wrong. */
int options_parse(int argc, char** argv, Options* options, char* error, size_t error_size);
const char* options_help(void);

/* ---- domain.c ---- */

typedef struct {
  MPI_Comm comm;
  int rank, ranks;
  int split[3];        /* ranks in each direction */
  int low[3], high[3]; /* neighbours, MPI_PROC_NULL at the edge of the grid */
  int grid[3];         /* cells of the whole grid */
  int first[3];        /* global position of this rank's first cell */
  int cells[3];        /* cells of this rank */
  Layout layout;       /* of its arrays */
  int host_rank;       /* among the ranks of this host */
} Domain;

/* Cuts the grid over the ranks of `world`. Collective; returns 0, or -1 with `error` set alike on
 * all ranks. */
int domain_create(MPI_Comm world, const Options* options, Domain* domain, char* error,
                  size_t error_size);
void domain_free(Domain* domain);
/* A zeroed padded array (release it with free); aborts the job where memory is short. */
real* domain_array(const Domain* domain);
/* Index of the local cell (i, j, k) in a padded array. */
static inline size_t domain_at(const Domain* d, int i, int j, int k) {
  return layout_at(&d->layout, i, j, k);
}
/* The rank beyond a side, or MPI_PROC_NULL. */
static inline int domain_neighbour(const Domain* d, int side) {
  return side % 2 ? d->high[side / 2] : d->low[side / 2];
}

/* ---- model.c ---- */

typedef struct {
  double slowest, fastest; /* m/s, over the whole grid */
} VelocityRange;

/* Fills `velocity` (padded, m/s) from the file or the built-in model. Collective; returns 0, or -1
 * with `error` set alike on all ranks. */
int model_fill(const Domain* domain, const Options* options, real* velocity, VelocityRange* range,
               char* error, size_t error_size);

/* ---- problem.c ---- */

/* What this rank's solver needs to know. Aborts the job where memory is short. */
void problem_create(const Domain* domain, const Options* options, const real* velocity,
                    double time_step, Problem* problem);
void problem_free(Problem* problem);
/* The largest stable v dt / h of the scheme. */
double courant_limit(void);

/* ---- halo.c ---- */

typedef struct {
  MPI_Request requests[2 * SIDES];
} Halo;

/* The faces travel straight from and to the solver's memory, the host's or a GPU's. */
void halo_receive(const Domain* domain, const Problem* problem, Solver* solver, Halo* halo);
void halo_send(const Domain* domain, const Problem* problem, Solver* solver, Halo* halo);
void halo_wait(Halo* halo);

/* ---- snapshot.c ---- */

/* Writes the cells of all ranks as one raw file of the whole grid. Collective; returns 0, or -1
 * with `error` set alike on all ranks. */
int snapshot_write(const Domain* domain, const real* field, const char* path, char* error,
                   size_t error_size);

#endif
