#include "coll/agreement.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "core/one_at_a_time.hpp"

namespace mpress::engine {
namespace {

using link::Board;

/// Looks in vain between two questions whether the others still live, each a call of the system's.
constexpr unsigned looks_a_question = 4096;

std::uint64_t combined(Combine combine, std::uint64_t a, std::uint64_t b) {
  switch (combine) {
    case Combine::bit_and: return a & b;
    case Combine::bit_or: return a | b;
    case Combine::min: return std::min(a, b);
    case Combine::max: return std::max(a, b);
    case Combine::sum: return a + b;
  }
  return a;
}

std::uint64_t shape_of(std::span<const Word> words, bool gathers) {
  std::uint64_t shape = words.size() * 2 + (gathers ? 1 : 0);
  for (const Word& word : words) shape = shape * 8 + static_cast<std::uint64_t>(word.combine);
  return shape;
}

}  // namespace

bool Agreement::advance() {
  if (ended_.load(std::memory_order_acquire)) return true;
  all_->advance();
  return ended_.load(std::memory_order_acquire);
}

Agreements::Agreements(Hosts& hosts, link::Channel& channel, int first_tag,
                       const std::vector<int>& members, int rank, Board* board, std::uint64_t key)
    : hosts_(hosts),
      channel_(channel),
      first_tag_(first_tag),
      rank_(rank),
      key_(key),
      own_(board),
      size_(members.size()) {
  const auto host_of = [&](int world_rank) {
    return is_shared() ? hosts.leader(world_rank) : world_rank;
  };
  const int own_host = host_of(members[static_cast<std::size_t>(rank)]);
  std::unordered_set<int> met;
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    const int world_rank = members[static_cast<std::size_t>(i)];
    const int host = host_of(world_rank);
    if (met.insert(host).second) leaders_.push_back(i);
    if (host == own_host) {
      if (here_.empty()) own_host_ = static_cast<int>(leaders_.size()) - 1;
      here_.push_back({i, world_rank, i == rank ? own_ : nullptr});
    }
  }
  if (own_) own_->key.store(key, std::memory_order_release);
}

std::size_t Agreements::most_gathered() const {
  return spans_hosts() ? std::min(most_words, Board::most_results / size_) : most_words;
}

std::shared_ptr<Agreement> Agreements::combine(std::span<const Word> words) {
  return start(words, false);
}

std::shared_ptr<Agreement> Agreements::gather(std::span<const std::uint64_t> values) {
  std::vector<Word> words;
  for (const std::uint64_t value : values) words.push_back({Combine::bit_or, value});
  return start(words, true);
}

std::shared_ptr<Agreement> Agreements::start(std::span<const Word> words, bool gathers) {
  auto one = std::make_shared<Agreement>();
  one->all_ = shared_from_this();
  one->count_ = words.size();
  std::copy(words.begin(), words.end(), one->words_.begin());
  one->shape_ = shape_of(words, gathers);
  one->gathers_ = gathers;
  {
    std::lock_guard lock(mutex_);
    one->number_ = started_++;
    new_.push_back(one);
    under_way_.fetch_add(1);
  }
  advance();
  return one;
}

Board* Agreements::board_of(Member& member) {
  if (!member.board) member.board = hosts_.find_board(member.world_rank, key_);
  return member.board;
}

/// To be asked after each look in vain.
bool Agreements::is_gone(Member& member) {
  if (!member.is_gone && ++looks_ % looks_a_question == 0) {
    member.is_gone = !hosts_.lives(member.world_rank);
    return false;  // it may have done what we wait for before it ended: look once more
  }
  return member.is_gone;
}

/// Puts this member's words on its board, once nobody reads what the slot held before.
bool Agreements::say(Agreement& one) {
  if (is_shared() && one.number_ >= Board::depth) {
    const std::uint64_t before = one.number_ - Board::depth;
    for (Member& member : here_) {
      // Who has a value of ours to read has a board.
      Board* board = board_of(member);
      if (!board || board->done.load(std::memory_order_acquire) <= before) {
        if (!is_gone(member)) return false;
      }
    }
  }
  if (is_shared() && here_.size() > 1) {
    auto& slot = own_->said[one.number_ % Board::depth];
    if (!is_broken_) {
      slot.shape = one.shape_;
      for (std::size_t i = 0; i < one.count_; ++i) slot.word[i] = one.words_[i].value;
    }
    slot.stamp.store(Board::stamp_of(one.number_, is_broken_), std::memory_order_release);
  }
  one.failed_ = is_broken_;
  return true;
}

void Agreements::add(Agreement& one, const Member& member, const std::uint64_t* values) const {
  const std::size_t count = one.count_;
  if (one.gathers_) {
    std::copy_n(values, count, one.result_.begin() + member.rank * static_cast<long>(count));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    one.result_[i] = combined(one.words_[i].combine, one.result_[i], values[i]);
  }
}

/// Combines what all members of this host have said; false while one has not. Nothing is kept
/// meanwhile, so that the sum is in the order of ranks.
bool Agreements::hear(Agreement& one) {
  const std::uint64_t stamp = Board::stamp_of(one.number_, false);
  for (Member& member : here_) {
    if (member.rank == rank_) continue;
    Board* board = board_of(member);
    const std::uint64_t seen =
        board ? board->said[one.number_ % Board::depth].stamp.load(std::memory_order_acquire) : 0;
    if (seen < stamp && !is_gone(member)) return false;
    if (seen != stamp) one.failed_ = true;
  }
  if (one.failed_) return true;
  const std::size_t count = one.count_;
  one.result_.assign(one.gathers_ ? count * size_ : count, 0);
  bool is_first = true;
  for (const Member& member : here_) {
    std::uint64_t values[most_words];
    if (member.rank == rank_) {
      for (std::size_t i = 0; i < count; ++i) values[i] = one.words_[i].value;
    } else {
      const auto& slot = member.board->said[one.number_ % Board::depth];
      if (slot.shape != one.shape_) one.failed_ = true;
      std::copy_n(slot.word, count, values);
    }
    if (is_first && !one.gathers_) {
      std::copy_n(values, count, one.result_.begin());
    } else {
      add(one, member, values);
    }
    is_first = false;
  }
  return true;
}

/// Takes the result that the first member of this host tells.
bool Agreements::hear_first(Agreement& one) {
  Member& first = here_.front();
  Board* board = board_of(first);
  const auto* slot = board ? &board->results[one.number_ % Board::depth] : nullptr;
  const std::uint64_t seen = slot ? slot->stamp.load(std::memory_order_acquire) : 0;
  const std::uint64_t stamp = Board::stamp_of(one.number_, false);
  if (seen == stamp && slot->shape == one.shape_) {
    const std::size_t count = one.count_ * (one.gathers_ ? size_ : 1);
    one.result_.assign(slot->word, slot->word + count);
    return true;
  }
  if (seen < stamp && !is_gone(first)) return false;
  one.failed_ = true;
  return true;
}

bool Agreements::is_over(Agreement& one, std::optional<link::Channel::Pending>& pending) {
  if (!pending) return true;
  const gpu::State state = channel_.poll(*pending);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) one.failed_ = true;
  pending.reset();
  return true;
}

/// Sends what is known to one rank of the team, and receives what another knows; a negative
/// rank is none. Returns whether both are through.
bool Agreements::exchange(Agreement& one, int to, int from) {
  const int tag = first_tag_ + static_cast<int>(one.number_ % tags);
  if (one.out_.empty()) {
    one.out_ = {one.failed_ ? 1u : 0u, one.shape_};
    one.out_.insert(one.out_.end(), one.result_.begin(), one.result_.end());
    // A member that failed early knows no values, but what the others send has to fit.
    const std::size_t values = one.count_ * (one.gathers_ ? size_ : 1);
    one.out_.resize(2 + values);
    one.in_.assign(2 + Board::most_results, 0);
    const auto in = std::as_writable_bytes(std::span(one.in_));
    const auto out = std::as_bytes(std::span(one.out_));
    if (from >= 0) one.receiving_ = channel_.receive(in.data(), in.size(), from, tag);
    if (to >= 0) one.sending_ = channel_.send(out.data(), out.size(), to, tag);
  }
  if (!is_over(one, one.receiving_) || !is_over(one, one.sending_)) return false;
  one.out_.clear();
  return true;
}

/// Takes over what another host's first member sent.
void Agreements::fold(Agreement& one) const {
  if (one.in_[0] != 0 || one.in_[1] != one.shape_) one.failed_ = true;
  if (one.failed_) return;
  for (std::size_t i = 0; i < one.result_.size(); ++i) {
    const Combine combine = one.gathers_ ? Combine::bit_or : one.words_[i % one.count_].combine;
    one.result_[i] = combined(combine, one.result_[i], one.in_[2 + i]);
  }
}

/// Recursive doubling among the first members of all hosts. Step 0 folds those above the largest
/// power of two in, the last gives them the result.
bool Agreements::go_across(Agreement& one) {
  const int hosts = static_cast<int>(leaders_.size());
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts)));
  const int extra = hosts - core;
  const int doublings = std::countr_zero(static_cast<unsigned>(core));
  const auto rank_of = [&](int host) { return leaders_[static_cast<std::size_t>(host)]; };
  for (;; ++one.step_) {
    if (one.step_ == Agreement::before_first) one.step_ = 0;
    if (one.step_ > doublings + 1) return true;
    int to = -1;
    int from = -1;
    if (one.step_ == 0) {
      if (own_host_ >= core) to = rank_of(own_host_ - core);
      if (own_host_ < extra) from = rank_of(own_host_ + core);
    } else if (one.step_ <= doublings) {
      if (own_host_ < core) to = from = rank_of(own_host_ ^ (1 << (one.step_ - 1)));
    } else {
      if (own_host_ < extra) to = rank_of(own_host_ + core);
      if (own_host_ >= core) from = rank_of(own_host_ - core);
    }
    if (to < 0 && from < 0) continue;
    if (!exchange(one, to, from)) return false;
    if (from < 0) continue;
    if (one.step_ <= doublings) {
      fold(one);
    } else {
      if (one.in_[0] != 0 || one.in_[1] != one.shape_) one.failed_ = true;
      if (!one.failed_) std::copy_n(one.in_.begin() + 2, one.result_.size(), one.result_.begin());
    }
  }
}

/// The slot is free: say() saw to it.
void Agreements::tell(const Agreement& one) {
  if (here_.size() == 1) return;
  auto& slot = own_->results[one.number_ % Board::depth];
  if (!one.failed_) {
    slot.shape = one.shape_;
    std::copy(one.result_.begin(), one.result_.end(), slot.word);
  }
  slot.stamp.store(Board::stamp_of(one.number_, one.failed_), std::memory_order_release);
}

/// Returns whether it is over.
bool Agreements::advance_one(Agreement& one) {
  using State = Agreement::State;
  if (one.state_ == State::queued) {
    if (!say(one)) return false;
    one.state_ = State::said;
  }
  if (one.state_ == State::said) {
    if (spans_hosts() && !is_leader()) {
      if (!hear_first(one)) return false;
      one.state_ = State::over;
    } else {
      if (!hear(one)) return false;
      one.state_ = spans_hosts() ? State::across : State::over;
    }
  }
  if (one.state_ == State::across) {
    if (!go_across(one)) return false;
    tell(one);
    one.state_ = State::over;
  }
  return true;
}

void Agreements::advance() {
  const OneAtATime turn(is_advanced_);
  if (!turn) return;
  {
    std::lock_guard lock(mutex_);
    queue_.insert(queue_.end(), new_.begin(), new_.end());
    new_.clear();
  }
  // Those of one slot each; what is behind them has to wait in any case.
  const std::size_t most = std::min(queue_.size(), Board::depth);
  for (std::size_t i = 0; i < most; ++i) {
    Agreement& one = *queue_[i];
    if (one.state_ != Agreement::State::over) advance_one(one);
    if (one.state_ == Agreement::State::queued) break;
  }
  while (!queue_.empty() && queue_.front()->state_ == Agreement::State::over) {
    Agreement& one = *queue_.front();
    if (one.failed_) {
      one.result_.clear();
      is_broken_ = true;
    }
    if (is_shared()) own_->done.store(one.number_ + 1, std::memory_order_release);
    one.ended_.store(true, std::memory_order_release);
    queue_.pop_front();
    under_way_.fetch_sub(1);
  }
}

bool Agreements::may_release() {
  if (!is_shared() || started_ == 0) return true;
  if (is_broken_) return false;
  for (Member& member : here_) {
    // All had a board when the first agreement was over: who has none any more is through.
    const Board* board = board_of(member);
    if (!board) continue;
    const std::uint64_t done = board->done.load(std::memory_order_acquire);
    const bool is_its_own = board->key.load(std::memory_order_acquire) == key_;
    if (is_its_own && done < started_) return false;
  }
  return true;
}

}  // namespace mpress::engine
