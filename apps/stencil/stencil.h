/* Heat and Poisson's equation on a grid over MPI, with deep halos: what the parts share.
 *
 * A process has a box of cells, and `depth` cells of halo around it. After an exchange it computes
 * as many steps as the halo is deep, on a region that shrinks by a cell a step: cells near borders
 * are computed by several processes. The grid has three axes; in 2-D axis 0 is one cell wide.
 *
 * A cell's arithmetic depends on its neighbours' values alone, so results have the same bits for
 * any depth and any number of processes.
 */
#ifndef STENCIL_H
#define STENCIL_H

#include <mpress/iso.h>
#include <stddef.h>

enum { AXES = 3, MOST_NEIGHBOURS = 26, MESSAGE_LENGTH = 512 };

/* ---- options.c ---- */

typedef struct {
  int is_jacobi;   /* else heat */
  int points;      /* of the stencil: 5, 9 (2-D), 7 (3-D) */
  int dims;        /* 2 or 3 */
  int grid[AXES];  /* cells */
  int is_periodic; /* else borders are fixed */
  int depth;       /* cells of halo */
  int steps;
  double rate;        /* of heat: diffusivity times time step, by the square of a cell's edge */
  int is_mpi;         /* halos by MPI_Neighbor_alltoallw; else by mpress/iso.h */
  const char* codec;  /* null: what the environment says */
  int is_checked;     /* against depth 1 without a codec */
  const char* output; /* file; null: none */
} Options;

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

/* On OPTIONS_WRONG `error` says what is wrong. */
int options_parse(int argc, char** argv, Options* options, char* error);
const char* options_help(void);

/* ---- domain.c ---- */

typedef struct {
  MPI_Comm cart;              /* of `dims` dimensions: the last axes */
  int split[AXES];            /* processes along each axis */
  int low[AXES], high[AXES];  /* neighbours, MPI_PROC_NULL beyond a fixed border */
  int first[AXES];            /* position in the grid of this process's first cell */
  int cells[AXES];            /* of this process */
  int halo[AXES], wide[AXES]; /* cells of halo on each side, and with them */
} Domain;

/* Collective. 0, or -1 with `error` set alike on all processes. */
int domain_create(const Options* options, Domain* domain, char* error);
void domain_free(Domain* domain);
static inline size_t domain_at(const Domain* d, int i, int j, int k) {
  return ((size_t)i * (size_t)d->wide[1] + (size_t)j) * (size_t)d->wide[2] + (size_t)k;
}
/* Arrays of `wide` cells; release them with free(). Abort the job where memory is short. The first
 * values of all cells, halos too; beyond fixed borders what stays there. */
double* domain_field(const Domain* domain, const Options* options);
/* What a Jacobi step adds to the sum of the neighbours. */
double* domain_source(const Domain* domain, const Options* options);
/* The grid as one raw file of f64. Collective; as domain_create(). */
int domain_write(const Domain* domain, const Options* options, const double* field, char* error);

/* ---- halo.c ---- */

typedef struct {
  int is_mpi;
  MPI_Comm comm;        /* with the neighbourhood, or the distributed graph */
  int sources, targets; /* blocks that are received, and sent */
  MPI_Datatype received[MOST_NEIGHBOURS], sent[MOST_NEIGHBOURS];
  double* fields[2];
  mpress_request requests[2]; /* of either field's exchange, persistent */
  mpress_outcome outcome;
  double bound;    /* each value of the last exchange is within it; INFINITY: not known */
  double messages; /* blocks to other processes, an exchange */
  double bytes;    /* in them, before any codec */
} Halo;

/* Collective. What goes wrong ends the job, by the communicator's error handler. */
void halo_create(const Domain* domain, const Options* options, double* fields[2], Halo* halo);
/* Fills the halo of fields[which]; beyond fixed borders it stays. */
void halo_exchange(Halo* halo, int which);
void halo_free(Halo* halo);

/* ---- sweep.c ---- */

/* The sum of the weights of a cell's neighbours. */
double stencil_weight(int points);
/* One step: `to` from `from`, on the own cells and `reach` more where there are neighbours. */
void sweep(const Domain* domain, const Options* options, int reach, const double* from,
           const double* source, double* to);

#endif
