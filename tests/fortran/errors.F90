! Errors reach the program where MPI would let them, and communicators with attributes and handlers
! written in Fortran come and go.
#include "binding.inc"
module handlers
  USE_MPI
  implicit none
  INCLUDE_MPI
  private
  public :: note_error, copy, remove
  integer, public :: raised = 0, last_code = 0, copied = 0, deleted = 0

contains

  subroutine note_error(comm, code)
    COMM :: comm
    integer :: code
    raised = raised + 1
    last_code = code
  end subroutine note_error

  subroutine copy(old, key, extra, value, new_value, flag, ierror)
    COMM :: old
    integer :: key, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value, new_value
    logical :: flag
    copied = copied + 1
    new_value = value + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine remove(old, key, value, extra, ierror)
    COMM :: old
    integer :: key, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine remove
end module handlers

program errors
  USE_MPI
  use checks
  use handlers
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 20000
  real(8) :: x(n)
  integer :: rank, other, ierror, class, key, i
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  COMM :: comm, again
  ERRHANDLER :: handler
  REQUEST :: request(2)
  STATUS(status)
  STATUSES(statuses, 2)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call truncated
  call handled
  call with_attributes
  call finish(rank)

contains

  ! A message that does not fit is an error of the receiver.
  subroutine truncated
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    ! Completion calls raise errors on one of these, depending on the MPI.
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
    if (rank == 0) then
      x = values(n, 0)
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 1, comm, ierror)
      call check(ierror == MPI_SUCCESS, 'a send')
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 2, comm, ierror)
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 3, comm, ierror)
    else
      call MPI_Recv(x, n / 2, MPI_DOUBLE_PRECISION, 0, 1, comm, status, ierror)
      call MPI_Error_class(ierror, class, i)
      call check(class == MPI_ERR_TRUNCATE, 'a message too large')
      call MPI_Irecv(x, 100, MPI_DOUBLE_PRECISION, 0, 2, comm, request(1), ierror)
      call MPI_Irecv(x(101), n - 100, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 2, comm, request(2), &
                     ierror)
      call MPI_Waitall(2, request, statuses, ierror)
      call MPI_Error_class(ierror, class, i)
      call check(class == MPI_ERR_IN_STATUS, 'waitall: an error in a status')
      call MPI_Wait(request(2), MPI_STATUS_IGNORE, ierror)  ! may have been left pending
      call check(ierror == MPI_SUCCESS, 'waitall: from nobody')
      call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, 0, 3, comm, status, ierror)
      call check(ierror == MPI_SUCCESS .and. all(x == values(n, 0)), 'after errors')
    end if
  end subroutine truncated

  ! A handler written in Fortran is called for what mpress finds, too.
  subroutine handled
    call MPI_Comm_create_errhandler(note_error, handler, ierror)
    call MPI_Comm_set_errhandler(comm, handler, ierror)
    if (rank == 0) then
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 4, comm, ierror)
    else
      call MPI_Recv(x, n / 2, MPI_DOUBLE_PRECISION, 0, 4, comm, status, ierror)
      call check(raised == 1, 'the error handler')
      call MPI_Error_class(last_code, class, i)
      call check(class == MPI_ERR_TRUNCATE, 'the error handler: its code')
    end if
    call MPI_Errhandler_free(handler, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL, ierror)
  end subroutine handled

  subroutine with_attributes
    call MPI_Comm_create_keyval(copy, remove, key, 10_MPI_ADDRESS_KIND, ierror)
    value = 32
    call MPI_Comm_set_attr(comm, key, value, ierror)
    do i = 1, 20
      call MPI_Comm_dup(comm, again, ierror)
      x = values(n, i + rank)
      call MPI_Sendrecv_replace(x, n, MPI_DOUBLE_PRECISION, other, i, other, i, again, status, &
                                ierror)
      call check(all(x == values(n, i + other)), 'on a duplicate')
      call check_status(status, other, i, n, MPI_DOUBLE_PRECISION, 'on a duplicate')
      call MPI_Comm_get_attr(again, key, value, flag, ierror)
      call check(flag .and. value == 42, 'the attribute of a duplicate')
      call MPI_Comm_free(again, ierror)
      call check(copied == i .and. deleted == i, 'callbacks')
    end do
    call MPI_Comm_free(comm, ierror)
    call check(deleted == 21, 'callbacks: the last one')
    call MPI_Comm_free_keyval(key, ierror)
  end subroutine with_attributes
end program errors
