// The second shot of a reduction: each rank combines its piece, and the results travel to the ranks
// that get them, as those of an all-gather or of a gather do; those of MPI_Reduce_scatter stay.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "coll/reduce/pieces.hpp"
#include "coll/reduce/reduction_run.hpp"
#include "memory/buffer_pool.hpp"
#include "message/block_decode.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class SecondShot {
 public:
  /// Begins to combine the own one of `pieces`.
  SecondShot(ReductionRun& run, Pieces& pieces);

  /// Never waits. True once all of the call's data is where it belongs. `is_first_over`: so is the
  /// first shot, of which some may still come until then.
  bool advance(bool is_first_over);

  /// Null while elements are combined, or where results stay.
  Movement* movement() const { return movement_.get(); }

 private:
  OpaqueBlock::StagingSlots staging_of_sum() const;
  void share();
  void finish();

  ReductionRun& run_;
  const ReductionTask& task_;
  Pieces& pieces_;
  PieceSum& own_;
  const BlockData wanted_;       ///< where the program has its results of the piece, if any
  schedule::Schedule schedule_;  ///< of results, until they travel
  memory::Buffer aside_;         ///< results that do not lie where the program wants any
  std::byte* result_ = nullptr;  ///< of the piece; null: it is not wanted here
  /// Where its elements lie, where the sum of payloads gives them beside its own.
  std::byte* decoded_ = nullptr;
  std::unique_ptr<Movement> movement_;
  std::optional<BlockDecode> decode_;  ///< of the own sum
  bool is_sharing_ = false;
};

}  // namespace mpress::engine
