// The first shot of a reduction: contributions travel to the owners of their pieces, as the blocks
// of an all-to-all do. Among several hosts with several ranks each, ranks combine what their host
// contributes to pieces of other hosts first, and these sums travel on (schedule/sums/host_sums).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/float_environment.hpp"
#include "coll/reduce/pieces.hpp"
#include "coll/reduce/reduction_run.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

class FirstShot {
 public:
  /// Begins. `modes`: those of the call.
  FirstShot(ReductionRun& run, FloatModes modes);
  FirstShot(const FirstShot&) = delete;
  FirstShot& operator=(const FirstShot&) = delete;

  /// Never waits. True once this rank has all contributions to its piece, and others have its own.
  bool advance();

  /// Before that: may the own piece be combined already, as its contributions come?
  bool may_combine() const;

  /// What this rank combines. The second shot combines the own piece.
  Pieces& pieces() { return pieces_; }

  // While they are under way:
  Movement* contributions() const { return contributions_.get(); }
  Movement* host_sums() const { return host_sums_.get(); }

 private:
  enum class Stage : unsigned char { contributing, combining_on_host, passing_on };

  void make_pieces(FloatModes modes);
  std::unique_ptr<Movement> movement(const ElementSpans& sent, schedule::Schedule schedule) const;
  bool advance_movements();
  bool may_overlap(std::span<const std::unique_ptr<PieceSum>> pieces) const;
  void combine_on_host();
  bool is_combined_on_host();
  void pass_on();

  ReductionRun& run_;
  const ReductionTask& task_;
  const schedule::Task alltoall_;
  const int window_;  ///< of the all-to-alls: messages under way at once
  Stage stage_ = Stage::contributing;
  Pieces pieces_;
  std::unique_ptr<Movement> contributions_;            ///< of a host, if hosts combine first
  std::unique_ptr<Movement> host_sums_;                ///< between hosts
  std::vector<std::int64_t> sum_counts_, sum_places_;  ///< of those, by owner, in elements
  memory::Buffer sums_;                                ///< their elements
};

}  // namespace mpress::engine
