// A reduction of data on devices of one host that reach each other's memory, without a message:
// each member copies what it brings to slots of the peer link, which its device publishes, and a
// kernel of each reader combines it where it lies.
//
// In one shot each member combines all that it wants. In two each combines a piece, in other slots,
// and all read the pieces.
//
// States (docs/dev/reductions.md has them as a table):
// - offering, until all members have told whether they can, and in which slots;
// - combining: its device copies what this member brings; until what the others bring is there, and
// has been combined;
// - reading: in two shots, until the others' pieces are there, and have been copied;
// - ending: nothing is missing, but the device still works;
// - over.
//
// Hosts launch every kernel, and none waits on the device for another member. So members may share
// a device, and a program's kernels may fill it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coll/call_here.hpp"
#include "coll/offered_call.hpp"
#include "core/devices.hpp"
#include "link/link.hpp"
#include "policy/linked.hpp"

namespace mpress::engine {

class LinkedReduction final : public OfferedCall {
 public:
  /// Of one that linked_reduction applies to.
  explicit LinkedReduction(const CallHere& here);
  ~LinkedReduction() override;

  /// Finds slots for this member's contribution. The offer has the routes to its input and to its
  /// piece.
  Offer offer() override;

  /// Gives the device the first of its work. In two shots the member's piece is made by the first
  /// call after the others' inputs have come.
  Answer accept(std::span<const std::uint64_t> told) override;

  bool advance() override;
  trace::Called called() const override;

 private:
  enum class Phase : unsigned char { offering, combining, reading, ending, over };
  /// Who gets the result.
  enum class Goal : unsigned char { all, root, each };

  /// What another member has made readable.
  struct Source {
    int member;
    std::unique_ptr<link::Inbound> inbound = nullptr;
    link::Arrived arrived = {};
    bool has_come = false;
  };

  static Goal goal_of(const Collective& call);
  bool reads(int rank) const;
  std::size_t bytes_read(int by, int from) const;
  bool open();
  bool reserve(std::size_t bytes, link::Transfer& transfer);
  std::uint64_t route_to(const link::Transfer& transfer) const;
  void receive(std::vector<Source>& sources, int member, std::uint64_t word, std::size_t bytes);
  bool have_come(std::vector<Source>& sources);
  std::uint32_t* flag_of(const link::Transfer& transfer, std::size_t bytes);
  void combine();
  void read_pieces();
  bool end();
  void withdraw();
  std::size_t width() const { return element_size(reduction_.type); }
  std::size_t input_bytes() const { return reduction_.count * width(); }
  std::size_t begin_of(int rank) const {
    return static_cast<std::size_t>(begins_[static_cast<std::size_t>(rank)]) * width();
  }
  std::size_t piece_bytes(int rank) const { return begin_of(rank + 1) - begin_of(rank); }
  bool has_readers() const { return !readers_.empty(); }
  std::uint32_t index_at(int member) const;

  link::MemoryLink& link_;
  const int root_;
  void* const program_results_;
  const Goal goal_;
  const Reduction reduction_;
  const policy::Shots shots_;
  const std::vector<std::int64_t> begins_;  ///< of pieces, in elements
  std::vector<int> readers_;                ///< of what this member brings, in MPI_COMM_WORLD
  Phase phase_ = Phase::offering;
  int device_ = gpu::host;
  const std::byte* input_ = nullptr;
  std::byte* results_ = nullptr;
  link::Transfer own_input_, own_piece_;
  std::vector<Source> inputs_, pieces_;
  gpu::Event last_ = 0;
  QueueLease queue_;
};

}  // namespace mpress::engine
