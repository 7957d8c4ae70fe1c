#include "coll/symmetric/joint_memory.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "gpu/joint_sum.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t alarm_bytes = 256;

/// What is in lines and flags must be no number that comes again; a call may take many.
constexpr std::uint32_t most_calls = UINT32_MAX - gpu::joint_sum::most_laps;

/// Symmetric memory of a team, for each link that has some.
struct KeptMemories final : Team::Kept {
  KeptMemories(Messaging& messaging, const Team& team) {
    for (std::size_t at = 0; at < by_link.size(); ++at) {
      link::MemoryLink* const link = messaging.links.memory_link(link::kind_at(at));
      if (link) by_link[at].emplace(messaging, team, *link);
    }
  }

  static KeptMemories& of(Messaging& messaging, Team& team) {
    std::unique_ptr<Team::Kept>& kept = team.kept();
    if (!kept) kept = std::make_unique<KeptMemories>(messaging, team);
    return static_cast<KeptMemories&>(*kept);
  }

  /// In the order of link/list.hpp.
  std::array<std::optional<JointMemories>, link::count_between_devices> by_link;
};

}  // namespace

std::uint64_t joint_device_word(const Messaging& messaging, int device) {
  if (messaging.config.joint_kernels == "never") return 0;
  const std::uint64_t identity = gpu::gpu()->identity(device);
  if (messaging.config.joint_kernels == "always") {
    return identity + static_cast<std::uint64_t>(messaging.rank) + 1;
  }
  return identity;
}

bool have_own_devices(std::vector<std::uint64_t> devices) {
  std::sort(devices.begin(), devices.end());
  return devices.front() != 0 &&
         std::adjacent_find(devices.begin(), devices.end()) == devices.end();
}

bool have_all_devices(std::span<const std::uint64_t> devices) {
  return std::find(devices.begin(), devices.end(), 0) == devices.end();
}

JointMemories& JointMemories::of(Messaging& messaging, Team& team) {
  return *KeptMemories::of(messaging, team).by_link[link::position(team.modes().between_devices())];
}

bool JointMemories::are_busy(Messaging& messaging, Team& team) {
  return std::ranges::any_of(KeptMemories::of(messaging, team).by_link,
                             [](const auto& one) { return one && one->are_busy(); });
}

bool JointMemory::connect(int device) {
  bool are_read = true;
  for (int member = 0; member < team_.size(); ++member) {
    if (member == team_.rank()) continue;
    const int rank = team_.world_rank(member);
    link_.connect(rank, device);
    are_read = are_read && link_.is_read_by(rank, device);
  }
  return are_read;
}

JointMemory::~JointMemory() {
  release();
  for (Other& other : others_) other.finish();
}

void JointMemory::Other::finish() {
  if (memory) memory->finish(false);
  if (alarm) alarm->finish(false);
}

bool JointMemory::provide(int device, const Size& size) {
  if (is_given_up_ || (device_ != gpu::host && device != device_)) return false;
  // All members begin to count anew at the same call, in memory that has been cleared.
  const bool is_worn = calls_ >= most_calls;
  if (own_.chunks > 0 && size.bytes <= room_ && !is_worn) return true;
  device_ = device;
  if (!tally_) tally_ = messaging_.devices.take_pinned(device, sizeof(gpu::JointSum::Tally));
  // What there is stays where there is no room for more.
  link::Transfer own, alarm;
  if (!tally_ || !reserve(size.bytes, own)) return false;
  if (!reserve(alarm_bytes, alarm)) {
    link_.abandon(own);
    return false;
  }
  if (is_worn) calls_ = 0;
  release();
  own_ = own;
  own_alarm_ = alarm;
  room_ = size.bytes;
  if (clear(size.cleared)) return true;
  release();
  return false;
}

bool JointMemory::reserve(std::size_t bytes, link::Transfer& transfer) {
  std::vector<int> readers;
  for (int member = 0; member < team_.size(); ++member) {
    if (member != team_.rank()) readers.push_back(team_.world_rank(member));
  }
  const link::Reservation wanted{readers,
                                 device_,
                                 1,
                                 bytes,
                                 messaging_.links.channel.next_operation(),
                                 is_on_host() ? &messaging_.links.held_by_teams : nullptr};
  if (!link_.reserve(wanted, transfer)) return false;
  link_.lay_out(transfer);
  return true;
}

bool JointMemory::clear(std::size_t bytes) {
  if (is_on_host()) {
    std::fill_n(own_.place(0), bytes, std::byte{});
    link_.publish(own_, 0, room_);
    return true;
  }
  clearing_ = messaging_.devices.queue(device_, gpu::Priority::first);
  if (!clearing_) return false;
  zeros_.assign(bytes, std::byte{});
  cleared_ = clearing_->copy(own_.place(0), zeros_.data(), zeros_.size());
  return true;
}

/// Tells the others once it is.
bool JointMemory::is_cleared() {
  if (cleared_ == 0) return own_.chunks > 0;
  if (clearing_->query(cleared_) != gpu::State::done) return false;
  cleared_ = 0;
  clearing_ = {};
  zeros_ = {};
  link_.publish(own_, 0, room_);
  return true;
}

JointMemory::Routes JointMemory::routes() const { return {route_to(own_), route_to(own_alarm_)}; }

void JointMemory::open(std::span<const Routes> routes) {
  is_told_ = true;
  memory_.resize(routes.size());
  memory_[static_cast<std::size_t>(team_.rank())] = own_.place(0);
  others_.resize(routes.size());
  for (std::size_t i = 0; i < routes.size(); ++i) {
    Other& other = others_[i];
    const int member = static_cast<int>(i);
    if (member == team_.rank() || (other.memory && other.routes == routes[i])) continue;
    other.finish();
    other = {routes[i], receive(member, routes[i][0], room_),
             receive(member, routes[i][1], alarm_bytes)};
  }
}

Answer JointMemory::answer(std::span<const std::uint64_t> offers, std::size_t words) {
  std::vector<std::uint64_t> devices;
  std::vector<Routes> routes;
  Ability least = Ability::has;
  for (std::size_t i = 0; i < offers.size(); i += words) {
    least = std::min(least, static_cast<Ability>(offers[i] & ~left_bit));
    devices.push_back(offers[i + 1]);
    routes.push_back({offers[i + 2], offers[i + 3]});
  }
  if (least == Ability::none) return Answer::not_now;
  if (!have_own_devices(std::move(devices))) return Answer::never;
  if (least == Ability::has) return Answer::accepted;
  open(routes);
  return Answer::not_yet;
}

/// Null where it is no such memory.
std::unique_ptr<link::Inbound> JointMemory::receive(int member, std::uint64_t word,
                                                    std::size_t bytes) {
  link::Route route(word);
  route.slot += static_cast<std::uint32_t>(team_.rank() - (team_.rank() > member ? 1 : 0));
  const int rank = team_.world_rank(member);
  if (route.kind != link_.kind() || !link_.knows(rank, route, 1)) return nullptr;
  return link_.receive(
      {rank, route, 1, bytes, bytes, true, device_, nullptr, &messaging_.links.channel, 0});
}

bool JointMemory::is_open() {
  if (!is_cleared() || !is_told_) return false;
  bool are_open = true;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    Other& other = others_[i];
    if (static_cast<int>(i) == team_.rank() || other.is_open) continue;
    link::Arrived arrived;
    other.is_open = other.memory && other.alarm &&
                    other.memory->poll(0, arrived) == gpu::State::done &&
                    arrived.device == (is_on_host() ? gpu::host : device_);
    are_open = are_open && other.is_open;
    // Others' memory is opened to be written, too.
    other.bytes = arrived.bytes;
    if (other.is_open) memory_[i] = const_cast<std::byte*>(arrived.data);
  }
  return are_open;
}

void JointMemory::tell_failure() {
  give_up();
  link_.publish(own_alarm_, 0, 1);
}

JointMemory::End JointMemory::look(QueueLease& queue, gpu::Event event, std::uint32_t* undone,
                                   Status& status) {
  const gpu::State state = queue ? queue->query(event) : gpu::State::failed;
  if (state == gpu::State::pending) return End::pending;
  if (state == gpu::State::failed) {
    if (queue) queue->drain();  // of nothing: it refuses
    status = refused(messaging_, device_);
    tell_failure();
    return End::over;
  }
  if (std::atomic_ref(*undone).load(std::memory_order_acquire) == 0) return End::over;
  const int failed = failed_member();
  if (failed < 0) return End::undone;
  trace::say("rank " + std::to_string(messaging_.rank) + ": what rank " +
             std::to_string(team_.world_rank(failed)) +
             " brings to a collective call did not come from its GPU");
  status = Status::device_failed;
  give_up();
  return End::over;
}

/// Has another member published a failure, or has its process ended? Then its number, else -1.
int JointMemory::failed_member() {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    const int member = static_cast<int>(i);
    link::Arrived arrived;
    if (member == team_.rank()) continue;
    if (others_[i].alarm->poll(0, arrived) != gpu::State::pending ||
        !link_.lives(team_.world_rank(member))) {
      return member;
    }
  }
  return -1;
}

/// This member's own. Its memory comes free once the others have finished with it, too.
void JointMemory::release() {
  if (cleared_ != 0) clearing_->drain();
  cleared_ = 0;
  clearing_ = {};
  for (link::Transfer* const transfer : {&own_, &own_alarm_}) {
    if (transfer->chunks == 0) continue;
    if (is_told_) {
      link_.release(*transfer);
    } else {
      link_.abandon(*transfer);
    }
    *transfer = {};
  }
  is_told_ = false;
  room_ = 0;
}

}  // namespace mpress::engine
