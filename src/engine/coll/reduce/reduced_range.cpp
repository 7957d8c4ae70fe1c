// What members of a reduction with a bound on the error tell each other first: the range of what
// they bring, from which all find the same way to encode it.

#include <algorithm>

#include "codec/float_environment.hpp"
#include "engine/coll/contribution.hpp"
#include "engine/coll/reduce/reduced_call.hpp"
#include "message/message.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {

/// Is a piece worth encoding on its way from this rank?
bool ReducedCall::pays() const {
  if (job_.config.force || served_.encodes) return true;
  return would_encode(job_, call_, {own_piece(), spec_}, team_, false);
}

Part ReducedCall::own_piece() const {
  return longest_contribution(reduction_, input_, begins_, team_.rank());
}

/// ContributionSummary::share.
double ReducedCall::share_in_windows() const {
  if (!served_.is_blocking || Backoff::is_oversubscribed() || !job_.links.host.is_open()) return 0;
  const auto comm = mpi::comm_info(comm_of(team_));
  std::vector<int> others;
  double share = 0;
  for (int rank = 0; comm && rank < team_.size(); ++rank) {
    if (rank == team_.rank()) continue;
    others.push_back(team_.world_rank(rank));
    const std::size_t piece = static_cast<std::size_t>(elements_of(rank)) * width();
    compute([&] {
      share = std::max(share, comm->ratios->wire_per_raw(spec_.codec, reduction_.type, piece));
    });
  }
  return link_to(job_, home_, bytes(), others) == link::Kind::host ? share : 0;
}

/// Do results go where the input lies? By MPI only in place.
bool ReducedCall::is_overwritten() const {
  return reduction_.is_in_place || (input_ < results() + bytes() && results() < input_ + bytes());
}

/// May a joint sum begin before the range is known? Not where it could not be made again. Where
/// members do not find the same they look for the range after all.
bool ReducedCall::may_be_blind() const {
  if (goal_ != Goal::all || code_ != MPI_SUCCESS || home_ == gpu::host || is_overwritten() ||
      !may_add_jointly()) {
    return false;
  }
  if (spec_.bound == Bound::abs) {
    const auto grid = blind_grid();
    if (!grid || !codec::szp::resolvable(reduction_.type, grid->bound)) return false;
  } else if (!expected_grounds()) {
    return false;
  }
  return JointMemories::of(job_, team_).coded_sums.is_open() && blind_sums().may_begin(like());
}

/// Of a joint sum that begins before the range is known; with a bound that is absolute.
std::optional<codec::Grid> ReducedCall::blind_grid() const {
  return codec::szp::blind_grid(reduction_.type, spec_.value, team_.size());
}

BlindSums& ReducedCall::blind_sums() const { return JointMemories::of(job_, team_).blind_sums; }

/// What those of this sum, which may be added jointly, are expected to be; with a bound that is
/// relative.
std::optional<codec::szp::Grounds> ReducedCall::expected_grounds() const {
  if (spec_.bound != Bound::rel) return std::nullopt;
  return blind_sums().expected(like());
}

/// What this rank brings; then the exchange begins.
void ReducedCall::begin_measuring() {
  phase_ = Phase::measuring;
  if (code_ != MPI_SUCCESS) {
    range_.set_empty();
  } else if (!range_.is_known()) {
    range_.begin(reduction_.type, input_, static_cast<std::size_t>(reduction_.count), home_);
  }
  if (range_.advance()) begin_exchange();
}

void ReducedCall::begin_exchange() {
  note(range_.code());
  const codec::Range range = range_.value();
  // What paid once in a call does so again: all members have blind results, or none.
  const std::uint64_t flags = (has_blind_results_ || pays() ? ContributionSummary::pays : 0) |
                              (range.any_finite ? ContributionSummary::is_finite : 0) |
                              (home_ != gpu::host ? ContributionSummary::is_on_device : 0) |
                              (range_.is_known() ? ContributionSummary::is_known : 0);
  const std::size_t chunk_bytes = job_.chunks.is_open() ? job_.chunks.chunk_bytes() : 0;
  told_.assign(static_cast<std::size_t>(team_.size()), {});
  ContributionSummary& told = told_[static_cast<std::size_t>(team_.rank())];
  const double share = share_in_windows();
  const double windows = compute([&] {
    const double all = share * static_cast<double>(bytes()) * (team_.size() - 1);
    return share > 0 ? all / static_cast<double>(job_.host_window) : 0;
  });
  told = {range.min, range.max, share, windows, chunk_bytes, flags, {}, {}};
  if (!range_.is_known()) told.expected = expected_grounds().value_or(codec::szp::Grounds{});
  offer_jointly(told);
  phase_ = Phase::exchanging;
  movement_ = share_with_all(told_.data(), sizeof(ContributionSummary));
}

/// All members find the same, from what all have told.
void ReducedCall::conclude_exchange() {
  agreed_ = BoundedCoding(told_, {reduction_.type, reduction_.how == codec::Combine::sum,
                                  team_.size(), spec_, is_reproducible_});
  const bool is_known = agreed_.adds_quanta && !agreed_.is_blind;
  if (spec_.bound == Bound::rel && is_known && may_add_jointly() && do_quanta_travel()) {
    blind_sums().learn(like(), agreed_.grounds);
  }
}

}  // namespace mpress::engine
