/* What the solvers on the CPU and on a GPU share: boxes of cells, the medium, the arithmetic of a
 * cell. Knows nothing of MPI. Both solvers round alike, so they compute the same bits, as long as
 * compilers do not contract multiplications with additions (-ffp-contract=off, --fmad=false).
 */
#ifndef WAVE_GRID_H
#define WAVE_GRID_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define WAVE_INLINE __host__ __device__ static inline
#else
#define WAVE_INLINE static inline
#endif

#ifndef WAVE_REAL
#define WAVE_REAL float
#endif
typedef WAVE_REAL real;

enum {
  HALO = 4,       /* layers of a face that a neighbour needs */
  SIDES = 6,      /* of a box: side 2d is the low one of direction d, 2d + 1 the high one */
  CELL_FLOPS = 36 /* floating-point operations of cell_around, four times, and cell_next */
};

/* ---- where cells lie ---- */

/* Of arrays that have HALO cells more than a rank on every side; z fastest. */
typedef struct {
  ptrdiff_t stride[3];
  size_t padded; /* elements */
} Layout;

WAVE_INLINE Layout layout_of(const int cells[3]) {
  Layout layout;
  layout.stride[2] = 1;
  layout.stride[1] = cells[2] + 2 * HALO;
  layout.stride[0] = layout.stride[1] * (cells[1] + 2 * HALO);
  layout.padded = (size_t)layout.stride[0] * (size_t)(cells[0] + 2 * HALO);
  return layout;
}

/* Index of a rank's cell (i, j, k). */
WAVE_INLINE size_t layout_at(const Layout* layout, int i, int j, int k) {
  return (size_t)((i + HALO) * layout->stride[0] + (j + HALO) * layout->stride[1] + (k + HALO));
}

/* The cells from `from` up to, not including, `to`. */
typedef struct {
  int from[3], to[3];
} Box;

WAVE_INLINE size_t box_cells(const Box* box) {
  size_t cells = 1;
  for (int d = 0; d < 3; ++d) {
    if (box->to[d] <= box->from[d]) return 0;
    cells *= (size_t)(box->to[d] - box->from[d]);
  }
  return cells;
}

/* A rank's cells by what they need. The interior needs no halo; the shells are the rest. Boxes of
 * sides without a neighbour are empty. */
typedef struct {
  Box interior, shell[SIDES];
  Box face[SIDES]; /* own cells that the neighbour needs */
  Box halo[SIDES]; /* cells beyond the side, which the neighbour owns */
} Regions;

/* ---- what is computed ---- */

typedef struct {
  real* factor;     /* padded: (v dt / h)^2 */
  real* damping[3]; /* of each of the rank's cells along x, y, z */
} Medium;

/* Point sources among the rank's cells. */
typedef struct {
  size_t* at;       /* index in a padded array */
  double* strength; /* Pa that a wavelet of 1 adds in a step */
  int count;
} Sources;

typedef struct {
  int cells[3];
  Layout layout;
  Regions regions;
  Medium medium;
  Sources sources;
} Problem;

/* Central second difference of eighth order: weights of the cells at distance 0 to 4. */
#define WAVE_WEIGHT_0 (-205.0 / 72)
#define WAVE_WEIGHT_1 (8.0 / 5)
#define WAVE_WEIGHT_2 (-1.0 / 5)
#define WAVE_WEIGHT_3 (8.0 / 315)
#define WAVE_WEIGHT_4 (-1.0 / 560)

/* The six cells at one distance from a cell: two along z, y and x. */
WAVE_INLINE real cell_around(real z0, real z1, real y0, real y1, real x0, real x1) {
  return (z0 + z1) + (y0 + y1) + (x0 + x1);
}

/* A cell's next value. `old` is damped a second time here, as the sponge wants of both time levels,
 * so that the field at `now` need not be touched. */
WAVE_INLINE real cell_next(real now, real around1, real around2, real around3, real around4,
                           real old, real factor, real damp) {
  const real w0 = (real)(3 * WAVE_WEIGHT_0), w1 = (real)WAVE_WEIGHT_1, w2 = (real)WAVE_WEIGHT_2,
             w3 = (real)WAVE_WEIGHT_3, w4 = (real)WAVE_WEIGHT_4;
  real laplacian = w0 * now + w1 * around1 + w2 * around2 + w3 * around3 + w4 * around4;
  return damp * (2 * now - damp * old + factor * laplacian);
}

/* ---- solvers ---- */

/* Two time levels, and who advances them. A step is begin, compute, end, in this order; between
 * begin and end the packed faces travel. */
typedef struct Solver Solver;
struct Solver {
  /* Packed faces, one a side that has a neighbour, else null; in the solver's own memory. */
  real *send[SIDES], *receive[SIDES];
  /* s since restart() in which nothing was computed because halos were on their way */
  double waited;
  /* Packs the newest field's faces; received faces of the step before are no longer needed when
   * this returns. A GPU has begun to compute the interior then. */
  void (*begin)(Solver*);
  /* The interior; a GPU goes on with it. */
  void (*compute)(Solver*);
  /* All halos have been received. Computes the shells, and adds the sources times `wavelet`. */
  void (*end)(Solver*, double wavelet);
  /* Waits for what is under way, and sets `waited`. */
  void (*finish)(Solver*);
  /* `waited` begins anew; after finish(). */
  void (*restart)(Solver*);
  /* The newest field, padded, in memory of the host, until the next call; after finish(). */
  const real* (*newest)(Solver*);
  void (*free)(Solver*);
};

/* Null where memory is short. The problem must live as long as the solver. */
Solver* host_solver(const Problem* problem);

/* On the process's GPU `number`, counted around. Null with `error` set where there is none, or too
 * little memory; later failures end the process. Host memory of the problem is not used later. Part
 * of the program where WAVE_CUDA is defined. */
Solver* cuda_solver(const Problem* problem, int number, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
