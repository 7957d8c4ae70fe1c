#include "coll/reduce/range_exchange.hpp"

#include <algorithm>

#include "codec/float_environment.hpp"
#include "message/block.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

/// Is a piece worth encoding on its way from this rank?
bool RangeExchange::pays() const {
  if (task_.messaging.config.force || task_.served.encodes) return true;
  return would_encode(task_.messaging, task_.call, run_.longest_contribution(), task_.team, false);
}

/// ContributionSummary::share.
double RangeExchange::share_in_windows() const {
  Messaging& messaging = task_.messaging;
  const Team& team = task_.team;
  if (!task_.served.is_blocking || Backoff::is_oversubscribed() ||
      !messaging.links.host.is_open()) {
    return 0;
  }
  const Reduction& reduction = task_.reduction;
  std::vector<int> others;
  double share = 0;
  for (int rank = 0; rank < team.size(); ++rank) {
    if (rank == team.rank()) continue;
    others.push_back(team.world_rank(rank));
    const auto count = static_cast<std::size_t>(task_.counts[static_cast<std::size_t>(rank)]);
    compute([&] {
      share = std::max(share, team.settings().ratios->wire_per_raw(task_.spec.codec, reduction.type,
                                                                   count * reduction.width()));
    });
  }
  const bool is_by_host =
      link_to(messaging, run_.device, reduction.bytes(), others) == link::Kind::host;
  return is_by_host ? share : 0;
}

void RangeExchange::measure() {
  OwnRange& range = run_.range;
  if (!run_.status.is_ok()) {
    range.set_empty();
  } else if (!range.is_known()) {
    range.begin(task_.reduction.type, run_.input, task_.reduction.count, run_.device);
  }
  if (range.advance()) exchange();
}

void RangeExchange::exchange() {
  using Summary = ContributionSummary;
  const Messaging& messaging = task_.messaging;
  run_.note(run_.range.status());
  const codec::Range range = run_.range.value();
  // Encoding that paid once in a call does so again: all members have blind results, or none.
  const std::uint64_t flags = (kernel_.has_blind_results() || pays() ? Summary::pays : 0) |
                              (range.any_finite ? Summary::is_finite : 0) |
                              (run_.device != gpu::host ? Summary::is_on_device : 0) |
                              (run_.range.is_known() ? Summary::is_known : 0);
  const std::size_t chunk_bytes = messaging.chunks.is_open() ? messaging.chunks.chunk_bytes() : 0;
  const double share = share_in_windows();
  const double windows = compute([&] {
    const double all =
        share * static_cast<double>(task_.reduction.bytes()) * (task_.team.size() - 1);
    return share > 0 ? all / static_cast<double>(messaging.host_window) : 0;
  });
  summaries_.assign(static_cast<std::size_t>(task_.team.size()), {});
  Summary& own = summaries_[static_cast<std::size_t>(task_.team.rank())];
  own = {range.min, range.max, share, windows, chunk_bytes, flags, {}, {}};
  kernel_.offer(own);
  movement_ = run_.all_gather(summaries_.data(), sizeof(Summary));
}

bool RangeExchange::advance() {
  if (!movement_) {
    if (!run_.range.advance()) return false;
    exchange();
  }
  if (!movement_->runner().advance()) return false;
  run_.note(movement_->runner().status());
  movement_.reset();
  run_.agreed =
      BoundedCoding(summaries_, {task_.reduction.type, task_.reduction.how == codec::Combine::sum,
                                 task_.team.size(), task_.spec, task_.is_reproducible});
  return true;
}

}  // namespace mpress::engine
