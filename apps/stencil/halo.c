#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stencil.h"

/* The neighbours that a process exchanges with, as tuples of `dims` ints. A step of the 5- or
 * 7-point stencil needs no diagonal ones; several do. */
static int neighbours(const Options* o, int tuples[]) {
  int count;
  if (o->depth == 1 && o->points != 9)
    mpress_iso_von_neumann(o->dims, 1, 0, MOST_NEIGHBOURS, tuples, &count);
  else
    mpress_iso_moore(o->dims, 1, 0, MOST_NEIGHBOURS, tuples, &count);
  return count;
}

/* The cells that go to the target at a tuple, or come from the source at its negative. */
static MPI_Datatype region(const Domain* d, int dims, const int tuple[], int is_sent) {
  MPI_Datatype type;
  int from[AXES], cells[AXES];
  for (int a = 0; a < AXES; ++a) {
    int c = a < AXES - dims ? 0 : tuple[a - (AXES - dims)], halo = d->halo[a], n = d->cells[a];
    cells[a] = c ? halo : n;
    from[a] = halo;
    if (c > 0) from[a] = is_sent ? n : 0;
    if (c < 0 && !is_sent) from[a] = n + halo;
  }
  MPI_Type_create_subarray(AXES, d->wide, cells, from, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/* The process `sign` times a tuple away, or MPI_PROC_NULL. */
static int process_at(const Domain* d, const Options* o, const int tuple[], int sign) {
  int split[AXES], periodic[AXES], at[AXES], rank;
  MPI_Cart_get(d->cart, o->dims, split, periodic, at);
  for (int a = 0; a < o->dims; ++a) {
    at[a] += sign * tuple[a];
    if (!periodic[a] && (at[a] < 0 || at[a] >= split[a])) return MPI_PROC_NULL;
  }
  MPI_Cart_rank(d->cart, at, &rank);
  return rank;
}

/* All blocks are of one type each, and begin with the field. */
static const int ones[MOST_NEIGHBOURS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const MPI_Aint zeros[MOST_NEIGHBOURS] = {0};

/* mpress: a neighbourhood, and each field's exchange as a call that is started again and again. */
static void create_iso(const Domain* d, const Options* o, int count, const int tuples[], Halo* h) {
  MPI_Count counts[MOST_NEIGHBOURS];
  mpress_call call = {.mask = MPRESS_CALL_OUTCOME, .outcome = &h->outcome};
  int is_uniform = 1;
  for (int a = 0; a < AXES; ++a) is_uniform &= o->grid[a] % d->split[a] == 0;
  MPI_Info info; /* where blocks are as long on all processes, short ones can travel together */
  MPI_Info_create(&info);
  MPI_Info_set(info, "iso_uniform_sizes", is_uniform ? "true" : "false");
  mpress_iso_neighborhood_create_with_info(d->cart, count, tuples, info, &h->comm);
  MPI_Info_free(&info);
  for (int i = 0; i < count; ++i) {
    counts[i] = 1;
    h->sent[i] = region(d, o->dims, tuples + i * o->dims, 1);
    h->received[i] = region(d, o->dims, tuples + i * o->dims, 0);
  }
  h->sources = h->targets = count;
  if (o->codec) {
    call.mask |= MPRESS_CALL_SPEC;
    call.spec = o->codec;
  }
  for (int which = 0; which < 2; ++which)
    mpress_iso_neighbor_alltoallw_init(h->fields[which], counts, zeros, h->sent, h->fields[which],
                                       counts, zeros, h->received, h->comm, MPI_INFO_NULL,
                                       &h->requests[which], &call);
}

/* MPI alone: a graph of the neighbours that exist. Of mpress there is a hint, which others leave
 * alone. */
static void create_mpi(const Domain* d, const Options* o, int count, const int tuples[], Halo* h) {
  int sources[MOST_NEIGHBOURS], targets[MOST_NEIGHBOURS];
  for (int i = 0; i < count; ++i) {
    const int* tuple = tuples + i * o->dims;
    int source = process_at(d, o, tuple, -1), target = process_at(d, o, tuple, 1);
    if (source != MPI_PROC_NULL) {
      sources[h->sources] = source;
      h->received[h->sources++] = region(d, o->dims, tuple, 0);
    }
    if (target != MPI_PROC_NULL) {
      targets[h->targets] = target;
      h->sent[h->targets++] = region(d, o->dims, tuple, 1);
    }
  }
  MPI_Info info;
  MPI_Info_create(&info);
  if (o->codec) MPI_Info_set(info, "mpress_codec", o->codec);
  /* Of MPI_COMM_WORLD, whose ranks the grid keeps: Open MPI 5.0 takes a graph that is made of a
   * Cartesian communicator for that grid. */
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h->sources, sources, MPI_UNWEIGHTED, h->targets,
                                 targets, MPI_UNWEIGHTED, info, 0, &h->comm);
  MPI_Info_free(&info);
}

/* What a message of MPI's may lose under `mpress run`, by its codec's name. */
static double bound_of(const char* spec) {
  if (!spec || !strcmp(spec, "none") || !strcmp(spec, "auto") || !strncmp(spec, "mpc", 3)) return 0;
  return strncmp(spec, "szp:abs=", 8) ? INFINITY : strtod(spec + 8, NULL);
}

void halo_create(const Domain* d, const Options* o, double* fields[2], Halo* h) {
  int tuples[MOST_NEIGHBOURS * AXES], rank, count = neighbours(o, tuples);
  *h = (Halo){.is_mpi = o->is_mpi, .comm = MPI_COMM_NULL, .fields = {fields[0], fields[1]}};
  if (h->is_mpi) {
    create_mpi(d, o, count, tuples, h);
    h->bound = bound_of(o->codec ? o->codec : getenv("MPRESS_CODEC"));
  } else {
    create_iso(d, o, count, tuples, h);
  }
  MPI_Comm_rank(d->cart, &rank);
  for (int i = 0; i < count; ++i) {
    int target = process_at(d, o, tuples + i * o->dims, 1), bytes;
    if (target == MPI_PROC_NULL || target == rank) continue;
    MPI_Datatype type = region(d, o->dims, tuples + i * o->dims, 1);
    MPI_Type_size(type, &bytes);
    MPI_Type_free(&type);
    h->messages += 1;
    h->bytes += bytes;
  }
}

void halo_exchange(Halo* h, int which) {
  if (h->is_mpi) {
    MPI_Neighbor_alltoallw(h->fields[which], ones, zeros, h->sent, h->fields[which], ones, zeros,
                           h->received, h->comm);
    return;
  }
  mpress_start(&h->requests[which]);
  mpress_wait(&h->requests[which], MPI_STATUS_IGNORE);
  h->bound = isnan(h->outcome.bound) ? INFINITY : h->outcome.bound;
}

void halo_free(Halo* h) {
  if (!h->is_mpi)
    for (int which = 0; which < 2; ++which) mpress_request_free(&h->requests[which]);
  for (int i = 0; i < h->sources; ++i) MPI_Type_free(&h->received[i]);
  for (int i = 0; i < h->targets; ++i) MPI_Type_free(&h->sent[i]);
  MPI_Comm_free(&h->comm);
}
