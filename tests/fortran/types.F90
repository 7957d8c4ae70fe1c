! Derived types, types by precision, absolute addresses.
#include "binding.inc"
program types
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 200
  real(8), target :: x(n, n), y(n, n), expected(n, n)
  integer :: rank, other, ierror
  STATUS(status)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  x = reshape(values(n * n, rank), shape(x))
  call row
  call subarray
  call by_precision
  call structure
  call absolute
  call finish(rank)

contains

  ! What arrives where `mask` is true; elsewhere the buffer stays.
  subroutine exchange(type, tag, mask, what)
    DATATYPE, intent(in) :: type
    integer, intent(in) :: tag
    logical, intent(in) :: mask(n, n)
    character(*), intent(in) :: what
    integer :: items
    y = -1
    call MPI_Sendrecv(x, 1, type, other, tag, y, 1, type, other, tag, MPI_COMM_WORLD, status, &
                      ierror)
    expected = merge(reshape(values(n * n, other), shape(x)), -1.0d0, mask)
    call check(all(y == expected), what)
    call MPI_Get_elements(status, MPI_DOUBLE_PRECISION, items, ierror)
    call check(items == count(mask), what // ': elements')
    call check_status(status, other, tag, 1, type, what)
  end subroutine exchange

  subroutine row
    DATATYPE :: type
    logical :: mask(n, n)
    mask = .false.
    mask(1, :) = .true.
    call MPI_Type_vector(n, 1, n, MPI_DOUBLE_PRECISION, type, ierror)
    call MPI_Type_commit(type, ierror)
    call exchange(type, 1, mask, 'a row')
    call MPI_Type_free(type, ierror)
  end subroutine row

  subroutine subarray
    DATATYPE :: type
    logical :: mask(n, n)
    mask = .false.
    mask(3:102, 11:60) = .true.
    call MPI_Type_create_subarray(2, [n, n], [100, 50], [2, 10], MPI_ORDER_FORTRAN, &
                                  MPI_DOUBLE_PRECISION, type, ierror)
    call MPI_Type_commit(type, ierror)
    call exchange(type, 2, mask, 'a subarray')
    call MPI_Type_free(type, ierror)
  end subroutine subarray

  ! These types are MPI's own, but have no names.
  subroutine by_precision
    DATATYPE :: real8, complex8, run
    logical :: mask(n, n)
    call MPI_Type_create_f90_real(15, 307, real8, ierror)
    call MPI_Type_create_f90_complex(15, 307, complex8, ierror)
    y = -1
    call MPI_Sendrecv(x, n * n, real8, other, 3, y, n * n, real8, other, 3, MPI_COMM_WORLD, &
                      status, ierror)
    call check(all(y == reshape(values(n * n, other), shape(x))), 'a real by precision')
    call check_status(status, other, 3, n * n, real8, 'a real by precision')
    y = -1
    call MPI_Sendrecv(x, n * n / 2, complex8, other, 3, y, n * n / 2, complex8, other, 3, &
                      MPI_COMM_WORLD, status, ierror)
    call check(all(y == reshape(values(n * n, other), shape(x))), 'a complex by precision')
    mask = .false.
    mask(:, ::4) = .true.
    call MPI_Type_vector(n / 4, n, 4 * n, real8, run, ierror)
    call MPI_Type_commit(run, ierror)
    call exchange(run, 4, mask, 'columns of a real by precision')
    call MPI_Type_free(run, ierror)
  end subroutine by_precision

  ! An integer before the floats: no run of floats, so it goes as it is.
  subroutine structure
    type particle
      sequence
      integer :: id, color
      real(8) :: position(3)
    end type particle
    type(particle), target :: out(1000), in(1000)
    DATATYPE :: packed, type
    integer(MPI_ADDRESS_KIND) :: base, places(2), stride
    integer :: i
    call MPI_Get_address(out(1), base, ierror)
    call MPI_Get_address(out(1)%id, places(1), ierror)
    call MPI_Get_address(out(1)%position, places(2), ierror)
    call MPI_Get_address(out(2), stride, ierror)
    places = places - base
    stride = stride - base
    call MPI_Type_create_struct(2, [2, 3], places, [MPI_INTEGER, MPI_DOUBLE_PRECISION], packed, &
                                ierror)
    call MPI_Type_create_resized(packed, 0_MPI_ADDRESS_KIND, stride, type, ierror)
    call MPI_Type_commit(type, ierror)
    do i = 1, 1000
      out(i)%id = i + rank
      out(i)%color = 3
      out(i)%position = i * [1, 2, 3] + rank
      in(i)%id = 0
    end do
    call MPI_Sendrecv(out, 1000, type, other, 5, in, 1000, type, other, 5, MPI_COMM_WORLD, status, &
                      ierror)
    do i = 1, 1000
      call check(in(i)%id == i + other .and. in(i)%color == 3 .and. &
                 all(in(i)%position == i * [1, 2, 3] + other), 'structures')
    end do
    call check_status(status, other, 5, 1000, type, 'structures')
    call MPI_Type_free(packed, ierror)
    call MPI_Type_free(type, ierror)
  end subroutine structure

  ! Columns wherever they lie, from MPI_BOTTOM.
  subroutine absolute
    DATATYPE :: out, in
    integer(MPI_ADDRESS_KIND) :: from(3), to(3)
    integer :: i, column
    REQUEST :: request(2)
    y = -1
    do i = 1, 3
      column = 20 * i
      call MPI_Get_address(x(1, column), from(i), ierror)
      call MPI_Get_address(y(1, column + 1), to(i), ierror)
    end do
    call MPI_Type_create_hindexed(3, [n, n, n], from, MPI_DOUBLE_PRECISION, out, ierror)
    call MPI_Type_create_hindexed(3, [n, n, n], to, MPI_DOUBLE_PRECISION, in, ierror)
    call MPI_Type_commit(out, ierror)
    call MPI_Type_commit(in, ierror)
    expected = reshape(values(n * n, other), shape(x))
    call MPI_Sendrecv(MPI_BOTTOM, 1, out, other, 6, MPI_BOTTOM, 1, in, other, 6, MPI_COMM_WORLD, &
                      status, ierror)
    call check_columns('from the bottom')
    call check_status(status, other, 6, 1, in, 'from the bottom')
    y = -1
    call MPI_Irecv(MPI_BOTTOM, 1, in, other, 7, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Isend(MPI_BOTTOM, 1, out, other, 7, MPI_COMM_WORLD, request(2), ierror)
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE, ierror)
    call check_columns('from the bottom, later')
    call MPI_Type_free(out, ierror)
    call MPI_Type_free(in, ierror)
  end subroutine absolute

  subroutine check_columns(what)
    character(*), intent(in) :: what
    integer :: i
    do i = 1, 3
      call check(all(y(:, 20 * i + 1) == expected(:, 20 * i)), what)
      call check(all(y(:, 20 * i + 2) == -1), what // ': the column behind')
    end do
  end subroutine check_columns
end program types
