#include "coll/blocks/served_call.hpp"

#include <utility>

#include "message/messaging.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {

ServedCall::ServedCall(const CallHere& here, const Served& served)
    : messaging_(here.messaging),
      call_(here.agreed.call),
      team_(here.team),
      served_(served),
      tag_(here.team, served.tag),
      pairs_(here.pairs),
      blocks_(here.messaging,
              {schedule_op(call_), team_.size(), here.agreed.root, served.method.segments},
              team_.rank(), here.sent, here.received),
      coding_(coding_of(here, served.encodes)) {}

/// Of a call that asks for something itself, or of which it is decided that it `encodes`.
std::optional<Coding> ServedCall::coding_of(const CallHere& here, bool encodes) {
  std::optional<Coding> coding = here.coding;
  if (!coding && encodes) coding = Coding{.spec = here.spec};
  if (coding) coding->is_decided = encodes;
  return coding;
}

void ServedCall::start(FloatModes) {
  status_ = Status::ok;
  bound_ = 0;
  team_.take_hints();
  begin();
}

/// Unless another call has its tag.
bool ServedCall::begin() {
  if (!tag_.take()) return false;
  open();
  return true;
}

void ServedCall::open() {
  // Who fails here still takes part: others wait for blocks.
  const Status opened = blocks_.open();
  if (!schedule_ && pairs_) schedule_ = pairs_->schedule(served_.method, blocks_.task(), team_);
  if (!schedule_) {
    schedule_ = schedule::make(served_.method, blocks_.task(), team_.rank(), team_.hosts());
  }
  is_run_ = false;
  has_copied_ = pairs_ != nullptr;
  looks_ = 0;
  status_ = opened;
  envelopes_ = team_.envelopes(messaging_, tag_.of_blocks());
  runner_.emplace(messaging_, *envelopes_, call_, called(), team_, *schedule_, blocks_,
                  !opened.is_ok(), coding_ ? &*coding_ : nullptr);
  runner_->drive(served_.is_blocking && !pairs_);  // beside pairs there is MPI's own call
  runner_->await(is_awaited_);
}

void ServedCall::await(bool is_awaited) {
  is_awaited_ = is_awaited;
  if (runner_) runner_->await(is_awaited);
}

/// Behind what others wait for, and what has come: to give a device work takes as long as a short
/// block does.
void ServedCall::start_own_copy() {
  constexpr int looks_in_vain = 8;
  if (has_copied_ || !(is_run_ || runner_->is_coming() || ++looks_ > looks_in_vain)) return;
  has_copied_ = true;
  if (!runner_->has_own_by_decoder()) blocks_.start_own_copy();
}

bool ServedCall::advance() {
  if (!runner_ && !begin()) return false;
  if (!is_run_) is_run_ = runner_->advance();
  start_own_copy();
  const bool has_own = has_copied_ && blocks_.is_own_copied() && runner_->advance_own();
  if (!is_run_ || !has_own) return false;
  if (status_.is_ok()) status_ = runner_->status();
  bound_ = runner_->outcome().bound;
  runner_.reset();
  envelopes_.reset();
  if (status_.is_ok()) {
    const Coding* const coding = coding_ ? &*coding_ : nullptr;
    status_ = blocks_.close(SharedBlocks::is_for_root_too(messaging_.config, coding));
  }
  tag_.give();
  return true;
}

}  // namespace mpress::engine
