#include "loopback/loopback.hpp"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <thread>

namespace mpress::loopback {

using link::Channel;

struct Group::Message {
  int from;
  int tag;
  std::size_t bytes;
  std::vector<std::byte> copy;  ///< of a send that is over at once
  const std::byte* data;        ///< of another: the sender's
  unsigned looks;               ///< until it is seen
  bool is_taken = false;

  const std::byte* begin() const { return data ? data : copy.data(); }
};

struct Group::Receive {
  std::byte* place;
  std::size_t bytes;
  int from;
  int tag;
  std::shared_ptr<Message> message;
};

struct Group::Round {
  std::vector<std::uint64_t> numbers;
  std::size_t started = 0;
};

class Group::MemberChannel final : public Channel {
 public:
  MemberChannel(Group& group, int rank) : group_(group), rank_(rank) {}

  int size() const override { return group_.size(); }
  std::uint64_t tags() const override { return group_.tags_; }

  Pending send(const std::byte* data, std::size_t bytes, int to, int tag) override {
    const std::lock_guard lock(group_.mutex_);
    Place& place = group_.at(to);
    auto message = std::make_shared<Message>(Message{rank_, tag, bytes, {}, data, looks(), false});
    if (group_.random_() % 2 == 0 || place.has_ended) {
      message->copy.assign(data, data + bytes);
      message->data = nullptr;
    }
    auto* const work = new Work{};
    if (message->data) work->sent = message;
    if (!place.has_ended) {
      const auto receive = std::ranges::find_if(
          place.receives, [&](const auto& one) { return one->from == rank_ && one->tag == tag; });
      if (receive == place.receives.end()) {
        place.messages.push_back(std::move(message));
      } else {
        (*receive)->message = std::move(message);
        place.receives.erase(receive);
      }
    }
    return {reinterpret_cast<std::uintptr_t>(work)};
  }

  Pending receive(std::byte* to, std::size_t bytes, int from, int tag) override {
    const std::lock_guard lock(group_.mutex_);
    Place& place = group_.at(rank_);
    auto* const work = new Work{};
    work->receive = std::make_shared<Receive>(Receive{to, bytes, from, tag, nullptr});
    const auto message = std::ranges::find_if(
        place.messages, [&](const auto& one) { return one->from == from && one->tag == tag; });
    if (message == place.messages.end()) {
      place.receives.push_back(work->receive);
    } else {
      work->receive->message = std::move(*message);
      place.messages.erase(message);
    }
    return {reinterpret_cast<std::uintptr_t>(work)};
  }

  gpu::State poll(Pending& one, std::size_t* received) override {
    const std::lock_guard lock(group_.mutex_);
    auto* const work = reinterpret_cast<Work*>(one.handle);
    CHECK(work != nullptr);
    const gpu::State state = look_at(*work, received);
    if (state == gpu::State::pending) return state;
    delete work;
    one.handle = 0;
    return state;
  }

  std::optional<Found> find(int tag) override {
    const std::lock_guard lock(group_.mutex_);
    std::deque<std::shared_ptr<Message>>& messages = group_.at(rank_).messages;
    for (auto one = messages.begin(); one != messages.end(); ++one) {
      if ((tag != any_tag && (*one)->tag != tag) || !is_seen(**one)) continue;
      auto* const message = new std::shared_ptr<Message>(std::move(*one));
      messages.erase(one);
      return Found{(*message)->from, (*message)->bytes, reinterpret_cast<std::uintptr_t>(message)};
    }
    return std::nullopt;
  }

  void take(const Found& found, std::byte* place, std::size_t room) override {
    const std::lock_guard lock(group_.mutex_);
    const std::unique_ptr<std::shared_ptr<Message>> message(
        reinterpret_cast<std::shared_ptr<Message>*>(found.handle));
    if (room > 0) std::memcpy(place, (*message)->begin(), std::min(room, found.bytes));
    (*message)->is_taken = true;
  }

  Pending add_up(std::span<const std::uint64_t> for_each, std::uint64_t* own) override {
    const std::lock_guard lock(group_.mutex_);
    std::shared_ptr<Round>& round = group_.rounds_[group_.at(rank_).rounds++];
    if (!round) round = std::make_shared<Round>();
    round->numbers.resize(static_cast<std::size_t>(size()));
    for (std::size_t i = 0; i < for_each.size(); ++i) round->numbers[i] += for_each[i];
    ++round->started;
    return {reinterpret_cast<std::uintptr_t>(new Work{nullptr, nullptr, round, own, {}})};
  }

  Pending greatest(std::span<std::uint64_t> numbers) override {
    const std::lock_guard lock(group_.mutex_);
    std::shared_ptr<Round>& round = group_.rounds_[group_.at(rank_).rounds++];
    if (!round) round = std::make_shared<Round>();
    round->numbers.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      round->numbers[i] = std::max(round->numbers[i], numbers[i]);
    }
    ++round->started;
    return {reinterpret_cast<std::uintptr_t>(new Work{nullptr, nullptr, round, nullptr, numbers})};
  }

  Pending barrier() override { return add_up({}, nullptr); }

 private:
  struct Work {
    std::shared_ptr<Message> sent;  ///< null: that is over
    std::shared_ptr<Receive> receive;
    std::shared_ptr<Round> round;
    std::uint64_t* own = nullptr;
    std::span<std::uint64_t> all = {};
  };

  unsigned looks() const { return static_cast<unsigned>(group_.random_() % 4); }
  static bool is_seen(Message& message) {
    if (message.looks > 0) --message.looks;
    return message.looks == 0;
  }

  gpu::State look_at(Work& work, std::size_t* received) {
    if (work.round) {
      if (work.round->started < static_cast<std::size_t>(size())) return gpu::State::pending;
      if (work.own) *work.own = work.round->numbers[static_cast<std::size_t>(rank_)];
      std::copy_n(work.round->numbers.begin(), work.all.size(), work.all.begin());
      return gpu::State::done;
    }
    if (!work.receive) {
      const bool is_over = !work.sent || work.sent->is_taken;
      return is_over ? gpu::State::done : gpu::State::pending;
    }
    Receive& receive = *work.receive;
    if (!receive.message) {
      return group_.at(receive.from).has_ended ? gpu::State::failed : gpu::State::pending;
    }
    Message& message = *receive.message;
    if (!is_seen(message)) return gpu::State::pending;
    const std::size_t bytes = std::min(receive.bytes, message.bytes);
    if (bytes > 0) std::memcpy(receive.place, message.begin(), bytes);
    message.is_taken = true;
    if (message.bytes > receive.bytes) return gpu::State::failed;
    if (received) *received = bytes;
    return gpu::State::done;
  }

  Group& group_;
  const int rank_;
};

Group::Group(int size, unsigned seed, std::uint64_t tags)
    : random_(seed), tags_(tags), places_(static_cast<std::size_t>(size)) {
  for (int member = 0; member < size; ++member) {
    channels_.push_back(std::make_unique<MemberChannel>(*this, member));
  }
}

Group::~Group() = default;

Group::Place& Group::at(int member) { return places_[static_cast<std::size_t>(member)]; }

Channel& Group::channel(int member) { return *channels_[static_cast<std::size_t>(member)]; }

/// A send to it that waits for its receive is over, too.
void Group::end(int member) {
  const std::lock_guard lock(mutex_);
  Place& place = at(member);
  place.has_ended = true;
  for (const auto& message : place.messages) message->is_taken = true;
  place.messages.clear();
}

std::size_t Group::unclaimed() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Place& place : places_) count += place.messages.size();
  return count;
}

struct ThreadMember::Shared {
  explicit Shared(int size) : barrier(size), size(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  const std::size_t size;
  std::mutex mutex;
  std::condition_variable has_come;
  std::map<std::size_t, std::deque<std::vector<std::byte>>> mail;  ///< by from * size + to

  std::deque<std::vector<std::byte>>& box(int from, int to) {
    return mail[static_cast<std::size_t>(from) * size + static_cast<std::size_t>(to)];
  }
};

ThreadMember::ThreadMember(Shared& shared, int rank, int size, unsigned seed) : shared_(shared) {
  this->rank = rank;
  this->size = size;
  random.seed(seed * 1009 + static_cast<unsigned>(rank));
  most_dawdled_us = 20;
}

void ThreadMember::barrier() { shared_.barrier.arrive_and_wait(); }

void ThreadMember::send(std::span<const std::byte> data, int to) {
  const std::lock_guard lock(shared_.mutex);
  shared_.box(rank, to).emplace_back(data.begin(), data.end());
  shared_.has_come.notify_all();
}

void ThreadMember::receive(std::span<std::byte> data, int from) {
  std::unique_lock lock(shared_.mutex);
  std::deque<std::vector<std::byte>>& box = shared_.box(from, rank);
  shared_.has_come.wait(lock, [&] { return !box.empty(); });
  CHECK(box.front().size() == data.size());
  std::ranges::copy(box.front(), data.begin());
  box.pop_front();
}

void run(int size, unsigned seed, const std::function<void(ThreadMember&)>& test) {
  ThreadMember::Shared shared(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadMember member(shared, rank, size, seed);
      test(member);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace mpress::loopback
