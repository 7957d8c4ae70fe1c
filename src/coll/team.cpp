#include "coll/team.hpp"

#include <utility>

#include "core/one_at_a_time.hpp"

namespace mpress::engine {

void Boards::retire(std::shared_ptr<Agreements> agreements, link::Board* board) {
  {
    std::lock_guard lock(mutex_);
    retired_.push_back({std::move(agreements), board});
  }
  sweep();
}

void Boards::sweep() {
  std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](const Retired& retired) {
    if (!retired.agreements->may_release()) return false;
    hosts_.free_board(retired.board);
    return true;
  });
}

Team::Team(Boards& boards, std::vector<int> members, int rank, const Facts& facts)
    : boards_(boards),
      members_(std::move(members)),
      rank_(rank),
      own_(facts),
      hints_(facts[Fact::reproducible] != 0) {}

bool Team::share_host(int a, int b) const {
  const Hosts& hosts = boards_.hosts();
  return hosts.leader(world_rank(a)) == hosts.leader(world_rank(b));
}

const schedule::Hosts& Team::hosts() const {
  if (!member_hosts_) {
    std::vector<int> leaders;
    for (const int member : members_) leaders.push_back(boards_.hosts().leader(member));
    member_hosts_.emplace(leaders);
  }
  return *member_hosts_;
}

void Team::meet(link::Channel& channel) {
  channel_ = &channel;
  board_ = boards_.hosts().take_board();
  own_[Fact::has_board] = board_ != nullptr;
  own_[Fact::key] = rank_ == 0 ? boards_.next_key(members_[0]) : 0;
  own_[Fact::reproducible] = hints_.is_reproducible();
  exchanged_ = AgreedFacts::words_of(own_);
  exchange_ = channel.greatest(exchanged_);
  state_.store(State::exchanging, std::memory_order_release);
}

void Team::refuse(const char* why) {
  why_not_ = why;
  state_.store(State::refused, std::memory_order_release);
}

bool Team::advance() {
  if (is_decided()) return true;
  const OneAtATime turn(is_advanced_);
  if (!turn) return false;
  if (state() == State::waiting) make_channel();
  if (state() == State::exchanging) {
    const gpu::State found = channel_->poll(exchange_);
    if (found == gpu::State::done) decide();
    if (found == gpu::State::failed) refuse("the exchange on its private communicator failed");
  }
  return is_decided();
}

void Team::decide() {
  facts_ = AgreedFacts(exchanged_);
  if (!facts_.is_true_for_all(Fact::wants)) {
    why_not_ = "a rank does not want it";
  } else if (facts_.differs(Fact::settings)) {
    why_not_ = "ranks run with different settings";
  } else if (facts_.differs(Fact::hints) || facts_.differs(Fact::codec_hint)) {
    why_not_ = "ranks gave the communicator different hints";
    if (facts_.differs(Fact::codec_hint)) hints_.set_codec(hints_.spec(), true);
  }
  tags_ = channel_->tags() - Agreements::tags - CallOrder::tags;
  const bool is_shared = facts_.is_true_for_all(Fact::has_board);
  if (board_ && (!is_shared || why_not_)) {
    boards_.hosts().free_board(std::exchange(board_, nullptr));
  }
  if (!why_not_) {
    const int first_tag = first_block_tag() + static_cast<int>(CallOrder::tags);
    agreements_ = std::make_shared<Agreements>(boards_.hosts(), *channel_, first_tag, members_,
                                               rank_, board_, facts_.highest(Fact::key));
  }
  state_.store(why_not_ ? State::refused : State::ready, std::memory_order_release);
}

void Team::let_go() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
}

bool Team::give_back_board() {
  if (!is_decided() || (agreements_ && !agreements_->idle())) return false;
  link::Board* const board = std::exchange(board_, nullptr);
  if (board && agreements_) boards_.retire(agreements_, board);
  if (board && !agreements_) boards_.hosts().free_board(board);  // which nobody has found
  return true;
}

}  // namespace mpress::engine
