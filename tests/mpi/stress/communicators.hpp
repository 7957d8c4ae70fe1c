// The communicators of a stream as MPI has them.
#pragma once

#include <vector>

#include "mpi_calls.hpp"
#include "plan.hpp"

namespace stress {

class Communicators {
 public:
  /// `root` is the stream's own duplicate of MPI_COMM_WORLD.
  Communicators(int rank, MPI_Comm root) : rank_(rank), root_(root) {}

  /// Frees those of another epoch, and makes what is missing.
  void prepare(const std::vector<Comm>& plan, int epoch);

  /// MPI_COMM_NULL where this rank is not a member.
  MPI_Comm handle(int comm) const { return handles_[static_cast<std::size_t>(comm)]; }
  MPI_Comm root() const { return root_; }

  /// For the members of a communicator.
  void free(int comm);

  /// For everybody, after a round in which the members freed these.
  void forget(const std::vector<int>& freed);

  /// Frees all but the first two.
  void free_all();

 private:
  void make(int comm);
  MPI_Comm make_halves(const Comm& comm) const;

  int rank_;
  MPI_Comm root_;
  int epoch_ = -1;
  std::vector<Comm> plan_;
  std::vector<MPI_Comm> handles_;
  std::vector<bool> exists_;
};

}  // namespace stress
