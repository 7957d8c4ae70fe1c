// A channel by messages on a private communicator.
#pragma once

#include "link/channel/channel.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

class MpiChannel final : public link::Channel {
 public:
  /// `comm` is private to mpress, returns errors, and stays the caller's. The channel's tags lie
  /// below `tags`; others may use those above.
  void open(MPI_Comm comm, std::uint64_t tags);

  int size() const override { return size_; }
  std::uint64_t tags() const override { return tags_; }
  Pending send(const std::byte* data, std::size_t bytes, int to, int tag) override;
  Pending receive(std::byte* place, std::size_t bytes, int from, int tag) override;
  gpu::State poll(Pending& one, std::size_t* received) override;
  std::optional<Found> find(int tag) override;
  void take(const Found& found, std::byte* place, std::size_t room) override;
  Pending add_up(std::span<const std::uint64_t> for_each, std::uint64_t* own) override;
  Pending greatest(std::span<std::uint64_t> numbers) override;
  Pending barrier() override;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int size_ = 0;
  std::uint64_t tags_ = 0;
};

}  // namespace mpress::mpi
