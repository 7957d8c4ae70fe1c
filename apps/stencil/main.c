#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stencil.h"

typedef struct {
  Options options;
  Domain domain;
  Halo halo;
  double* fields[2];
  double* source;
  int newest;             /* of the fields */
  double seconds, waited; /* in all steps, the slowest; in exchanges, of all processes together */
  double allowed;         /* the sum of all exchanges' bounds */
} Run;

/* All steps, an exchange for every `depth` of them. */
static void compute(Run* r) {
  const Options* o = &r->options;
  int exchanges = (o->steps + o->depth - 1) / o->depth;
  double* bounds = malloc((size_t)exchanges * sizeof *bounds);
  if (!bounds) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Barrier(r->domain.cart);
  double begin = MPI_Wtime(), waited = 0;
  for (int i = 0; i < exchanges; ++i) {
    double before = MPI_Wtime();
    halo_exchange(&r->halo, r->newest);
    waited += MPI_Wtime() - before;
    bounds[i] = r->halo.bound;
    int left = o->steps - i * o->depth, steps = left < o->depth ? left : o->depth;
    while (steps--) {
      sweep(&r->domain, o, steps, r->fields[r->newest], r->source, r->fields[!r->newest]);
      r->newest = !r->newest;
    }
  }
  double seconds = MPI_Wtime() - begin;
  MPI_Allreduce(&seconds, &r->seconds, 1, MPI_DOUBLE, MPI_MAX, r->domain.cart);
  MPI_Allreduce(&waited, &r->waited, 1, MPI_DOUBLE, MPI_SUM, r->domain.cart);
  MPI_Allreduce(MPI_IN_PLACE, bounds, exchanges, MPI_DOUBLE, MPI_MAX, r->domain.cart);
  for (int i = 0; i < exchanges; ++i) r->allowed += bounds[i];
  free(bounds);
}

static void run_free(Run* r) {
  for (int i = 0; i < 2; ++i) free(r->fields[i]);
  free(r->source);
  domain_free(&r->domain);
}

/* Collective; as domain_create(). */
static int run(const Options* options, Run* r, char* error) {
  *r = (Run){.options = *options};
  if (domain_create(options, &r->domain, error)) return -1;
  for (int i = 0; i < 2; ++i) r->fields[i] = domain_field(&r->domain, options);
  r->source = domain_source(&r->domain, options);
  halo_create(&r->domain, options, r->fields, &r->halo);
  compute(r);
  halo_free(&r->halo);
  return 0;
}

/* The largest difference between two runs' own cells, and the largest value of `b`. */
static double difference(const Run* a, const double* of_a, const Run* b, const double* of_b,
                         double* largest) {
  double most[2] = {0, 0};
  const Domain *da = &a->domain, *db = &b->domain;
  for (int i = 0; i < da->cells[0]; ++i)
    for (int j = 0; j < da->cells[1]; ++j)
      for (int k = 0; k < da->cells[2]; ++k) {
        double x = of_a[domain_at(da, i + da->halo[0], j + da->halo[1], k + da->halo[2])];
        double y = of_b[domain_at(db, i + db->halo[0], j + db->halo[1], k + db->halo[2])];
        /* A value that is none differs from all. */
        if (!(fabs(x - y) <= most[0])) most[0] = isnan(x - y) ? INFINITY : fabs(x - y);
        if (fabs(y) > most[1]) most[1] = fabs(y);
      }
  MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, da->cart);
  *largest = most[1];
  return most[0];
}

static void print_run(const Run* r) {
  const Options* o = &r->options;
  const Domain* d = &r->domain;
  double sums[2] = {r->halo.messages, r->halo.bytes}, largest;
  int rank, exchanges = (o->steps + o->depth - 1) / o->depth;
  double change = difference(r, r->fields[r->newest], r, r->fields[!r->newest], &largest);
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, d->cart);
  MPI_Comm_rank(d->cart, &rank);
  if (rank) return;
  int ranks = d->split[0] * d->split[1] * d->split[2];
  printf("stencil: %s, %d points, ", o->is_jacobi ? "jacobi" : "heat", o->points);
  for (int a = AXES - o->dims; a < AXES; ++a)
    printf("%d%s", o->grid[a], a < AXES - 1 ? "x" : " cells on ");
  for (int a = AXES - o->dims; a < AXES; ++a)
    printf("%d%s", d->split[a], a < AXES - 1 ? "x" : " processes, ");
  printf("%s borders, depth %d, %s\n", o->is_periodic ? "periodic" : "fixed", o->depth,
         o->is_mpi ? "MPI_Neighbor_alltoallw" : "mpress_iso_neighbor_alltoallw");
  printf(
      "stencil: %d steps in %.4f s, %.3f us a step, of which exchanging %.3f us; %d exchanges, "
      "%.0f messages and %.0f bytes each; the last step changed %.3g at most\n",
      o->steps, r->seconds, 1e6 * r->seconds / o->steps, 1e6 * r->waited / ranks / o->steps,
      exchanges, sums[0], sums[1], change);
}

/* The same bits as at depth 1 without a codec, or as near as the exchanges' bounds allow: steps
 * make averages, so each exchange adds at most its bound to the error. */
static int check(const Run* r, char* error) {
  Options plain = r->options;
  Run reference;
  double largest;
  int rank;
  plain.depth = 1;
  plain.codec = "none";
  if (run(&plain, &reference, error)) return -1;
  double off =
      difference(r, r->fields[r->newest], &reference, reference.fields[reference.newest], &largest);
  run_free(&reference);
  /* Unless bits are the same, steps round differently, too. */
  double allowed = r->allowed ? r->allowed + 4 * DBL_EPSILON * r->options.steps * largest : 0;
  if (!(off <= allowed)) {
    snprintf(error, MESSAGE_LENGTH, "differs from depth 1 without a codec by %.3g; allowed is %.3g",
             off, allowed);
    return -1;
  }
  MPI_Comm_rank(r->domain.cart, &rank);
  if (rank) return 0;
  if (allowed == 0)
    puts("stencil: the same bits as at depth 1 without a codec");
  else if (isinf(allowed))
    printf("stencil: differs from depth 1 without a codec by %.3g; no bound is known\n", off);
  else
    printf("stencil: differs from depth 1 without a codec by %.3g; the bounds allow %.3g\n", off,
           allowed);
  return 0;
}

int main(int argc, char** argv) {
  Options options;
  Run r;
  char error[MESSAGE_LENGTH] = "";
  int rank, failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int what = options_parse(argc, argv, &options, error);
  if (what == OPTIONS_HELP) {
    if (rank == 0) fputs(options_help(), stdout);
  } else if (what == OPTIONS_WRONG) {
    failed = 1;
  } else {
    if (!options.is_mpi) mpress_init();
    failed = run(&options, &r, error) != 0;
    if (!failed) {
      print_run(&r);
      if (options.output)
        failed = domain_write(&r.domain, &options, r.fields[r.newest], error) != 0;
      if (!failed && options.is_checked) failed = check(&r, error) != 0;
      run_free(&r);
    }
  }
  if (failed && rank == 0) fprintf(stderr, "stencil: %s\n", error);
  MPI_Finalize();
  return failed;
}
