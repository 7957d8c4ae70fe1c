! Requests between two ranks, completed in every way; persistent, cancelled and freed ones.
#include "binding.inc"
program requests
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 10000, messages = 4
  real(8), asynchronous :: out(n, messages), in(n, messages)
  REQUEST :: request(2 * messages)
  STATUSES(statuses, 2 * messages)
  STATUS(status)
  logical :: flag
  integer :: rank, other, ierror, done, i, index, indices(2 * messages), left
  integer :: any_base, some_base  ! what MPI calls the first request: the mpi_f08 of MPICH 4.0 errs

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  call count_from
  call one_by_one
  call together
  call any_of_them
  call some_of_them
  call looked_at
  call persistent
  call cancelled
  call freed
  call finish(rank)

contains

  subroutine count_from
    call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request(1), &
                   ierror)
    call MPI_Waitany(1, request, any_base, status, ierror)
    call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request(1), &
                   ierror)
    call MPI_Waitsome(1, request, done, indices, statuses, ierror)
    some_base = indices(1)
  end subroutine count_from

  ! Receives in request(1:messages), sends behind them; tags tell the messages apart.
  subroutine start_all(round)
    integer, intent(in) :: round
    do i = 1, messages
      in(:, i) = 0
      out(:, i) = values(n, 100 * round + 10 * i + rank)
      call MPI_Irecv(in(:, i), n, MPI_DOUBLE_PRECISION, other, i, MPI_COMM_WORLD, request(i), &
                     ierror)
    end do
    call MPI_Isend(out(:, 1), n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, &
                   request(messages + 1), ierror)
    call MPI_Issend(out(:, 2), n, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, &
                    request(messages + 2), ierror)
    do i = 3, messages
      call MPI_Isend(out(:, i), n, MPI_DOUBLE_PRECISION, other, i, MPI_COMM_WORLD, &
                     request(messages + i), ierror)
    end do
  end subroutine start_all

  subroutine check_arrived(i, round, what)
    integer, intent(in) :: i, round
    character(*), intent(in) :: what
    call check(all(in(:, i) == values(n, 100 * round + 10 * i + other)), what)
  end subroutine check_arrived

  subroutine one_by_one
    call start_all(1)
    do i = 1, messages
      if (i == 1) then
        call MPI_Wait(request(i), status, ierror)
      else
        flag = .false.
        do while (.not. flag)
          call MPI_Test(request(i), flag, status, ierror)
        end do
      end if
      call check(request(i) == MPI_REQUEST_NULL, 'a request that is over')
      call check_status(status, other, i, n, MPI_DOUBLE_PRECISION, 'wait, test')
      call check_arrived(i, 1, 'wait, test')
      call MPI_Test_cancelled(status, flag, ierror)
      call check(.not. flag, 'wait, test: not cancelled')
      call MPI_Wait(request(messages + i), MPI_STATUS_IGNORE, ierror)
    end do
  end subroutine one_by_one

  subroutine together
    call start_all(2)
    call MPI_Waitall(2 * messages, request, statuses, ierror)
    do i = 1, messages
      call check_status(STATUS_AT(statuses, i), other, i, n, MPI_DOUBLE_PRECISION, 'waitall')
      call check_arrived(i, 2, 'waitall')
    end do
    do i = 1, 2 * messages
      call check(request(i) == MPI_REQUEST_NULL, 'waitall: a request')
    end do
    call start_all(3)
    call MPI_Waitall(2 * messages, request, MPI_STATUSES_IGNORE, ierror)
    do i = 1, messages
      call check_arrived(i, 3, 'waitall, statuses ignored')
    end do
    call start_all(4)
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(2 * messages, request, flag, statuses, ierror)
    end do
    do i = 1, messages
      call check_status(STATUS_AT(statuses, i), other, i, n, MPI_DOUBLE_PRECISION, 'testall')
      call check_arrived(i, 4, 'testall')
    end do
  end subroutine together

  subroutine any_of_them
    call start_all(5)
    do left = 2 * messages, 1, -1
      if (mod(left, 2) == 0) then
        call MPI_Waitany(2 * messages, request, index, status, ierror)
      else
        flag = .false.
        do while (.not. flag)
          call MPI_Testany(2 * messages, request, index, flag, status, ierror)
        end do
      end if
      index = index - any_base + 1
      call check(index >= 1 .and. index <= 2 * messages, 'waitany, testany: the index')
      call check(request(index) == MPI_REQUEST_NULL, 'waitany, testany: the request')
      if (index <= messages) then
        call check_status(status, other, index, n, MPI_DOUBLE_PRECISION, 'waitany, testany')
        call check_arrived(index, 5, 'waitany, testany')
      end if
    end do
    call MPI_Waitany(2 * messages, request, index, status, ierror)
    call check(index < 0, 'waitany: nothing left')
  end subroutine any_of_them

  subroutine some_of_them
    integer :: k
    call start_all(6)
    left = 2 * messages
    do while (left > 0)
      if (mod(left, 2) == 0) then
        call MPI_Waitsome(2 * messages, request, done, indices, statuses, ierror)
      else
        call MPI_Testsome(2 * messages, request, done, indices, statuses, ierror)
      end if
      call check(done >= 0 .and. done <= left, 'waitsome, testsome: how many')
      do k = 1, done
        index = indices(k) - some_base + 1
        call check(request(index) == MPI_REQUEST_NULL, 'waitsome, testsome: the request')
        if (index > messages) cycle
        call check_status(STATUS_AT(statuses, k), other, index, n, MPI_DOUBLE_PRECISION, &
                          'waitsome, testsome')
        call check_arrived(index, 6, 'waitsome, testsome')
      end do
      left = left - done
    end do
    call MPI_Testsome(2 * messages, request, done, indices, statuses, ierror)
    call check(done == MPI_UNDEFINED, 'testsome: nothing left')
  end subroutine some_of_them

  ! Looking at a request makes its data readable and leaves it to be completed.
  subroutine looked_at
    call start_all(7)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(request(1), flag, status, ierror)
    end do
    call check(request(1) /= MPI_REQUEST_NULL, 'a request that was looked at')
    call check_status(status, other, 1, n, MPI_DOUBLE_PRECISION, 'request_get_status')
    call check_arrived(1, 7, 'request_get_status')
    call MPI_Waitall(2 * messages, request, statuses, ierror)
    call check_status(STATUS_AT(statuses, 1), other, 1, n, MPI_DOUBLE_PRECISION, 'after a look')
    call check_arrived(2, 7, 'after a look')
  end subroutine looked_at

  subroutine persistent
    integer :: round
    call MPI_Recv_init(in(:, 1), n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, request(1), &
                       ierror)
    call MPI_Send_init(out(:, 1), n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, request(2), &
                       ierror)
    do round = 1, 4
      in(:, 1) = 0
      out(:, 1) = values(n, 1000 * round + rank)
      if (mod(round, 2) == 0) then
        call MPI_Start(request(1), ierror)
        call MPI_Start(request(2), ierror)
        call MPI_Wait(request(1), status, ierror)
        call MPI_Wait(request(2), MPI_STATUS_IGNORE, ierror)
      else
        call MPI_Startall(2, request, ierror)
        call MPI_Waitall(2, request, statuses, ierror)
        status = STATUS_AT(statuses, 1)
      end if
      call check(request(1) /= MPI_REQUEST_NULL, 'persistent: the request')
      call check_status(status, other, 1, n, MPI_DOUBLE_PRECISION, 'persistent')
      call check(all(in(:, 1) == values(n, 1000 * round + other)), 'persistent')
    end do
    call MPI_Request_free(request(1), ierror)
    call MPI_Request_free(request(2), ierror)
    call check(request(1) == MPI_REQUEST_NULL, 'persistent: freed')
  end subroutine persistent

  subroutine cancelled
    in(:, 1) = 7
    call MPI_Irecv(in(:, 1), n, MPI_DOUBLE_PRECISION, other, 77, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Cancel(request(1), ierror)
    call MPI_Wait(request(1), status, ierror)
    call MPI_Test_cancelled(status, flag, ierror)
    call check(flag, 'cancelled')
    call check(all(in(:, 1) == 7), 'cancelled: the buffer')
  end subroutine cancelled

  ! What a freed request receives may be read after the next barrier.
  subroutine freed
    in(:, 1) = 0
    out(:, 1) = values(n, rank)
    call MPI_Irecv(in(:, 1), n, MPI_DOUBLE_PRECISION, other, 8, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Request_free(request(1), ierror)
    call check(request(1) == MPI_REQUEST_NULL, 'freed')
    call MPI_Isend(out(:, 1), n, MPI_DOUBLE_PRECISION, other, 8, MPI_COMM_WORLD, request(2), ierror)
    call MPI_Wait(request(2), MPI_STATUS_IGNORE, ierror)
    call MPI_Sendrecv(out, 1, MPI_DOUBLE_PRECISION, other, 8, in(1, 2), 1, MPI_DOUBLE_PRECISION, &
                      other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    do i = 1, 1000
      if (all(in(:, 1) == values(n, other))) exit
      call MPI_Barrier(MPI_COMM_SELF, ierror)
    end do
    call check(all(in(:, 1) == values(n, other)), 'freed: the data')
  end subroutine freed
end program requests
