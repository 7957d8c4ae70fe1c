#include "mpi/probe_exchange.hpp"

#include "trace/record.hpp"

namespace mpress::mpi {

ProbeExchange::Took ProbeExchange::exchange(const engine::Partners& partners, std::size_t bytes) {
  // The pages are there before the time is taken.
  if (out_.size() < bytes) out_.assign(bytes, std::byte{1});
  const std::size_t senders = partners.from.size();
  if (in_.size() < senders * bytes) in_.assign(senders * bytes, std::byte{0});
  std::vector<MPI_Request> requests(senders, MPI_REQUEST_NULL);
  const std::uint64_t begin = trace::now_ns();
  for (std::size_t i = 0; i < senders; ++i) {
    calls().Irecv(in_.data() + i * bytes, static_cast<int>(bytes), MPI_BYTE, partners.from[i], 0,
                  comm_, &requests[i]);
  }
  if (partners.to != engine::Partners::no_rank) {
    calls().Send(out_.data(), static_cast<int>(bytes), MPI_BYTE, partners.to, 0, comm_);
  }
  const std::uint64_t sent = trace::now_ns();
  calls().Waitall(static_cast<int>(senders), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; pacer_.active() && i < senders; ++i) pacer_.arrive(bytes, begin);
  const std::uint64_t end = trace::now_ns();
  return {(senders == 1 ? end : sent) - begin, end - begin};
}

void ProbeExchange::find_greatest(std::span<std::uint64_t> numbers) {
  calls().Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_UINT64_T,
                    MPI_MAX, comm_);
}

}  // namespace mpress::mpi
