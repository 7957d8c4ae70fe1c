#include "coll/reduce/second_shot.hpp"

#include <algorithm>
#include <utility>

#include "core/staging.hpp"
#include "message/block.hpp"
#include "message/messaging.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {
namespace {

/// By which results travel.
schedule::Op op_of(const Collective& call) {
  return call.family == Family::reduce ? schedule::Op::gather : schedule::Op::allgather;
}

BlockData own_results(const ReductionTask& task) {
  const std::size_t width = task.reduction.width();
  const auto bytes = static_cast<std::size_t>(task.own_count()) * width;
  const bool is_wanted = bytes > 0 && task.gets_results();
  const std::int64_t first =
      task.is_scattered() ? 0 : task.begins[static_cast<std::size_t>(task.team.rank())];
  std::byte* const data =
      is_wanted ? task.results + static_cast<std::size_t>(first) * width : nullptr;
  return {data, task.own_count(), task.layout, bytes};
}

}  // namespace

/// To where the program has the results, if they can be made there.
SecondShot::SecondShot(ReductionRun& run, Pieces& pieces)
    : run_(run),
      task_(run.task),
      pieces_(pieces),
      own_(pieces.own()),
      wanted_(own_results(run.task)) {
  if (!task_.is_scattered()) {
    const Team& team = task_.team;
    const schedule::Task task{op_of(task_.call), team.size(), task_.root};
    schedule_ = schedule::make(task_.served.method, task, team.rank(), team.hosts());
  }
  if (!run_.status.is_ok() || own_.count() == 0) return;
  const bool is_overlapped = task_.is_scattered() && task_.reduction.is_in_place;
  if (wanted_.data && !is_overlapped && run_.lies_beside(wanted_.data)) {
    result_ = static_cast<std::byte*>(wanted_.data);
  } else if (wanted_.data || !own_.has_payloads()) {
    aside_ = run_.need(wanted_.bytes);
    result_ = aside_.data();
  }
  if (!run_.status.is_ok()) return;
  if (own_.has_payloads()) {
    decoded_ = result_ != own_.contribution() ? result_ : nullptr;
    own_.add(staging_of_sum(), decoded_);
  } else {
    own_.combine(result_);
  }
}

/// In slots of its readers, where one link by which kernels write reaches them all in one round.
OpaqueBlock::StagingSlots SecondShot::staging_of_sum() const {
  const Chunking cut = own_.cut();
  std::vector<int> readers;
  int round = -1;
  for (const schedule::Transfer& transfer : schedule_.sends) {
    const auto blocks = schedule_.blocks_of(transfer);
    const auto own = static_cast<schedule::Block>(task_.team.rank());
    if (std::ranges::find(blocks, own) == blocks.end()) continue;
    if (!readers.empty() && transfer.round != round) return {};
    round = transfer.round;
    readers.push_back(task_.team.world_rank(transfer.peer));
  }
  const link::Kind kind = readers.empty()
                              ? link::Kind::channel
                              : link_to(task_.messaging, run_.device, cut.bytes(), readers);
  return kind == link::Kind::peer ? find_staging(task_.messaging, cut, run_.device, kind, readers)
                                  : OpaqueBlock::StagingSlots{};
}

bool SecondShot::advance(bool is_first_over) {
  if (!is_sharing_) {
    if (!own_.sum() && !own_.advance()) return false;
    run_.note(own_.status());
    share();
  }
  const bool has_sum = !own_.sum() || own_.advance();
  // The own piece is decoded while those of others come: each has a place of its own.
  const bool has_moved = !movement_ || movement_->runner().advance();
  const bool has_own = !movement_ || movement_->runner().advance_own();
  const bool is_decoded = !decode_ || (has_sum && decode_->advance());
  if (!is_first_over || !has_sum || !has_moved || !has_own || !is_decoded) return false;
  run_.note(own_.status());
  finish();
  return true;
}

void SecondShot::share() {
  is_sharing_ = true;
  if (!run_.agreed.adds_quanta) pieces_.leave_room();
  run_.agreed.coding.largest_error = &run_.errors.result;
  const std::shared_ptr<OwnBlock>& sum = own_.sum();
  const std::int64_t count = own_.count();
  if (!task_.is_scattered()) {
    const ElementSpans own{result_, 1, count};
    movement_ = run_.movement(task_.call.family != Family::reduce || run_.agreed.adds_quanta,
                              op_of(task_.call), own,
                              task_.gets_results() ? task_.pieces(task_.results) : ElementSpans{},
                              std::move(schedule_), &run_.agreed.coding);
    if (sum) {
      const auto block = static_cast<schedule::Block>(task_.team.rank());
      movement_->runner().shared().provide(block, sum, decoded_ != nullptr);
    }
  }
  if (sum && result_ && !decoded_ && task_.call.family != Family::allreduce) {
    decode_.emplace(task_.messaging, *sum, result_, count, task_.layout);
  }
}

/// Results that were made aside are copied to where the program has them.
void SecondShot::finish() {
  if (decode_) run_.note(decode_->status());
  bool has_results = decode_ || decoded_ || !own_.sum();
  if (movement_) {
    run_.note(movement_->runner().status());
    has_results = has_results && !movement_->runner().has_own_by_decoder();
  }
  if (!run_.status.is_ok() || !aside_ || !wanted_.data || !has_results) return;
  const Location place = locate(task_.messaging, wanted_.data, *task_.layout);
  run_.note(copy_bytes(task_.messaging, wanted_.data, place, result_, {run_.device, true},
                       wanted_.bytes));
}

}  // namespace mpress::engine
