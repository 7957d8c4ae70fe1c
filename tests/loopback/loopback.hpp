// A channel whose members are threads of one process: messages are memory, and no MPI is there.
//
// It is as unkind as a channel may be: a message is seen only some looks after it was sent, sends
// of every other message are over no sooner than they are received, and members may end.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "link/channel/channel.hpp"
#include "links/member.hpp"

namespace mpress::loopback {

/// What the members share. Thread-safe.
class Group {
 public:
  Group(int size, unsigned seed, std::uint64_t tags = 1000);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int size() const { return static_cast<int>(channels_.size()); }

  /// That of a member; lives as long as this.
  link::Channel& channel(int member);

  /// A member is gone: what is sent to it is lost, and receives from it fail once all that it sent
  /// has come.
  void end(int member);

  /// Messages that no receive was started for.
  std::size_t unclaimed();

 private:
  class MemberChannel;
  struct Message;
  struct Receive;
  struct Round;
  struct Place {
    std::deque<std::shared_ptr<Message>> messages;  ///< that no receive has
    std::deque<std::shared_ptr<Receive>> receives;  ///< that have no message
    std::size_t rounds = 0;                         ///< combinations that the member started
    bool has_ended = false;
  };

  Place& at(int member);

  std::mutex mutex_;
  std::mt19937 random_;
  const std::uint64_t tags_;
  std::vector<Place> places_;  ///< by member
  std::vector<std::unique_ptr<MemberChannel>> channels_;
  std::map<std::size_t, std::shared_ptr<Round>> rounds_;
};

/// Words of a test's own that members leave for others, who take them in any order. Thread-safe.
template <class T>
class Mail {
 public:
  explicit Mail(int members) : boxes_(static_cast<std::size_t>(members)) {}

  void leave(int member, T word) {
    const std::lock_guard lock(mutex_);
    boxes_[static_cast<std::size_t>(member)].push_back(std::move(word));
  }
  /// The first or the last that was left for a member; nothing where there is none.
  std::optional<T> take(int member, bool first) {
    const std::lock_guard lock(mutex_);
    std::deque<T>& box = boxes_[static_cast<std::size_t>(member)];
    if (box.empty()) return std::nullopt;
    const auto word = first ? box.begin() : std::prev(box.end());
    std::optional<T> taken(std::move(*word));
    box.erase(word);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<std::deque<T>> boxes_;  ///< by member
};

/// A thread as a member of a test.
class ThreadMember : public links::Member {
 public:
  struct Shared;
  ThreadMember(Shared& shared, int rank, int size, unsigned seed);
  /// Another thread of that member's.
  ThreadMember(const ThreadMember& member, unsigned seed)
      : ThreadMember(member.shared_, member.rank, member.size, seed) {}
  void barrier() override;
  void send(std::span<const std::byte> data, int to) override;
  void receive(std::span<std::byte> data, int from) override;
  /// Ends the process: others wait for this one, and no launcher ends them.
  void give_up() override { ::_exit(1); }

 private:
  Shared& shared_;
};

/// Runs `test` in `size` threads.
void run(int size, unsigned seed, const std::function<void(ThreadMember&)>& test);

}  // namespace mpress::loopback
