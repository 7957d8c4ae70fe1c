#include <stdio.h>

#include "wave.h"

int snapshot_write(const Domain* d, const real* field, const char* path, char* error,
                   size_t error_size) {
  int padded[3], halo[3] = {HALO, HALO, HALO};
  for (int axis = 0; axis < 3; ++axis) padded[axis] = d->cells[axis] + 2 * HALO;
  MPI_Datatype own, whole;
  MPI_Type_create_subarray(3, padded, d->cells, halo, MPI_ORDER_C, WAVE_MPI_REAL, &own);
  MPI_Type_create_subarray(3, d->grid, d->cells, d->first, MPI_ORDER_C, WAVE_MPI_REAL, &whole);
  MPI_Type_commit(&own);
  MPI_Type_commit(&whole);

  MPI_File file;
  int status =
      MPI_File_open(d->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  int failed = status != MPI_SUCCESS;
  if (!failed) {
    status = MPI_File_set_size(file, 0);
    if (status == MPI_SUCCESS)
      status = MPI_File_set_view(file, 0, WAVE_MPI_REAL, whole, "native", MPI_INFO_NULL);
    if (status == MPI_SUCCESS) status = MPI_File_write_all(file, field, 1, own, MPI_STATUS_IGNORE);
    int closed = MPI_File_close(&file);
    status = status == MPI_SUCCESS ? closed : status;
    failed = status != MPI_SUCCESS;
  }
  MPI_Type_free(&own);
  MPI_Type_free(&whole);
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, d->comm);
  if (failed) snprintf(error, error_size, "cannot write '%s'", path);
  return failed ? -1 : 0;
}
