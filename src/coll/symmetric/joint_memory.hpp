// Memory that the kernels of all members of a team reach, for what they combine together
// (gpu/joint.hpp, gpu/joint_sum.hpp): each member's own, and the others' as its device has them
// open. It is that of the link by which the members' devices reach each other: the devices', or the
// host's, which all devices have pinned. Made by the first calls that want it, kept as long as the
// team, and made anew where calls want more.
//
// A member's offer of each call says where its own is. Kernels may use it once all offers say that
// their members have all others' open, as of the last offers of these.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "coll/answer.hpp"
#include "coll/symmetric/blind_sums.hpp"
#include "coll/team.hpp"
#include "core/devices.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/gpu.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

struct Messaging;

/// Not 0: the number of this member's device, which members tell each other: kernels of two that
/// share one need not run at once. 0: this member's give none.
std::uint64_t joint_device_word(const Messaging& messaging, int device);
/// Is each a device of its own, by the words of all?
bool have_own_devices(std::vector<std::uint64_t> devices);
/// Do all words name one?
bool have_all_devices(std::span<const std::uint64_t> devices);

class JointMemory {
 public:
  /// Where a member's memory is, and what it publishes once its device has failed.
  static constexpr std::size_t words = 2;
  using Routes = std::array<std::uint64_t, words>;

  /// How large a member's is, and how much of it has to be zero at first.
  struct Size {
    std::size_t bytes, cleared;
  };

  /// Memory of `link`, by which the members' devices reach each other.
  JointMemory(Messaging& messaging, const Team& team, link::MemoryLink& link)
      : messaging_(messaging),
        team_(team),
        link_(link),
        is_on_host_(link::attributes_of(link.kind())->is_through_host) {}
  JointMemory(const JointMemory&) = delete;
  JointMemory& operator=(const JointMemory&) = delete;
  /// No kernel of this process uses it any more.
  ~JointMemory();

  /// Has this member some of that size on `device`? Else it is made, where that can be done now.
  /// False where it cannot, or some was made on another device before. No kernel of this member
  /// uses what there was; those of others, who may still read results there, keep it until they
  /// have opened what is new.
  bool provide(int device, const Size& size);

  /// What there is of it.
  std::size_t bytes() const { return room_; }

  /// Of the calls so far; gpu::host before the first.
  int device() const { return device_; }

  /// Opens what the other members share. Do kernels of this device reach all of it?
  bool connect(int device);

  /// Of this member's, once it is provided.
  Routes routes() const;

  /// Of all, by member: opens what is new. Once all members' is provided.
  void open(std::span<const Routes> routes);

  /// Are all members' open, as of their last offers, and this one's ready?
  bool is_open();

  /// By member; once all are open.
  std::span<std::byte* const> memory() const { return memory_; }

  bool is_on_host() const { return is_on_host_; }

  /// By which way what kernels bring by it goes.
  trace::Way way() const { return link::way_by(link_.kind()); }

  /// What a member tells of its memory.
  enum class Ability : std::uint64_t {
    none,
    makes,  ///< it has some, but has not yet opened all others', as of their last offers
    has,
  };

  /// Another bit of the word that tells it: whether a kernel may be left to the device.
  static constexpr std::uint64_t left_bit = 1 << 8;

  /// Offers of all, by member, `words` words each: first its Ability, its device's word and
  /// its routes. The same for all. `accepted`: all members' are open; or else they are being
  /// opened.
  Answer answer(std::span<const std::uint64_t> offers, std::size_t words);

  /// What a kernel tells, first whether it has left something undone; of host memory that the
  /// device reaches.
  std::uint32_t* undone() const { return &tally().undone; }
  gpu::JointSum::Tally& tally() const {
    return *reinterpret_cast<gpu::JointSum::Tally*>(tally_.data());
  }

  /// The number of the next call; all members make the same ones. The first, of one that takes
  /// more.
  std::uint32_t next_call() { return next_calls(1); }
  std::uint32_t next_calls(std::uint32_t numbers) {
    calls_ += numbers;
    return calls_ - numbers + 1;
  }

  /// Of what another member has; once all are open.
  std::size_t bytes_of(int member) const { return others_[static_cast<std::size_t>(member)].bytes; }

  /// Has no call been made by what there is?
  bool is_unused() const { return calls_ == 0; }

  /// One call at a time is under way.
  bool is_busy() const { return is_busy_.load(std::memory_order_acquire); }
  void set_busy(bool is_busy) { is_busy_.store(is_busy, std::memory_order_release); }

  /// This member's device will do nothing any more: tells the others.
  void tell_failure();

  /// What has become of a kernel that uses it.
  enum class End : unsigned char { pending, undone, over };
  /// `undone`: it is to be given again. `over` with a failure in `status`, where this device
  /// or another member has failed; then this is given up.
  End look(QueueLease& queue, gpu::Event event, std::uint32_t* undone, Status& status);

  /// What all members have found out of their devices, before any takes memory.
  enum class Devices : unsigned char { unknown, own, shared };
  Devices devices() const { return devices_; }
  void set_devices(Devices devices) { devices_ = devices; }

  /// Has another member's device failed, or its process ended? Once all are open.
  bool has_lost_member() { return failed_member() >= 0; }

  /// It has failed, and is not used any more.
  bool is_given_up() const { return is_given_up_; }

 private:
  /// Another member's.
  struct Other {
    Routes routes{};
    std::unique_ptr<link::Inbound> memory = nullptr, alarm = nullptr;
    bool is_open = false;
    std::size_t bytes = 0;  ///< once it is open

    void finish();
  };

  bool reserve(std::size_t bytes, link::Transfer& transfer);
  bool clear(std::size_t bytes);
  bool is_cleared();
  void release();
  void give_up() { is_given_up_ = true; }
  int failed_member();
  std::unique_ptr<link::Inbound> receive(int member, std::uint64_t route, std::size_t bytes);

  std::uint64_t route_to(const link::Transfer& transfer) const {
    return link::Route(0, link_.kind(), transfer.first).word();
  }

  Messaging& messaging_;
  const Team& team_;
  link::MemoryLink& link_;
  const bool is_on_host_;
  int device_ = gpu::host;
  std::size_t room_ = 0;  ///< bytes of this member's
  link::Transfer own_, own_alarm_;
  bool is_told_ = false;       ///< the others have begun to open these
  std::vector<Other> others_;  ///< by member
  std::vector<std::byte*> memory_;
  memory::Buffer tally_;
  std::vector<std::byte> zeros_;  ///< while they are copied
  QueueLease clearing_;
  gpu::Event cleared_ = 0;
  std::uint32_t calls_ = 0;
  std::atomic<bool> is_busy_{false};
  bool is_given_up_ = false;
  Devices devices_ = Devices::unknown;
};

/// Those of a team, by one link. One call at a time uses each.
struct JointMemories {
  JointMemories(Messaging& messaging, const Team& team, link::MemoryLink& link)
      : combined(messaging, team, link),
        raw_sums(messaging, team, link),
        moved(messaging, team, link),
        coded_sums(messaging, team, link) {}

  /// By the link by which the members' devices reach each other, as of their last agreement: for
  /// the call whose turn it is, and while a blocking one is under way. Only where
  /// CallModes::has_memory_of_all(). `messaging` and `team` outlive it.
  static JointMemories& of(Messaging& messaging, Team& team);

  /// Is a call of those under way that do not overlap, by whichever link?
  static bool are_busy(Messaging& messaging, Team& team);
  bool are_busy() const { return combined.is_busy() || raw_sums.is_busy() || moved.is_busy(); }

  // Calls of the first three do not overlap, and blocking ones of the last may overlap with those.
  JointMemory combined;    ///< of coll/joint/joint_reduction
  JointMemory raw_sums;    ///< of those that are long
  JointMemory moved;       ///< of coll/joint/joint_movement
  JointMemory coded_sums;  ///< of coll/reduce/one_kernel
  BlindSums blind_sums;    ///< of those
};

}  // namespace mpress::engine
