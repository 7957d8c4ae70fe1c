#include "pipeline/launch_batch.hpp"

#include <algorithm>
#include <utility>

#include "core/runtime.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {

std::size_t Launch::add(std::span<const gpu::Piece> pieces) {
  const std::size_t first = pieces_.size();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces_.push_back({pieces[i]});
    order_.push_back({i, first + i});
  }
  return first;
}

void Launch::launch() {
  is_launched_ = true;
  launched_ns_ = trace::now_ns();
  std::ranges::stable_sort(order_, {}, &Turn::chunk);
  std::vector<gpu::Piece> wanted;
  std::vector<Given*> given;
  const auto flush = [&] {
    if (wanted.empty()) return;
    gpu::Event event = queue_->codecs().encode(spec_, type_, wanted, range_);
    for (Given* const one : given) one->event = event++;
    wanted.clear();
    given.clear();
  };
  for (const Turn& turn : order_) {
    Given& one = pieces_[turn.piece];
    if (one.is_withdrawn) continue;
    wanted.push_back(one.piece);
    given.push_back(&one);
    if (wanted.size() == gpu::CodecQueue::most_pieces) flush();
  }
  flush();
}

gpu::State Launch::query(std::size_t piece, gpu::Outcome* outcome) {
  return is_launched_ ? queue_->query(pieces_[piece].event, outcome) : gpu::State::pending;
}

void Launch::withdraw(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) pieces_[i].is_withdrawn = true;
  if (is_launched_) queue_->drain();
}

std::shared_ptr<Launch> LaunchBatch::add(const Region& region, const Spec& spec, ElementType type,
                                         std::span<const gpu::Piece> pieces, std::size_t& first) {
  const int device = region.device;
  auto found = std::ranges::find_if(
      launches_, [&](const auto& launch) { return launch->is_for(device, spec, type); });
  if (found == launches_.end()) {
    QueueLease queue = runtime_.devices.queue(device);
    if (!queue) return nullptr;
    launches_.push_back(
        std::make_shared<Launch>(std::move(queue), spec, type, codec::RangeOf::segment));
    found = launches_.end() - 1;
  }
  if (region.behind) (*found)->queue().wait_for(*region.behind);
  first = (*found)->add(pieces);
  ++added_;
  return *found;
}

void LaunchBatch::launch() {
  for (const auto& launch : launches_) launch->launch();
  launches_.clear();
}

}  // namespace mpress::engine
