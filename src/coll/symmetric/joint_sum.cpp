#include "coll/symmetric/joint_sum.hpp"

#include <algorithm>
#include <bit>

#include "coll/pieces.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint_sum.hpp"
#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

namespace joint = gpu::joint_sum;

/// Units of the longest part.
std::uint32_t longest_units(std::span<const std::int64_t> begins, ElementType type) {
  return static_cast<std::uint32_t>(joint::units_of(longest_of(begins), element_size(type)));
}

}  // namespace

/// Units of a part that are to have room in each member's memory; not more for each size that
/// comes.
std::uint32_t JointSum::units_wanted() const {
  constexpr std::uint32_t least = 64;
  const bool is_cached = memory_.is_on_host() && as_it_is_;
  const std::size_t most = joint::most_units(static_cast<unsigned>(team_.size()), is_cached);
  const std::size_t units = std::bit_ceil(std::max(least, longest_units(begins_, type_)));
  return static_cast<std::uint32_t>(std::min(most, units));
}

JointSum::JointSum(Messaging& messaging, Team& team, JointMemory& memory, ElementType type,
                   std::span<const std::int64_t> begins, Goal goal,
                   std::optional<codec::Combine> as_it_is)
    : messaging_(messaging),
      team_(team),
      memory_(memory),
      type_(type),
      begins_(begins),
      goal_(goal),
      as_it_is_(as_it_is),
      from_(begins.begin(), begins.end() - 1) {
  for (int member = 0; member < team.size(); ++member) counts_.push_back(elements_of(member));
}

JointSum::~JointSum() {
  if (is_accepted_) memory_.set_busy(false);
}

Offer JointSum::offer(int device, const std::byte* input, std::byte* results) {
  using Devices = JointMemory::Devices;
  const std::uint64_t word = joint_device_word(messaging_, device);
  if (memory_.is_given_up() || memory_.is_busy() || word == 0) return {};
  if (memory_.devices() == Devices::shared) return {};
  device_ = device;
  input_ = input;
  results_ = results;
  const bool is_read = memory_.connect(device);
  // Ranks that share a device take no memory for this.
  if (memory_.devices() == Devices::unknown) return {0, word, 0, 0, 0};
  const joint::Layout layout{static_cast<std::uint32_t>(team_.size()), units_wanted(),
                             memory_.is_on_host()};
  if (!memory_.provide(device, {layout.bytes(), layout.cleared_bytes()}) || !is_read) return {};
  // There may be more from calls before.
  std::uint32_t units = layout.units;
  const auto has_room = [&](std::uint32_t of) {
    return joint::Layout{layout.members, of, layout.is_on_host}.bytes() <= memory_.bytes();
  };
  while (has_room(2 * units)) units *= 2;
  has_offered_ = true;
  const Ability ability = memory_.is_open() ? Ability::has : Ability::makes;
  if (ability == Ability::has) measure_link();
  const JointMemory::Routes routes = memory_.routes();
  return {static_cast<std::uint64_t>(ability), word, routes[0], routes[1], units};
}

Answer JointSum::accept(std::span<const Offer> offers, const codec::Grid& grid) {
  std::vector<std::uint64_t> devices;
  std::vector<JointMemory::Routes> routes;
  Ability least = Ability::has;
  units_.clear();
  for (const Offer& one : offers) {
    least = std::min(least, static_cast<Ability>(one[0]));
    devices.push_back(one[1]);
    routes.push_back({one[2], one[3]});
    units_.push_back(static_cast<std::uint32_t>(one[4]));
  }
  if (have_all_devices(devices) && memory_.devices() == JointMemory::Devices::unknown) {
    const bool are_own = have_own_devices(std::move(devices));
    memory_.set_devices(are_own ? JointMemory::Devices::own : JointMemory::Devices::shared);
    return are_own ? Answer::not_yet : Answer::never;
  }
  if (least == Ability::none) return Answer::not_now;
  if (!have_own_devices(std::move(devices))) return Answer::never;
  if (least == Ability::makes) {
    memory_.open(routes);
    return Answer::not_yet;
  }
  // Counts that do not match are an error of the program's, which must not overrun memory.
  const std::uint32_t room = *std::ranges::min_element(units_);
  if (units_wanted() > room) return Answer::not_now;
  grid_ = grid;
  memory_.set_busy(true);
  is_accepted_ = true;
  queue_ = messaging_.devices.queue(device_, gpu::Priority::first);
  number_ = memory_.next_calls(joint::laps_of(longest_units(begins_, type_), room));
  give(false);
  return Answer::accepted;
}

/// By reading the next member's ring, before any kernel writes there: none begins until this member
/// has said in its offer that it has all open. Calls that kernels make teach the policy nothing by
/// themselves, as each waits for the slowest member.
void JointSum::measure_link() const {
  if (memory_.is_on_host() || !memory_.is_unused()) return;
  const int next = (team_.rank() + 1) % team_.size();
  messaging_.linked_rate.measure(messaging_, team_.world_rank(next), device_,
                                 memory_.memory()[static_cast<std::size_t>(next)],
                                 memory_.bytes_of(next), "a collective call");
}

Answer JointSum::accept(std::span<const std::uint64_t> offers, const codec::Grid& grid) {
  std::vector<Offer> all(offers.size() / words);
  for (std::size_t i = 0; i < offers.size(); ++i) all[i / words][i % words] = offers[i];
  return accept(all, grid);
}

void JointSum::fail() {
  if (has_offered_) memory_.tell_failure();
}

void JointSum::give(bool again) {
  if (!queue_) return;
  gpu::JointSum::Tally& tally = memory_.tally();
  tally = {};
  const gpu::JointSum sum{.memory = memory_.memory(),
                          .units = units_,
                          .is_on_host = memory_.is_on_host(),
                          .member = static_cast<unsigned>(team_.rank()),
                          .call = number_,
                          .grid = grid_,
                          .how = as_it_is_.value_or(codec::Combine::sum),
                          .begins = from_,
                          .counts = counts_,
                          .readers = goal_.readers,
                          .source = goal_.source,
                          .input = input_,
                          .out = results_,
                          .again = again,
                          .tally = &tally,
                          .finds_range = finds_range_};
  event_ = queue_->collectives().sum_jointly(type_, sum);
}

bool JointSum::advance() {
  if (!is_accepted_) return true;
  if (again_at_ns_ != 0) {
    if (trace::now_ns() < again_at_ns_) return false;
    again_at_ns_ = 0;
    give(true);
  }
  gpu::JointSum::Tally& tally = memory_.tally();
  const JointMemory::End end = memory_.look(queue_, event_, &tally.undone, status_);
  if (end == JointMemory::End::pending) return false;
  sent_ += tally.sent;
  received_ += tally.received;
  were_quanta_ = were_quanta_ && tally.as_elements == 0;
  range_.join(codec::range_of(tally.extent));
  if (tally.received > 0) left_undone_ = 0;
  if (end == JointMemory::End::undone) {
    // A member that is far behind leaves the device to the program for half of the time.
    constexpr unsigned at_once = 2;
    constexpr std::uint64_t pause_ns = 10'000'000;
    again_at_ns_ = ++left_undone_ <= at_once ? 1 : trace::now_ns() + pause_ns;
    return false;
  }
  queue_ = {};
  is_accepted_ = false;
  memory_.set_busy(false);
  return true;
}

std::size_t JointSum::raw_bytes_to(int other) const {
  const std::size_t contributed = contributes(team_.rank()) ? elements_of(other) : 0;
  const std::size_t result = is_reader(other) ? elements_of(team_.rank()) : 0;
  return (contributed + result) * element_size(type_);
}

std::size_t JointSum::raw_bytes_from(int other) const {
  const std::size_t contributed = contributes(other) ? elements_of(team_.rank()) : 0;
  const std::size_t result = is_reader(team_.rank()) ? elements_of(other) : 0;
  return (contributed + result) * element_size(type_);
}

}  // namespace mpress::engine
