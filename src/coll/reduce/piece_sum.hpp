// One piece of a reduction, where one rank combines what several bring to it: the piece that it
// owns, or, for its host, one that a rank on another host owns.
//
// What is brought comes as payloads of szp, which are added in quanta and never decoded on their
// way, or as elements. Which of both is known beforehand; of payloads, some may come as elements
// after all. The contribution of this rank itself is never encoded: it is quantised where it is
// added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/float_environment.hpp"
#include "coll/blocks/shared_blocks.hpp"
#include "coll/reduce/reduction.hpp"
#include "core/devices.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/chunking.hpp"
#include "pipeline/own_block.hpp"
#include "pipeline/received_block.hpp"

namespace mpress::engine {

class PieceSum {
 public:
  /// Of a call; what it refers to outlives the piece.
  struct Of {
    Messaging& messaging;
    const Reduction& reduction;
    const Coding& coding;
    FloatModes modes;  ///< of the call
    bool adds_quanta;
    bool is_reproducible;  ///< it has the same bits in any order of the sources
    int device;            ///< where all lies that is combined; or the host
    int self;              ///< this rank
  };

  /// `own`: the `count` elements that this rank contributes, which stay until the result is there,
  /// or lie where it comes. `sources`: the ranks that bring some, this one among them, ascending.
  PieceSum(const Of& of, int owner, const std::byte* own, std::int64_t count,
           std::vector<int> sources);
  PieceSum(const PieceSum&) = delete;
  PieceSum& operator=(const PieceSum&) = delete;

  int owner() const { return owner_; }
  std::span<const int> sources() const { return sources_; }
  /// Where this rank's elements lie.
  const std::byte* contribution() const { return own_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * width(); }

  /// Is it added up in quanta? What is shorter than any frame is not.
  bool has_payloads() const { return has_payloads_; }

  // What others bring comes to memory of the caller's, one behind the other, as kernels read it
  // well: in elements, each takes stride().

  std::int64_t count() const { return count_; }
  std::int64_t stride() const;
  /// Of a source other than this rank: 0, 1, ...
  int slot(int source) const;
  int slots() const { return static_cast<int>(sources_.size()) - 1; }
  void settle(const std::byte* memory) { brought_ = memory; }

  /// What those of `from` bring as payloads stays encoded. Before the first round of a schedule of
  /// alltoall's blocks among `ranks` ranks.
  void expect(SharedBlocks& shared, std::span<const int> from, int ranks);

  /// How the sum is cut, where that is one of payloads.
  Chunking cut() const;

  // Once it is known what all sources bring:

  /// Of payloads: begins to make the sum, an opaque block, in `staging` if that has a link.
  /// `decoded`: null, or where its elements go, too; not where this rank's own lie, which may be
  /// needed after all.
  void add(const OpaqueBlock::StagingSlots& staging, std::byte* decoded);
  const std::shared_ptr<OwnBlock>& sum() const { return sum_; }  ///< null: there is none

  /// Of elements: begins to combine them to `result`, in the order of the sources where that
  /// matters. It may be where this rank's own lie.
  void combine(std::byte* result);

  /// Lets either proceed, for a while. True once it is over.
  bool advance();

  /// The first failure.
  Status status() const { return status_; }

 private:
  std::size_t width() const { return element_size(of_.reduction.type); }
  std::size_t own_index() const;
  const std::byte* brought_by(std::size_t source) const;
  void combine_some();
  bool combine_on_device();
  bool is_in_any_order() const { return of_.is_reproducible || of_.adds_quanta; }
  codec::Grid grid() const;
  void give_in_order();
  bool give_in_any_order();
  void give(std::span<const void* const> inputs);
  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }

  const Of of_;
  const int owner_;
  const std::byte* const own_;
  const std::int64_t count_;
  const std::vector<int> sources_;
  const bool has_payloads_;
  const std::byte* brought_ = nullptr;
  std::vector<std::shared_ptr<ReceivedBlock>> opaque_;  ///< by source
  std::shared_ptr<OwnBlock> sum_;
  std::byte* result_ = nullptr;
  std::int64_t combined_;  ///< elements
  QueueLease queue_;       ///< of the device, while it combines
  gpu::Event event_ = 0;
  memory::Buffer inputs_;  ///< where the elements of all sources lie, as the device reads it
  Status status_;
};

}  // namespace mpress::engine
