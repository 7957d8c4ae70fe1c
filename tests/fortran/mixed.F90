! Requests, messages and statuses go between Fortran and C, in both directions.
#include "binding.inc"
program mixed
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  INCLUDE_MPI
  ! mixed.c; handles and statuses are passed as Fortran's integers.
  interface
    integer(c_int) function c_isend(x, n, peer, tag, comm) bind(c)
      import
      real(c_double), intent(in) :: x(*)
      integer(c_int), value :: n, peer, tag, comm
    end function c_isend
    subroutine c_wait(request, status) bind(c)
      import
      integer(c_int) :: request, status(*)
    end subroutine c_wait
    subroutine c_send(x, n, peer, tag, comm) bind(c)
      import
      real(c_double), intent(in) :: x(*)
      integer(c_int), value :: n, peer, tag, comm
    end subroutine c_send
    subroutine c_recv(x, n, peer, tag, comm, status) bind(c)
      import
      real(c_double) :: x(*)
      integer(c_int), value :: n, peer, tag, comm
      integer(c_int) :: status(*)
    end subroutine c_recv
    subroutine c_mrecv(x, n, message, status) bind(c)
      import
      real(c_double) :: x(*)
      integer(c_int), value :: n
      integer(c_int) :: message, status(*)
    end subroutine c_mrecv
    integer(c_int) function c_count(status) bind(c)
      import
      integer(c_int), intent(in) :: status(*)
    end function c_count
  end interface
#if defined(BINDING_MPI_F08)
#define RAW(handle) handle%MPI_VAL
#else
#define RAW(handle) handle
#endif
  integer, parameter :: n = 12000
  real(c_double), asynchronous :: out(n), in(n)
  integer :: rank, other, ierror, raw_status(MPI_STATUS_SIZE)
  integer(c_int) :: raw
  MESSAGE :: message
  REQUEST :: request, from_c
  STATUS(status)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  out = values(n, rank)

  ! Started in Fortran, completed in C; started in C, completed in Fortran.
  in = 0
  call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, request, ierror)
  RAW(from_c) = c_isend(out, n, other, 1, RAW(MPI_COMM_WORLD))
  raw = RAW(request)
  call c_wait(raw, raw_status)
  call check(raw == RAW(MPI_REQUEST_NULL), 'completed in C')
  call MPI_Wait(from_c, MPI_STATUS_IGNORE, ierror)
  call check_arrived(1, 'completed in C')

  ! Sent by one language, received by the other.
  if (rank == 0) then
    call MPI_Send(out, n, MPI_DOUBLE_PRECISION, 1, 2, MPI_COMM_WORLD, ierror)
    call MPI_Recv(in, n, MPI_DOUBLE_PRECISION, 1, 3, MPI_COMM_WORLD, status, ierror)
    call check(all(in == values(n, 1)), 'received from C')
    call check_status(status, 1, 3, n, MPI_DOUBLE_PRECISION, 'received from C')
  else
    in = 0
    call c_recv(in, n, 0, 2, RAW(MPI_COMM_WORLD), raw_status)
    call check_arrived(2, 'received by C')
    call c_send(out, n, 0, 3, RAW(MPI_COMM_WORLD))
  end if

  ! A message that Fortran matched is received by C.
  call MPI_Isend(out, n, MPI_DOUBLE_PRECISION, other, 4, MPI_COMM_WORLD, request, ierror)
  call MPI_Mprobe(other, 4, MPI_COMM_WORLD, message, status, ierror)
  call check_status(status, other, 4, n, MPI_DOUBLE_PRECISION, 'matched in Fortran')
  in = 0
  raw = RAW(message)
  call c_mrecv(in, n, raw, raw_status)
  call check(raw == RAW(MPI_MESSAGE_NULL), 'the message')
  call check_arrived(4, 'matched in Fortran')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call finish(rank)

contains

  ! raw_status is one that C converted.
  subroutine check_arrived(tag, what)
    integer, intent(in) :: tag
    character(*), intent(in) :: what
    call check(raw_status(MPI_SOURCE) == other .and. raw_status(MPI_TAG) == tag, what // ': status')
    call check(c_count(raw_status) == n, what // ': count')
    call check(all(in == values(n, other)), what)
  end subroutine check_arrived
end program mixed
