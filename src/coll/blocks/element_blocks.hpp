// Blocks of elements without gaps, as reductions move them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "coll/blocks/block_map.hpp"

namespace mpress::engine {

/// Blocks in one piece of memory, in elements: `number` of `count` each, one behind the other; or,
/// where there are arrays, which outlive it, block i of `counts[i]` from `begins[i]` on.
struct ElementSpans {
  void* data = nullptr;
  int number = 0;
  std::int64_t count = 0;
  std::span<const std::int64_t> counts = {}, begins = {};
};

/// Of a gather, an all-gather or an all-to-all.
class ElementBlocks final : public BlockMap {
 public:
  /// Which block of `received` one of an all-to-all becomes, where that is not the one of its
  /// origin: a rank may receive several of one origin.
  using Place = std::function<int(schedule::Block)>;

  /// `sent`: of a gather and an all-gather one block; of an all-gather in place none.
  ElementBlocks(const schedule::Task& task, int rank, std::shared_ptr<const Layout> layout,
                const ElementSpans& sent, const ElementSpans& received, Place place = {})
      : BlockMap(task),
        rank_(rank),
        layout_(std::move(layout)),
        sent_(sent),
        received_(received),
        place_(std::move(place)) {}

  BlockData outgoing(schedule::Block block) const override {
    if (task().op == schedule::Op::alltoall) {
      return data_of(sent_, static_cast<int>(block % static_cast<schedule::Block>(task().size)));
    }
    const bool is_own = static_cast<int>(block) == rank_ && sent_.number > 0;
    return is_own ? data_of(sent_, 0) : incoming(block);
  }

  BlockData incoming(schedule::Block block) const override {
    if (task().op != schedule::Op::alltoall) return data_of(received_, static_cast<int>(block));
    const auto origin = static_cast<int>(block / static_cast<schedule::Block>(task().size));
    return data_of(received_, place_ ? place_(block) : origin);
  }

 private:
  BlockData data_of(const ElementSpans& spans, int i) const {
    if (i >= spans.number) return {};
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t count = spans.counts.empty() ? spans.count : spans.counts[at];
    const std::int64_t begin = spans.begins.empty() ? i * spans.count : spans.begins[at];
    if (count <= 0) return {};
    const std::size_t width = layout_->size;
    const std::size_t bytes = static_cast<std::size_t>(count) * width;
    if (!spans.data) return {nullptr, 0, layout_, bytes};
    return {static_cast<std::byte*>(spans.data) + static_cast<std::size_t>(begin) * width, count,
            layout_, bytes};
  }

  const int rank_;
  const std::shared_ptr<const Layout> layout_;
  const ElementSpans sent_, received_;
  const Place place_;
};

}  // namespace mpress::engine
