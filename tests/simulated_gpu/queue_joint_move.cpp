// What several members bring each other, as simulated devices do it: by the layout of real ones, a
// line and a flag at a time, in the thread of the queue.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "await.hpp"
#include "gpu/joint_move.hpp"
#include "lines.hpp"
#include "queue.hpp"
#include "queue_work.hpp"

namespace mpress::simulated {
namespace {

namespace joint = gpu::joint_move;

/// What a JointMove says, for as long as the work takes.
class MoveWork {
 public:
  explicit MoveWork(const gpu::JointMove& given)
      : memory_(given.memory.begin(), given.memory.end()),
        rooms_(given.rooms.begin(), given.rooms.end()),
        sends_(given.sends.begin(), given.sends.end()),
        receives_(given.receives.begin(), given.receives.end()),
        in_lines_(given.in_lines),
        is_shared_(given.is_shared),
        slots_at_(joint::slots_at(members(), given.has_lines)),
        own_(given.member),
        call_(given.call),
        again_(given.again),
        undone_(given.undone),
        stop_(given.is_endless ? given.undone : nullptr) {}

  void run() const {
    if (!again_) send();
    const auto& kept = receives_[own_];
    if (kept.to && kept.bytes > 0) copy(kept.to, sends_[own_].from, kept.bytes);
    if (!receive()) std::atomic_ref(*undone_).store(1, std::memory_order_release);
  }

 private:
  unsigned members() const { return static_cast<unsigned>(memory_.size()); }
  std::byte* at(unsigned member, std::size_t offset) const {
    return Memory::instance().view(memory_[member]) + offset;
  }
  static void copy(void* to, const void* from, std::size_t bytes) {
    std::memcpy(Memory::instance().view(static_cast<std::byte*>(to)),
                Memory::instance().view(static_cast<const std::byte*>(from)), bytes);
  }
  LinesView lines_of(unsigned of, unsigned sender) const {
    return {at(of, joint::block_lines(members()).at(sender)), true};
  }
  std::byte* slot(unsigned from, unsigned to) const {
    const unsigned of = is_shared_ ? from : to;
    return at(of, joint::slot_at(slots_at_, from, rooms_[of]));
  }
  std::atomic_ref<std::uint32_t> flag(unsigned of, unsigned sender, unsigned block) const {
    return std::atomic_ref(
        *reinterpret_cast<std::uint32_t*>(at(of, joint::flag_at(sender, block))));
  }

  void send() const {
    for (unsigned member = 0; member < members(); ++member) {
      const auto& block = sends_[member];
      if (member == own_ || block.bytes == 0) continue;
      const std::byte* const from =
          Memory::instance().view(static_cast<const std::byte*>(block.from));
      if (in_lines_) {
        lines_of(member, own_).store(from, block.bytes, call_);
        continue;
      }
      std::memcpy(slot(own_, member), from, block.bytes);
      for (unsigned i = 0; i < joint::blocks_for(block.bytes); ++i) {
        flag(member, own_, i).store(call_, std::memory_order_release);
      }
    }
  }

  /// False where something did not come.
  bool receive() const {
    for (unsigned member = 0; member < members(); ++member) {
      const auto& block = receives_[member];
      if (member == own_ || block.bytes == 0) continue;
      std::byte* const to = Memory::instance().view(static_cast<std::byte*>(block.to));
      if (in_lines_) {
        if (!lines_of(own_, member).load(to, block.bytes, call_, stop_)) return false;
        continue;
      }
      for (unsigned i = 0; i < joint::blocks_for(block.bytes); ++i) {
        const auto is_set = [&] {
          return flag(own_, member, i).load(std::memory_order_acquire) == call_;
        };
        if (!await(is_set, stop_)) return false;
      }
      std::memcpy(to, slot(member, own_), block.bytes);
    }
    return true;
  }

  const std::vector<std::byte*> memory_;
  const std::vector<std::uint64_t> rooms_;
  const std::vector<gpu::JointMove::Outgoing> sends_;
  const std::vector<gpu::JointMove::Incoming> receives_;
  const bool in_lines_, is_shared_;
  const std::size_t slots_at_;
  const unsigned own_;
  const std::uint32_t call_;
  const bool again_;
  std::uint32_t* const undone_;
  std::uint32_t* const stop_;
};

}  // namespace

gpu::Event Queue::move_jointly(const gpu::JointMove& given) {
  const Call call(calls_);
  const std::size_t members = given.memory.size();
  if (members < 2 || members > joint::most_members) fault("%zu members", members);
  if (given.call == 0) fault("a joint call without a number");
  check_reached(given.undone, sizeof *given.undone);
  if (given.in_lines && (!given.has_lines || given.is_shared)) fault("no lines for such a call");
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < members; ++i) {
    const std::size_t sent = given.sends[i].bytes, received = given.receives[i].bytes;
    const bool is_own = i == given.member;
    if (!is_own && sent > given.rooms[i]) fault("%zu bytes in a slot", sent);
    if (!is_own && received > given.rooms[given.member]) fault("%zu bytes in a slot", received);
    if (!is_own && sent > 0 && given.is_shared) {
      const auto& first = given.sends[given.member == 0 ? 1 : 0];
      if (sent > given.rooms[given.member]) fault("%zu bytes in a slot", sent);
      if (given.sends[i].from != first.from || sent != first.bytes) fault("blocks that differ");
    }
    if (given.in_lines && !is_own &&
        std::max(sent, received) > joint::most_in_lines(static_cast<unsigned>(members))) {
      fault("%zu bytes in lines", std::max(sent, received));
    }
    if (is_own && given.receives[i].to && sent != received) fault("%zu bytes stay", received);
    Memory::instance().check_joint(
        device_, given.memory[i],
        joint::memory_bytes(static_cast<unsigned>(members), given.rooms[i], given.has_lines));
    // Of the joint memory nothing is told: that others work there meanwhile is what it is for.
    if (sent > 0) {
      Memory::instance().check(device_, given.sends[i].from, sent);
      accesses.push_back(reads(given.sends[i].from, sent));
    }
    if (received > 0 && given.receives[i].to) {
      Memory::instance().check(device_, given.receives[i].to, received);
      accesses.push_back(writes(given.receives[i].to, received));
    }
  }
  use_thread();
  return give(accesses, [work = MoveWork(given)]() -> std::optional<gpu::Outcome> {
    work.run();
    return std::nullopt;
  });
}

}  // namespace mpress::simulated
