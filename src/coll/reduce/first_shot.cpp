#include "coll/reduce/first_shot.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "message/messaging.hpp"
#include "policy/methods.hpp"
#include "schedule/moves/pairwise.hpp"
#include "schedule/sums/host_sums.hpp"

namespace mpress::engine {

FirstShot::FirstShot(ReductionRun& run, FloatModes modes)
    : run_(run),
      task_(run.task),
      alltoall_{schedule::Op::alltoall, task_.team.size()},
      window_(std::min(policy::most_at_once, task_.team.size() - 1)) {
  const int me = task_.team.rank();
  const schedule::Hosts& hosts = task_.team.hosts();
  const bool is_by_host = task_.is_by_host();
  make_pieces(modes);
  contributions_ = movement(task_.pieces(run_.input),
                            is_by_host ? schedule::host_sums_within(alltoall_, me, hosts, window_)
                                       : schedule::scattered_alltoall(alltoall_, me, window_));
  if (!run_.status.is_ok()) return;
  Runner& runner = contributions_->runner();
  const std::span<const int> near = hosts.members(hosts.host(me));
  for (const std::unique_ptr<PieceSum>& piece : pieces_.all()) {
    piece->expect(runner.shared(), is_by_host ? near : piece->sources(), task_.team.size());
  }
  runner.advance();  // others wait for what it encodes
}

/// And allocates the memory that others' contributions come to.
void FirstShot::make_pieces(FloatModes modes) {
  Messaging& messaging = task_.messaging;
  const std::size_t width = task_.reduction.width();
  const auto make = [&] {
    const bool adds_quanta = run_.agreed.adds_quanta && run_.status.is_ok();
    pieces_.make({messaging, task_.reduction, run_.agreed.coding, modes, adds_quanta,
                  task_.is_reproducible, run_.device, task_.team.rank()},
                 task_.is_by_host() ? &task_.team.hosts() : nullptr, run_.input, task_.begins);
    return pieces_.room() > 0 ? run_.take(static_cast<std::size_t>(pieces_.room()) * width)
                              : memory::Buffer{};
  };
  memory::Buffer memory = make();
  if (!memory && pieces_.room() > 0 && run_.device != gpu::host) {
    run_.note(run_.move_to_host());
    memory = make();
  }
  if (pieces_.room() == 0) return;
  if (!memory) run_.note(short_of_memory(messaging, run_.device));
  pieces_.settle(std::move(memory), width);
}

/// A movement of blocks of an all-to-all, which come to the memory of the pieces.
std::unique_ptr<Movement> FirstShot::movement(const ElementSpans& sent,
                                              schedule::Schedule schedule) const {
  return run_.movement(run_.agreed.adds_quanta, alltoall_.op, sent, pieces_.incoming(),
                       std::move(schedule), &run_.agreed.coding,
                       [this](schedule::Block block) { return pieces_.place_of(block); });
}

bool FirstShot::advance() {
  if (stage_ == Stage::contributing) {
    const bool is_over = advance_movements();
    if (!task_.is_by_host()) return is_over;
    if (!is_over && !may_overlap(pieces_.passed_on())) return false;
    combine_on_host();
  }
  if (stage_ == Stage::combining_on_host) {
    if (!is_combined_on_host()) return false;
    pass_on();
  }
  return advance_movements();
}

/// True once none is under way.
bool FirstShot::advance_movements() {
  bool is_over = true;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.all()) {
    if (piece->sum() && piece->owner() != task_.team.rank()) is_over = piece->advance() && is_over;
    run_.note(piece->status());
  }
  for (std::unique_ptr<Movement>* movement : {&contributions_, &host_sums_}) {
    if (!*movement) continue;
    if (!(*movement)->runner().advance()) {
      is_over = false;
      continue;
    }
    run_.note((*movement)->runner().status());
    movement->reset();
  }
  return is_over;
}

/// Payloads are added as they come, once it is known who contributes some. MPI has matched those,
/// so no block of the second shot is taken for a contribution. A sum of one chunk may be sent as a
/// frame, for which it has to be there.
bool FirstShot::may_overlap(std::span<const std::unique_ptr<PieceSum>> pieces) const {
  if (!run_.status.is_ok()) return false;
  const bool are_apt = std::ranges::all_of(pieces, [](const std::unique_ptr<PieceSum>& piece) {
    return piece->has_payloads() && piece->cut().chunks() > 1;
  });
  const auto are_coming = [](const std::unique_ptr<Movement>& movement) {
    return !movement || (movement->runner().status().is_ok() && movement->runner().is_all_coming());
  };
  return are_apt && are_coming(contributions_) && are_coming(host_sums_);
}

/// In place, MPI could write a header of the results where this rank's contribution has still to be
/// encoded, or added to others': in memory of the host, or of devices, if it takes that.
bool FirstShot::may_combine() const {
  if (!task_.is_by_host()) return may_overlap(pieces_.all());
  const bool may_be_written = task_.messaging.gpu_aware || run_.device == gpu::host;
  return stage_ == Stage::passing_on && !(task_.reduction.is_in_place && may_be_written) &&
         may_overlap(pieces_.all().first(1));
}

/// Begins to combine what this host's ranks contribute to pieces of others.
void FirstShot::combine_on_host() {
  stage_ = Stage::combining_on_host;
  sum_counts_.assign(task_.counts.size(), 0);
  sum_places_.assign(task_.counts.size(), 0);
  std::int64_t elements = 0;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const auto owner = static_cast<std::size_t>(piece->owner());
    sum_counts_[owner] = piece->count();
    if (piece->has_payloads()) continue;
    sum_places_[owner] = elements;
    elements += piece->stride();
  }
  const std::size_t width = task_.reduction.width();
  if (elements > 0) sums_ = run_.need(static_cast<std::size_t>(elements) * width);
  if (!run_.status.is_ok()) return;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const std::int64_t first = sum_places_[static_cast<std::size_t>(piece->owner())];
    if (piece->has_payloads()) {
      piece->add({}, nullptr);
    } else {
      piece->combine(sums_.data() + static_cast<std::size_t>(first) * width);
    }
    run_.note(piece->status());
  }
}

/// Sums of elements have to be there before they travel on, those of payloads go as they are made.
bool FirstShot::is_combined_on_host() {
  bool are_combined = true;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    are_combined = (piece->has_payloads() || piece->advance()) && are_combined;
    run_.note(piece->status());
  }
  return are_combined;
}

void FirstShot::pass_on() {
  stage_ = Stage::passing_on;
  const int me = task_.team.rank();
  const int ranks = task_.team.size();
  const schedule::Hosts& hosts = task_.team.hosts();
  const bool is_alone = hosts.members_count(hosts.host(me)) == 1;
  const ElementSpans sums{sums_.data(), ranks, 0, sum_counts_, sum_places_};
  run_.agreed.coding.largest_error = &run_.errors.host_sum;
  host_sums_ = movement(is_alone ? task_.pieces(run_.input) : sums,
                        schedule::host_sums_between(alltoall_, me, hosts, window_));
  if (!run_.status.is_ok()) return;
  SharedBlocks& shared = host_sums_->runner().shared();
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const auto block = static_cast<schedule::Block>(me) * static_cast<schedule::Block>(ranks) +
                       static_cast<schedule::Block>(piece->owner());
    if (piece->sum()) shared.provide(block, piece->sum(), false);
  }
  std::vector<int> far;
  std::ranges::copy_if(pieces_.own().sources(), std::back_inserter(far),
                       [&](int source) { return !task_.team.share_host(me, source); });
  pieces_.own().expect(shared, far, ranks);
}

}  // namespace mpress::engine
