! What the programs share: values to send, and checks that end the job where they fail.
#include "binding.inc"
module checks
  USE_MPI
  implicit none
  INCLUDE_MPI
  private  ! whoever includes mpif.h too has its names already
  public :: values, check, check_status, finish

contains

  ! Smooth values, different for each seed.
  pure function values(n, seed) result(x)
    integer, intent(in) :: n, seed
    real(8) :: x(n)
    integer :: i
    x = [(seed + 1.0d-3 * i, i = 1, n)]
  end function values

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    integer :: ierror
    if (condition) return
    write (0, '(2a)') 'failed: ', what
    flush (0)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine check

  ! The status tells of a message of `n` items of `type` from `source` with `tag`.
  subroutine check_status(status, source, tag, n, type, what)
    STATUS(status)
    integer, intent(in) :: source, tag, n
    DATATYPE :: type
    character(*), intent(in) :: what
    integer :: count, ierror
    call check(SOURCE_OF(status) == source, what // ': source')
    call check(TAG_OF(status) == tag, what // ': tag')
    call MPI_Get_count(status, type, count, ierror)
    call check(count == n, what // ': count')
  end subroutine check_status

  ! Every program ends here.
  subroutine finish(rank)
    integer, intent(in) :: rank
    integer :: ierror
    call MPI_Finalize(ierror)
    if (rank == 0) write (*, '(a)') 'ok'
  end subroutine finish
end module checks
