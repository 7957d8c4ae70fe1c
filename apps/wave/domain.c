#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wave.h"

/* Among the ranks of this host, in their order. By MPI_Comm_split_type each is alone where the MPI
 * uses no shared memory. */
static int rank_of_host(MPI_Comm comm, int rank) {
  int size, length, before = 0;
  char own[MPI_MAX_PROCESSOR_NAME] = {0};
  MPI_Comm_size(comm, &size);
  MPI_Get_processor_name(own, &length);
  char(*names)[MPI_MAX_PROCESSOR_NAME] = calloc((size_t)size, sizeof *names);
  if (!names) MPI_Abort(comm, 1);
  MPI_Allgather(own, sizeof own, MPI_CHAR, names, sizeof own, MPI_CHAR, comm);
  for (int other = 0; other < rank; ++other) before += strcmp(names[other], own) == 0;
  free(names);
  return before;
}

int domain_create(MPI_Comm world, const Options* options, Domain* domain, char* error,
                  size_t error_size) {
  int periodic[3] = {0, 0, 0}, position[3], product = 1, chosen = 1;
  domain->comm = MPI_COMM_NULL;
  MPI_Comm_size(world, &domain->ranks);
  for (int d = 0; d < 3; ++d) {
    domain->grid[d] = options->grid[d];
    domain->split[d] = options->split[d];
    if (domain->split[d])
      product *= domain->split[d] <= domain->ranks ? domain->split[d] : domain->ranks + 1;
    else
      chosen = 0;
  }
  /* MPI_Dims_create would end the job on a split that does not divide the ranks. */
  if (product > domain->ranks || domain->ranks % product || (chosen && product != domain->ranks)) {
    snprintf(error, error_size, "--split %dx%dx%d does not suit %d ranks", domain->split[0],
             domain->split[1], domain->split[2], domain->ranks);
    return -1;
  }
  MPI_Dims_create(domain->ranks, 3, domain->split);
  for (int d = 0; d < 3; ++d) {
    if (domain->grid[d] / domain->split[d] < HALO) {
      snprintf(error, error_size, "%d cells along %c are too few for %d ranks: each needs %d",
               domain->grid[d], axis_name(d), domain->split[d], HALO);
      return -1;
    }
  }

  MPI_Cart_create(world, 3, domain->split, periodic, 1, &domain->comm);
  MPI_Comm_rank(domain->comm, &domain->rank);
  MPI_Cart_coords(domain->comm, domain->rank, 3, position);
  for (int d = 0; d < 3; ++d) {
    MPI_Cart_shift(domain->comm, d, 1, &domain->low[d], &domain->high[d]);
    long long n = domain->grid[d];
    domain->first[d] = (int)(n * position[d] / domain->split[d]);
    domain->cells[d] = (int)(n * (position[d] + 1) / domain->split[d]) - domain->first[d];
  }
  domain->layout = layout_of(domain->cells);
  domain->host_rank = rank_of_host(domain->comm, domain->rank);

  int too_large = (size_t)domain->layout.stride[0] * HALO > INT_MAX;
  MPI_Allreduce(MPI_IN_PLACE, &too_large, 1, MPI_INT, MPI_MAX, domain->comm);
  if (too_large) {
    snprintf(error, error_size,
             "a face of this grid has more elements than an int can count; "
             "use more ranks");
    domain_free(domain);
    return -1;
  }
  return 0;
}

void domain_free(Domain* domain) {
  if (domain->comm != MPI_COMM_NULL) MPI_Comm_free(&domain->comm);
}

real* domain_array(const Domain* domain) {
  real* array = calloc(domain->layout.padded, sizeof(real));
  if (!array) {
    fprintf(stderr, "wave: rank %d has no memory for %zu cells\n", domain->rank,
            domain->layout.padded);
    MPI_Abort(domain->comm, 1);
  }
  return array;
}
