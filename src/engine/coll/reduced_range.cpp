// What members of a reduction with a bound on the error tell each other first: the range of what
// they bring, from which all find the same way to encode it.

#include <algorithm>
#include <cmath>
#include <new>

#include "codec/szp/format.hpp"
#include "engine/coll/reduced_call.hpp"
#include "engine/job.hpp"
#include "engine/p2p/send_message.hpp"
#include "mpi/type_info.hpp"
#include "policy/chunks.hpp"

namespace mpress::engine {
namespace {

// Told::flags.
constexpr std::uint32_t pays_flag = 1;
constexpr std::uint32_t finite_flag = 2;  ///< there are finite elements
constexpr std::uint32_t device_flag = 4;  ///< they lie on a device
constexpr std::uint32_t known_flag = 8;   ///< their range is known

/// Of the host's window: what all members bring together, to go in windows.
constexpr double least_of_window = 0.25;

}  // namespace

/// Is a piece worth encoding on its way from this rank to the member that is hardest to reach?
bool ReducedCall::pays() const {
  if (job_.config.force) return true;  // what is to be timed could go as it is
  const int me = context_.rank();
  int peer = me == 0 ? 1 : 0;
  for (int other = 0; other < context_.size(); ++other) {
    if (!context_.share_host(me, other)) peer = other;
  }
  const SendArguments arguments{input_, static_cast<MPI_Count>(reduction_.count) / context_.size(),
                                reduction_.mpi_type(), peer, context_.comm()};
  const auto type = mpi::type_info(arguments.type);
  const auto comm = mpi::comm_info(arguments.comm);
  if (!type || !comm) return false;
  const SendCall call{called(), call_.family, true};
  const Location place = locate(job_, arguments.buffer, *type);
  const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
  const Message message{call,         arguments,        *type, *comm, comm->world_rank(peer), bytes,
                        place.device, place.is_readable};
  return choose(job_, message, false).spec.codec != Codec::none;
}

/// What Coding::share_in_windows is to be, where it were this rank's alone to say.
double ReducedCall::share_in_windows() const {
  if (!served_.is_blocking || Backoff::is_crowded() || !job_.host_link.is_open()) return 0;
  const auto comm = mpi::comm_info(context_.comm());
  std::vector<int> others;
  double share = 0;
  for (int rank = 0; comm && rank < context_.size(); ++rank) {
    if (rank == context_.rank()) continue;
    others.push_back(context_.world_rank(rank));
    const std::size_t piece = static_cast<std::size_t>(elements_of(rank)) * width();
    share = std::max(share, comm->ratios->wire_per_raw(spec_.codec, reduction_.type, piece));
  }
  const std::size_t bytes = static_cast<std::size_t>(reduction_.count) * width();
  if (share == 0 || link_to(job_, home_, bytes, others) != link::Kind::host) return 0;
  const double brought = share * static_cast<double>(bytes * others.size());
  return brought > static_cast<double>(job_.host_window) * least_of_window ? share : 0;
}

/// Do results go where the input lies? By MPI only in place.
bool ReducedCall::is_overwritten() const {
  const std::size_t bytes = static_cast<std::size_t>(reduction_.count) * width();
  return reduction_.is_in_place || (input_ < results() + bytes && results() < input_ + bytes);
}

/// May a joint sum begin before the range is known? Not where it could not be made again. Where
/// members do not find the same they look for the range after all.
bool ReducedCall::may_be_blind() const {
  if (spec_.bound != Bound::abs || goal_ != Goal::all || code_ != MPI_SUCCESS ||
      home_ == gpu::host || is_overwritten() || !may_add_jointly()) {
    return false;
  }
  using namespace codec::szp;
  const auto grid = blind_grid(reduction_.type, spec_.value, context_.size());
  if (!grid || !resolvable(reduction_.type, grid->bound)) return false;
  JointMemories& memories = JointMemories::of(job_, context_);
  return memories.coded_sums.is_open() && memories.blind_sums.may_begin();
}

/// What this rank brings; then the exchange begins.
void ReducedCall::begin_measuring() {
  const auto count = static_cast<std::size_t>(reduction_.count);
  if (code_ != MPI_SUCCESS) range_ = codec::Range{};
  if (home_ == gpu::host && !range_) {
    range_ = codec::finite_range(reduction_.type, input_, count);
  }
  if (range_) return begin_exchange();
  extent_ = job_.devices.take_pinned(home_, sizeof(Extent));
  queue_ = job_.devices.queue(home_);
  if (!extent_ || !queue_) {
    note(short_of_memory(job_, home_));
    range_ = codec::Range{};
    return begin_exchange();
  }
  auto* const extent = new (extent_.data()) Extent;
  event_ = queue_->extent(reduction_.type, input_, count, extent, 1);
  phase_ = Phase::measuring;
}

/// Then the exchange begins.
bool ReducedCall::is_measured() {
  const gpu::State state = queue_->query(event_);
  if (state == gpu::State::pending) return false;
  range_ = codec::Range{};
  if (state == gpu::State::failed) {
    note(refused(job_, home_));
  } else {
    range_ = codec::range_of(*reinterpret_cast<const Extent*>(extent_.data()));
  }
  queue_ = {};
  extent_.reset();
  begin_exchange();
  return true;
}

void ReducedCall::begin_exchange() {
  const codec::Range range = range_.value_or(codec::Range{});
  const auto members = static_cast<std::size_t>(context_.size());
  // What paid once in a call does so again: all members have blind results, or none.
  const std::uint32_t flags = (has_blind_results_ || pays() ? pays_flag : 0) |
                              (range.any_finite ? finite_flag : 0) |
                              (home_ != gpu::host ? device_flag : 0) | (range_ ? known_flag : 0);
  const std::size_t chunk_bytes = job_.chunks.is_open() ? job_.chunks.chunk_bytes() : 0;
  told_.assign(members, {});
  Told& told = told_[static_cast<std::size_t>(context_.rank())];
  told = {range.min, range.max, share_in_windows(), chunk_bytes, flags, {}};
  offer_jointly(told);
  phase_ = Phase::exchanging;
  movement_ = share_with_all(told_.data(), sizeof(Told));
}

/// All members find the same, from what all have told.
void ReducedCall::conclude_exchange() {
  codec::Range range;
  bool pays = false, are_on_devices = true, are_known = true;
  are_any_known_ = false;
  bool is_in_windows = true;
  double share = 0;
  std::uint64_t chunk_bytes = told_.front().chunk_bytes;
  for (const Told& one : told_) {
    range.join({one.min, one.max, (one.flags & finite_flag) != 0, false});
    pays = pays || (one.flags & pays_flag) != 0;
    are_on_devices = are_on_devices && (one.flags & device_flag) != 0;
    are_known = are_known && (one.flags & known_flag) != 0;
    is_in_windows = is_in_windows && one.share_in_windows > 0;
    share = std::max(share, one.share_in_windows);
    are_any_known_ = are_any_known_ || (one.flags & known_flag) != 0;
    chunk_bytes = std::min(chunk_bytes, one.chunk_bytes);
  }
  const double bound = spec_.bound == Bound::rel ? spec_.value * range.width() : spec_.value;
  coding_ = Coding{no_codec(), true};
  is_blind_ = is_beyond_ = adds_quanta_ = false;
  loss_ = {};
  if (!pays && !is_reproducible_) return;
  is_blind_ = !are_known;
  const bool is_sum = reduction_.how == codec::Combine::sum;
  using codec::szp::Grid;
  // Where the bound is known, sums with and without the range go by one grid.
  const bool is_known = is_sum && spec_.bound == Bound::abs;
  const double covered =
      is_known ? codec::szp::covered(reduction_.type, bound, context_.size()) : 0;
  const double greatest = std::max(std::fabs(range.min), std::fabs(range.max));
  const double most = most_ = std::max(greatest, covered);
  if (has_blind_results_) {
    const auto blind = codec::szp::blind_grid(reduction_.type, bound, context_.size());
    is_beyond_ = greatest > codec::szp::reached(*blind);
  }
  const std::optional<Grid> part =
      is_sum ? codec::szp::summand_grid(reduction_.type, bound, context_.size(), most)
             : std::optional<Grid>(bound);
  if (!part || !(part->bound > 0) || !codec::szp::resolvable(reduction_.type, part->bound)) {
    coding_.spec.codec = Codec::mpc;  // nothing is lost, and so no bound is exceeded
    return;
  }
  coding_.spec = spec_;
  coding_.spec.bound = Bound::abs;
  coding_.spec.value = part->bound;
  coding_.spec.slack = part->slack;
  coding_.chunk_bytes = chunk_bytes;
  coding_.is_for_devices = are_on_devices;
  coding_.share_in_windows = is_in_windows ? share : 0;
  coding_.is_summed = adds_quanta_ = is_sum;
  const double delivered =
      is_sum ? codec::szp::bound_of_sum(reduction_.type, *part, context_.size(), most)
             : part->bound;
  loss_ = {true, delivered};
}

}  // namespace mpress::engine
