// The messages of a measurement in MPI_Init.
#pragma once

#include <span>
#include <vector>

#include "core/learning/probe.hpp"
#include "link/pacer.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

class ProbeExchange final : public engine::ProbeExchange {
 public:
  /// `comm`: of all ranks, numbered as in MPI_COMM_WORLD.
  ProbeExchange(MPI_Comm comm, link::Pacer& pacer) : comm_(comm), pacer_(pacer) {}

  Took exchange(const engine::Partners& partners, std::size_t bytes) override;
  void find_greatest(std::span<std::uint64_t> numbers) override;

 private:
  const MPI_Comm comm_;
  link::Pacer& pacer_;
  std::vector<std::byte> out_, in_;
};

}  // namespace mpress::mpi
