! The sender of ../mpi/one_message.c.
#include "binding.inc"
program peer
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 40000
  integer :: rank, ierror, i
  real(4) :: x(n)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  x = [(2 + 1.0e-3 * real(i, 4), i = 0, n - 1)]
  call MPI_Send(x, n, MPI_REAL, 1, 0, MPI_COMM_WORLD, ierror)
  call finish(rank)
end program peer
