! Sections of arrays that are not contiguous; only mpi_f08 can take them as they are. Where the MPI
! does not (MPI_SUBARRAYS_SUPPORTED), the compiler copies them, and that suits blocking calls only.
program sections
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: n = 300
  real(8), asynchronous :: x(n, n), y(n, n)
  real(8) :: expected(n, n)
  integer :: rank, other, ierror
  type(MPI_Request) :: request(2)
  type(MPI_Status) :: status

  call MPI_Init()  ! ierror is optional
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  x = reshape(values(n * n, rank), shape(x))
  expected = reshape(values(n * n, other), shape(x))

  y = -1
  if (rank == 0) then
    call MPI_Send(x(7, :), n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD)
    call MPI_Recv(y(2:n:2, 3), n / 2, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, status)
    call check(all(y(2:n:2, 3) == expected(1:n / 2, 5)), 'every second')
    call check(all(y(1:n:2, 3) == -1) .and. all(y(:, 4) == -1), 'between every second')
    call check_status(status, 1, 1, n / 2, MPI_DOUBLE_PRECISION, 'every second')
  else
    call MPI_Recv(y(3, :), n, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, status)
    call MPI_Send(x(:n / 2, 5), n / 2, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD)
    call check(all(y(3, :) == expected(7, :)), 'a row')
    call check(all(y(:2, :) == -1) .and. all(y(4:, :) == -1), 'beside the row')
    call check_status(status, 0, 1, n, MPI_DOUBLE_PRECISION, 'a row')
  end if

  y = -1
  call MPI_Sendrecv(x(11:60, 21:80), 50 * 60, MPI_DOUBLE_PRECISION, other, 2, &
                    y(1:50, 1:60), 50 * 60, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, &
                    status, ierror)
  call check(all(y(1:50, 1:60) == expected(11:60, 21:80)), 'boxes')
  call check(all(y(51:, :) == -1) .and. all(y(:, 61:) == -1), 'around the box')

  y = x
  call MPI_Sendrecv_replace(y(:, 2:n:2), n * n / 2, MPI_DOUBLE_PRECISION, other, 3, other, 3, &
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(y(:, 2:n:2) == expected(:, 2:n:2)), 'columns in place')
  call check(all(y(:, 1:n:2) == x(:, 1:n:2)), 'between the columns')

  if (MPI_SUBARRAYS_SUPPORTED) then
    if (rank == 0) write (*, '(a)') 'sections are sent as they are'
    y = -1
    call MPI_Irecv(y(2, :), n, MPI_DOUBLE_PRECISION, other, 4, MPI_COMM_WORLD, request(1))
    call MPI_Isend(x(2, :), n, MPI_DOUBLE_PRECISION, other, 4, MPI_COMM_WORLD, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call check(all(y(2, :) == expected(2, :)), 'a row, later')
    call check(all(y(1, :) == -1) .and. all(y(3:, :) == -1), 'beside the row, later')
  end if
  call finish(rank)
end program sections
