#include "wave.h"

/* A message's tag is the side that it leaves through; it arrives at the opposite side. */

void halo_receive(const Domain* d, const Problem* problem, Solver* solver, Halo* halo) {
  for (int side = 0; side < SIDES; ++side)
    MPI_Irecv(solver->receive[side], (int)box_cells(&problem->regions.halo[side]), WAVE_MPI_REAL,
              domain_neighbour(d, side), side ^ 1, d->comm, &halo->requests[side]);
}

void halo_send(const Domain* d, const Problem* problem, Solver* solver, Halo* halo) {
  for (int side = 0; side < SIDES; ++side)
    MPI_Isend(solver->send[side], (int)box_cells(&problem->regions.face[side]), WAVE_MPI_REAL,
              domain_neighbour(d, side), side, d->comm, &halo->requests[SIDES + side]);
}

void halo_wait(Halo* halo) { MPI_Waitall(2 * SIDES, halo->requests, MPI_STATUSES_IGNORE); }
