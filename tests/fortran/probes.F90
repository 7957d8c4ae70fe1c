! Messages that are looked at before they are received.
#include "binding.inc"
program probes
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 15000
  real(4) :: out(n, 4), in(n)
  integer :: rank, other, ierror, count, i
  logical :: flag
  MESSAGE :: message
  REQUEST :: request, sends(4)
  STATUS(status)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  do i = 1, 4
    out(:, i) = real(values(n, 10 * i + rank), 4)
    call MPI_Isend(out(1, i), n - i, MPI_REAL, other, i, MPI_COMM_WORLD, sends(i), ierror)
  end do

  call MPI_Probe(other, 1, MPI_COMM_WORLD, status, ierror)
  call check_status(status, other, 1, n - 1, MPI_REAL, 'probe')
  call MPI_Get_count(status, MPI_REAL, count, ierror)
  in = 0
  call MPI_Recv(in, count, MPI_REAL, SOURCE_OF(status), TAG_OF(status), MPI_COMM_WORLD, status, &
                ierror)
  call check_arrived(1, 'recv after probe')

  flag = .false.
  do while (.not. flag)
    call MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, flag, status, ierror)
  end do
  call check_status(status, other, 2, n - 2, MPI_REAL, 'iprobe')
  call MPI_Irecv(in, n, MPI_REAL, other, 2, MPI_COMM_WORLD, request, ierror)
  call MPI_Wait(request, status, ierror)
  call check_arrived(2, 'irecv after iprobe')

  call MPI_Mprobe(other, 3, MPI_COMM_WORLD, message, status, ierror)
  call check(message /= MPI_MESSAGE_NULL, 'mprobe: the message')
  call check_status(status, other, 3, n - 3, MPI_REAL, 'mprobe')
  call MPI_Mrecv(in, n, MPI_REAL, message, status, ierror)
  call check(message == MPI_MESSAGE_NULL, 'mrecv: the message')
  call check_arrived(3, 'mrecv')

  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(other, MPI_ANY_TAG, MPI_COMM_WORLD, flag, message, status, ierror)
  end do
  call check_status(status, other, 4, n - 4, MPI_REAL, 'improbe')
  call MPI_Imrecv(in, n, MPI_REAL, message, request, ierror)
  call check(message == MPI_MESSAGE_NULL, 'imrecv: the message')
  call MPI_Wait(request, status, ierror)
  call check_arrived(4, 'imrecv')

  call MPI_Waitall(4, sends, MPI_STATUSES_IGNORE, ierror)
  call matched_out_of_order
  call from_nobody
  call finish(rank)

contains

  subroutine check_arrived(tag, what)
    integer, intent(in) :: tag
    character(*), intent(in) :: what
    call check_status(status, other, tag, n - tag, MPI_REAL, what)
    call check(all(in(:n - tag) == real(values(n - tag, 10 * tag + other), 4)), what)
  end subroutine check_arrived

  ! Two matched messages are held at once and received in the other order.
  subroutine matched_out_of_order
    MESSAGE :: held(2)
    do i = 1, 2
      call MPI_Isend(out(1, i), n - i, MPI_REAL, other, i, MPI_COMM_WORLD, sends(i), ierror)
    end do
    do i = 1, 2
      call MPI_Mprobe(other, i, MPI_COMM_WORLD, held(i), status, ierror)
    end do
    call check(held(1) /= held(2), 'two messages')
    do i = 2, 1, -1
      call MPI_Mrecv(in, n, MPI_REAL, held(i), status, ierror)
      call check_arrived(i, 'matched out of order')
    end do
    call MPI_Waitall(2, sends, MPI_STATUSES_IGNORE, ierror)
  end subroutine matched_out_of_order

  subroutine from_nobody
    call MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, message, status, ierror)
    call check(message == MPI_MESSAGE_NO_PROC, 'mprobe: from nobody')
    call MPI_Mrecv(in, n, MPI_REAL, message, status, ierror)
    call check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, MPI_REAL, 'mrecv: from nobody')
  end subroutine from_nobody
end program probes
