/* 3-D acoustic wave propagation over MPI: what the parts of the program share.
 *
 * p_tt = v(x)^2 Laplacian(p) + source, eighth order in space, second order (leapfrog) in time, on
 * a uniform grid cut into boxes, one a rank. Grid and field order: x slowest, z (depth) fastest.
 * Every cell's arithmetic depends on its global position alone, so results are the same bits on
 * any number of ranks.
 */
#ifndef WAVE_H
#define WAVE_H

#include <mpi.h>
#include <stddef.h>

#ifndef WAVE_REAL
#define WAVE_REAL float
#endif
typedef WAVE_REAL real;
#define WAVE_MPI_REAL (sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE)
#define WAVE_SUFFIX (sizeof(real) == sizeof(float) ? "f32" : "f64")

enum {
  HALO = 4, /* layers of a face that a neighbour needs */
  PREFIX_LENGTH = 1024,
  PATH_LENGTH = PREFIX_LENGTH + 32,
  MESSAGE_LENGTH = PATH_LENGTH + 256
};

static inline char axis_name(int axis) { return (char)('x' + axis); }

/* ---- options.c ---- */

typedef struct {
  int grid[3];      /* cells */
  int split[3];     /* ranks in each direction, 0 where MPI chooses */
  double spacing;   /* m */
  double time_step; /* s; 0: 0.9 of the stability limit */
  int steps;
  double frequency;           /* Hz, the Ricker wavelet's peak; 0: from the slowest velocity */
  int source[3];              /* cell; -1: the middle in x and y, below the upper sponge in z */
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
  ptrdiff_t stride[3]; /* of arrays that have HALO cells more on every side */
  size_t padded;       /* elements of such an array */
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
  return (size_t)((i + HALO) * d->stride[0] + (j + HALO) * d->stride[1] + (k + HALO));
}

/* ---- model.c ---- */

typedef struct {
  double slowest, fastest; /* m/s, over the whole grid */
} VelocityRange;

/* Fills `velocity` (padded, m/s) from the file or the built-in model. Collective; returns 0, or -1
 * with `error` set alike on all ranks. */
int model_fill(const Domain* domain, const Options* options, real* velocity, VelocityRange* range,
               char* error, size_t error_size);

/* ---- halo.c ---- */

typedef struct {
  real *send[6], *receive[6]; /* packed faces: low and high of x, y, z */
  int count[6];               /* elements, 0 where there is no neighbour */
  MPI_Request requests[12];
} Halo;

void halo_create(const Domain* domain, Halo* halo);
void halo_free(Halo* halo);
/* Posts the exchange of the faces of `field`; halo_finish waits for it and fills the halo cells. */
void halo_start(const Domain* domain, Halo* halo, const real* field);
void halo_finish(const Domain* domain, Halo* halo, real* field);

/* ---- stencil.c ---- */

typedef struct {
  real* factor;     /* padded: (v dt / h)^2 */
  real* damping[3]; /* of each of this rank's cells along x, y, z */
} Medium;

void medium_create(const Domain* domain, const Options* options, const real* velocity,
                   double time_step, Medium* medium);
void medium_free(Medium* medium);
/* The largest stable v dt / h of the scheme. */
double stencil_courant_limit(void);
/* Replaces `old` by the next step in the local box [from, to). */
void stencil_step(const Domain* domain, const Medium* medium, const real* now, real* old,
                  const int from[3], const int to[3]);

/* ---- snapshot.c ---- */

/* Writes the cells of all ranks as one raw file of the whole grid. Collective; returns 0, or -1
 * with `error` set alike on all ranks. */
int snapshot_write(const Domain* domain, const real* field, const char* path, char* error,
                   size_t error_size);

#endif
