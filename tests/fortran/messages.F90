! Blocking messages between two ranks: every float type of Fortran, every mode of sending.
#include "binding.inc"
program messages
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 20000
  integer :: rank, other, ierror
  STATUS(status)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  call reals
  call doubles
  call complexes
  call double_complexes
  call integers
  call modes
  call exchanges
  call in_place
  call wildcards
  call finish(rank)

contains

  subroutine reals
    real(4) :: x(n)
    x = real(values(n, rank), 4)
    if (rank == 0) then
      call MPI_Send(x, n, MPI_REAL, 1, 1, MPI_COMM_WORLD, ierror)
      call MPI_Send(x, n / 2, MPI_REAL4, 1, 2, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(x, n, MPI_REAL, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(ierror == MPI_SUCCESS .and. all(x == real(values(n, 0), 4)), 'real(4)')
      call check_status(status, 0, 1, n, MPI_REAL, 'real(4)')
      x = -1
      call MPI_Recv(x, n, MPI_REAL, 0, 2, MPI_COMM_WORLD, status, ierror)
      call check(all(x(:n / 2) == real(values(n / 2, 0), 4)), 'part of a buffer')
      call check(all(x(n / 2 + 1:) == -1), 'behind a short message')
      call check_status(status, 0, 2, n / 2, MPI_REAL, 'a short message')
    end if
  end subroutine reals

  subroutine doubles
    real(8) :: x(n / 10, 10)
    double precision, allocatable :: y(:)
    x = reshape(values(n, rank), shape(x))
    if (rank == 0) then
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, ierror)
      call MPI_Send(x, n, MPI_REAL8, 1, 1, MPI_COMM_WORLD, ierror)
      call MPI_Send(x(1, 3), 2 * (n / 10), MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(all(x == reshape(values(n, 0), shape(x))), 'double precision')
      call check_status(status, 0, 1, n, MPI_DOUBLE_PRECISION, 'double precision')
      allocate (y(n))
      call MPI_Recv(y, n, MPI_REAL8, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call check(all(y == values(n, 0)), 'real(8), status ignored')
      call MPI_Recv(y, n, MPI_REAL8, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(all(y(:n / 5) == reshape(x(:, 3:4), [n / 5])), 'two columns')
      call check_status(status, 0, 1, n / 5, MPI_REAL8, 'two columns')
    end if
  end subroutine doubles

  subroutine complexes
    complex(4) :: z(n)
    real(8) :: x(n)
    x = values(n, 0)
    z = cmplx(x * (1 - rank), x * 2 * (1 - rank), 4)
    if (rank == 0) then
      call MPI_Send(z, n, MPI_COMPLEX, 1, 1, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(z, n, MPI_COMPLEX, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(all(z == cmplx(x, x * 2, 4)), 'complex(4)')
      call check_status(status, 0, 1, n, MPI_COMPLEX, 'complex(4)')
    end if
  end subroutine complexes

  subroutine double_complexes
    complex(8) :: z(n)
    real(8) :: x(n)
    x = values(n, 0)
    z = cmplx(x * (1 - rank), x * 2 * (1 - rank), 8)
    if (rank == 0) then
      call MPI_Send(z, n, MPI_DOUBLE_COMPLEX, 1, 1, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(z, n, MPI_DOUBLE_COMPLEX, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(all(z == cmplx(x, x * 2, 8)), 'complex(8)')
      call check_status(status, 0, 1, n, MPI_DOUBLE_COMPLEX, 'complex(8)')
    end if
  end subroutine double_complexes

  ! Not floats: these go as they are.
  subroutine integers
    integer :: i, k(n)
    k = [(i * (1 - rank), i = 1, n)]
    if (rank == 0) then
      call MPI_Send(k, n, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(k, n, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, status, ierror)
      call check(all(k == [(i, i = 1, n)]), 'integer')
      call check_status(status, 0, 1, n, MPI_INTEGER, 'integer')
    end if
  end subroutine integers

  subroutine modes
    real(8) :: x(n), arrived(n)
    character, allocatable, target :: room(:)
    DETACHED
    integer :: bytes, tag
    REQUEST :: ready
    x = values(n, rank)
    if (rank == 0) then
      call MPI_Pack_size(n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, bytes, ierror)
      bytes = bytes + MPI_BSEND_OVERHEAD
      allocate (room(bytes))
      call MPI_Buffer_attach(room, bytes, ierror)
      call MPI_Bsend(x, n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, ierror)
      call MPI_Ssend(x, n, MPI_DOUBLE_PRECISION, 1, 2, MPI_COMM_WORLD, ierror)
      call MPI_Buffer_detach(detached, bytes, ierror)
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      call MPI_Rsend(x, n, MPI_DOUBLE_PRECISION, 1, 3, MPI_COMM_WORLD, ierror)
    else
      do tag = 1, 2
        arrived = 0
        call MPI_Recv(arrived, n, MPI_DOUBLE_PRECISION, 0, tag, MPI_COMM_WORLD, status, ierror)
        call check(all(arrived == values(n, 0)), 'a buffered or synchronous send')
      end do
      arrived = 0
      call MPI_Irecv(arrived, n, MPI_DOUBLE_PRECISION, 0, 3, MPI_COMM_WORLD, ready, ierror)
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      call MPI_Wait(ready, status, ierror)
      call check(all(arrived == values(n, 0)), 'a ready send')
      call check_status(status, 0, 3, n, MPI_DOUBLE_PRECISION, 'a ready send')
    end if
  end subroutine modes

  subroutine exchanges
    real(4) :: out(n), in(n)
    out = real(values(n, rank), 4)
    in = 0
    call MPI_Sendrecv(out, n, MPI_REAL, other, 4, in, n, MPI_REAL, other, 4, MPI_COMM_WORLD, &
                      status, ierror)
    call check(all(in == real(values(n, other), 4)), 'sendrecv')
    call check_status(status, other, 4, n, MPI_REAL, 'sendrecv')
    call MPI_Sendrecv(out, n, MPI_REAL, MPI_PROC_NULL, 4, in, n, MPI_REAL, MPI_PROC_NULL, 4, &
                      MPI_COMM_WORLD, status, ierror)
    call check(all(in == real(values(n, other), 4)), 'sendrecv with nobody')
    call check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, MPI_REAL, 'sendrecv with nobody')
  end subroutine exchanges

  subroutine in_place
    real(4) :: x(n)
    x = real(values(n, rank), 4)
    call MPI_Sendrecv_replace(x, n, MPI_REAL, other, 5, other, 5, MPI_COMM_WORLD, status, ierror)
    call check(all(x == real(values(n, other), 4)), 'sendrecv_replace')
    call check_status(status, other, 5, n, MPI_REAL, 'sendrecv_replace')
    call MPI_Sendrecv_replace(x, n, MPI_REAL, other, 5, other, 5, MPI_COMM_WORLD, &
                              MPI_STATUS_IGNORE, ierror)
    call check(all(x == real(values(n, rank), 4)), 'sendrecv_replace, status ignored')
  end subroutine in_place

  subroutine wildcards
    real(8) :: x(n)
    x = values(n, rank)
    if (rank == 0) then
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 9, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
                    status, ierror)
      call check(all(x == values(n, 0)), 'wildcards')
      call check_status(status, 0, 9, n, MPI_DOUBLE_PRECISION, 'wildcards')
    end if
  end subroutine wildcards
end program messages
