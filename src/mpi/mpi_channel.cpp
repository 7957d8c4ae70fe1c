#include "mpi/mpi_channel.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>

#include "mpi/calls/buffer_calls.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/peek.hpp"
#include "mpi/progress_hook.hpp"

namespace mpress::mpi {
namespace {

using Pending = link::Channel::Pending;

template <typename Handle>
Handle handle_of(std::uintptr_t bits) {
  Handle handle;
  std::memcpy(&handle, &bits, sizeof handle);
  return handle;
}

Pending started(int code, MPI_Request request, const char* what, int rank) {
  if (code != MPI_SUCCESS) {
    fatal(std::string("MPI refused to ") + what + " rank " + std::to_string(rank) +
          " of a private communicator");
  }
  return {handle_bits(request)};
}

/// A combination that MPI refuses is over, and has failed.
Pending started(int code, MPI_Request request) {
  return {handle_bits(code == MPI_SUCCESS ? request : MPI_REQUEST_NULL)};
}

}  // namespace

void MpiChannel::open(MPI_Comm comm, std::uint64_t tags) {
  comm_ = comm;
  tags_ = tags;
  calls().Comm_size(comm_, &size_);
}

Pending MpiChannel::send(const std::byte* data, std::size_t bytes, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = calls().Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &request);
  return started(code, request, "send to", to);
}

Pending MpiChannel::receive(std::byte* place, std::size_t bytes, int from, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      calls().Irecv(place, static_cast<int>(bytes), MPI_BYTE, from, tag, comm_, &request);
  return started(code, request, "receive from", from);
}

gpu::State MpiChannel::poll(Pending& one, std::size_t* received) {
  MPI_Request request = handle_of<MPI_Request>(one.handle);
  if (request == MPI_REQUEST_NULL) return gpu::State::failed;
  int is_over = 0;
  MPI_Status status;
  const int code = test(&request, &is_over, &status);
  one.handle = handle_bits(request);
  if (code != MPI_SUCCESS) return gpu::State::failed;
  if (!is_over) return gpu::State::pending;
  if (received) *received = static_cast<std::size_t>(counted::bytes_of(status));
  return gpu::State::done;
}

/// A probe lets MPI proceed, which its progress engine must not.
std::optional<link::Channel::Found> MpiChannel::find(int tag) {
  if (in_progress_hook()) return std::nullopt;
  int is_there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  calls().Improbe(MPI_ANY_SOURCE, tag == any_tag ? MPI_ANY_TAG : tag, comm_, &is_there, &message,
                  &status);
  if (!is_there) return std::nullopt;
  return Found{status.MPI_SOURCE, static_cast<std::size_t>(counted::bytes_of(status)),
               handle_bits(message)};
}

void MpiChannel::take(const Found& found, std::byte* place, std::size_t room) {
  auto message = handle_of<MPI_Message>(found.handle);
  const std::size_t bytes = std::min(found.bytes, room);
  calls().Mrecv(place, static_cast<int>(bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

Pending MpiChannel::add_up(std::span<const std::uint64_t> for_each, std::uint64_t* own) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = calls().Ireduce_scatter_block(for_each.data(), own, 1, MPI_UINT64_T, MPI_SUM,
                                                 comm_, &request);
  return started(code, request);
}

Pending MpiChannel::greatest(std::span<std::uint64_t> numbers) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      buffer_calls().Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()),
                                MPI_UINT64_T, MPI_MAX, comm_, &request);
  return started(code, request);
}

Pending MpiChannel::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = calls().Ibarrier(comm_, &request);
  return started(code, request);
}

}  // namespace mpress::mpi
