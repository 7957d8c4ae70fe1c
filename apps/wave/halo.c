#include <stdlib.h>

#include "wave.h"

/* Copies one face between `field` and `packed`. Side 2d is the low face of direction d, 2d + 1 the
 * high one; `outside` means the halo cells beyond the face instead of this rank's own cells. */
static void copy_face(const Domain* d, int side, int outside, real* field, real* packed, int pack) {
  int from[3] = {0, 0, 0}, to[3] = {d->cells[0], d->cells[1], d->cells[2]};
  int along = side / 2, high = side % 2;
  from[along] = high ? d->cells[along] - (outside ? 0 : HALO) : (outside ? -HALO : 0);
  to[along] = from[along] + HALO;
  for (int i = from[0]; i < to[0]; ++i)
    for (int j = from[1]; j < to[1]; ++j) {
      real* row = field + domain_at(d, i, j, from[2]);
      int length = to[2] - from[2];
      if (pack)
        for (int k = 0; k < length; ++k) packed[k] = row[k];
      else
        for (int k = 0; k < length; ++k) row[k] = packed[k];
      packed += length;
    }
}

static int neighbour(const Domain* d, int side) {
  return side % 2 ? d->high[side / 2] : d->low[side / 2];
}

void halo_create(const Domain* d, Halo* halo) {
  for (int side = 0; side < 6; ++side) {
    int along = side / 2;
    size_t area = (size_t)d->cells[(along + 1) % 3] * (size_t)d->cells[(along + 2) % 3];
    size_t count = neighbour(d, side) == MPI_PROC_NULL ? 0 : area * HALO;
    halo->count[side] = (int)count;
    halo->send[side] = malloc((count + 1) * sizeof(real));
    halo->receive[side] = malloc((count + 1) * sizeof(real));
    if (!halo->send[side] || !halo->receive[side]) MPI_Abort(d->comm, 1);
  }
}

void halo_free(Halo* halo) {
  for (int side = 0; side < 6; ++side) {
    free(halo->send[side]);
    free(halo->receive[side]);
  }
}

void halo_start(const Domain* d, Halo* halo, const real* field) {
  /* A message's tag is the side that it leaves through; it arrives at the opposite side. */
  for (int side = 0; side < 6; ++side)
    MPI_Irecv(halo->receive[side], halo->count[side], WAVE_MPI_REAL, neighbour(d, side), side ^ 1,
              d->comm, &halo->requests[side]);
  for (int side = 0; side < 6; ++side) {
    if (halo->count[side]) copy_face(d, side, 0, (real*)field, halo->send[side], 1);
    MPI_Isend(halo->send[side], halo->count[side], WAVE_MPI_REAL, neighbour(d, side), side, d->comm,
              &halo->requests[6 + side]);
  }
}

void halo_finish(const Domain* d, Halo* halo, real* field) {
  MPI_Waitall(12, halo->requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < 6; ++side)
    if (halo->count[side]) copy_face(d, side, 1, field, halo->receive[side], 0);
}
