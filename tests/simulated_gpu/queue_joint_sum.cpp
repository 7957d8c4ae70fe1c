// What several members add up together in quanta of szp, as simulated devices do it: by the layout
// of real ones, a unit and a flag at a time, in the thread of the queue. Quanta take 32 bits each.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "await.hpp"
#include "codec/any_order.hpp"
#include "codec/combine.hpp"
#include "codec/range.hpp"
#include "codec/szp/format.hpp"
#include "gpu/joint_sum.hpp"
#include "queue.hpp"
#include "queue_work.hpp"

namespace mpress::simulated {
namespace {

namespace joint = gpu::joint_sum;
namespace any_order = codec::any_order;
namespace szp = codec::szp;
using joint::Layout;
using joint::RowHead;

/// What a JointSum says, for as long as the work takes.
template <class T>
class SumWork {
 public:
  explicit SumWork(const gpu::JointSum& given)
      : memory_(given.memory.begin(), given.memory.end()),
        units_(given.units.begin(), given.units.end()),
        begins_(given.begins.begin(), given.begins.end()),
        counts_(given.counts.begin(), given.counts.end()),
        given_(given) {
    if (given.grid.bound != 0 && !szp::quantizer_of(given.grid, z_)) {
      fault("a grid without a step: %g", given.grid.bound);
    }
    szp::quantizer_of({given.grid.bound, given.grid.slack}, z_of_sums_);
  }

  /// `left_off`: where this queue's last joint sum did.
  void run(SumLeftOff& left_off) {
    if (!given_.again) left_off = {};
    const bool collects = is_reader(given_.member);
    const std::size_t rounds = (longest() + per_round() - 1) / per_round() + (collects ? 2 : 1);
    const std::size_t lag = collects ? 2 : longest() > ring() ? joint::rounds_a_lap - 1 : SIZE_MAX;
    bool is_done = true;
    for (; is_done && left_off.round < rounds; left_off.round += is_done) {
      if (!left_off.has_contributed) contribute(left_off.round);
      left_off.has_contributed = true;
      is_done = (left_off.round < 1 || add_up(left_off.round - 1, left_off.added_up)) &&
                (left_off.round < lag || collect(left_off.round - lag));
      left_off.has_contributed = !is_done;
    }
    given_.tally->sent = sent_;
    given_.tally->received = received_;
    if (given_.grid.reach > 0 && has_elements_) given_.tally->as_elements = 1;
    if (given_.finds_range) given_.tally->extent = codec::extent_of(range_);
    if (!is_done) std::atomic_ref(given_.tally->undone).store(1, std::memory_order_release);
  }

 private:
  static constexpr ElementType elements = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;

  unsigned members() const { return static_cast<unsigned>(memory_.size()); }
  Layout layout(unsigned member) const { return {members(), units_[member], given_.is_on_host}; }
  bool is_reader(unsigned member) const { return (given_.readers >> member & 1) != 0; }
  bool is_source(unsigned member) const { return given_.source == static_cast<int>(member); }
  bool brings(unsigned member) const { return given_.source < 0 || is_source(member); }
  std::size_t units(unsigned part) const { return joint::units_of(counts_[part], sizeof(T)); }
  std::uint32_t longest() const {
    const std::size_t count = *std::ranges::max_element(counts_);
    return static_cast<std::uint32_t>(joint::units_of(count, sizeof(T)));
  }
  std::uint32_t ring() const {
    return joint::ring_of(longest(), *std::ranges::min_element(units_));
  }
  std::size_t per_round() const {
    return longest() <= ring() ? std::max(longest(), 1u) : ring() / joint::rounds_a_lap;
  }
  std::size_t place(std::size_t unit) const { return unit % ring(); }
  /// Of results: who gets none is told where their place is used again.
  bool is_told(unsigned member, unsigned part, std::size_t unit) const {
    return is_reader(member) || unit + ring() < units(part);
  }
  /// What flags have that tell of it.
  std::uint32_t flag(std::size_t unit) const {
    return given_.call + static_cast<std::uint32_t>(unit / ring());
  }
  std::byte* at(unsigned member, std::size_t offset) const {
    return Memory::instance().view(memory_[member]) + offset;
  }
  const T* input() const {
    return reinterpret_cast<const T*>(
        Memory::instance().view(static_cast<const std::byte*>(given_.input)));
  }
  T* out() const {
    return reinterpret_cast<T*>(Memory::instance().view(static_cast<std::byte*>(given_.out)));
  }

  /// Elements [begin, begin + count) of a part are a row's.
  struct Row {
    unsigned number;
    std::size_t begin, count;
  };
  template <class Do>
  void each_row(unsigned part, std::size_t unit, Do act) const {
    for (unsigned row = 0; row < joint::rows; ++row) {
      const std::size_t begin = (unit * joint::rows + row) * joint::row_elements(sizeof(T));
      if (begin >= counts_[part]) return;
      act(Row{row, begin, std::min(joint::row_elements(sizeof(T)), counts_[part] - begin)});
    }
  }

  std::atomic_ref<std::uint32_t> word(unsigned member, std::size_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at(member, offset)));
  }

  bool quantum(T x, std::int32_t& q, bool is_sum = false) const {
    T found = 0;
    if (given_.grid.bound == 0) return false;
    if (!any_order::quantum_of(is_sum ? z_of_sums_ : z_, x, found)) return false;
    if (sizeof(T) == 8 && !(found >= -joint::reach && found < joint::reach)) return false;
    q = static_cast<std::int32_t>(found);
    return true;
  }

  /// As elements, where one has no quantum, or, of sums, is not what its quantum stands for, or
  /// where a contribution had none.
  void send(unsigned to, std::size_t slot, const Row& row, const T* elements, bool are_sums,
            bool are_quanta = true) {
    std::vector<std::int32_t> quanta(row.count);
    for (std::size_t i = 0; i < row.count && are_quanta; ++i) {
      are_quanta = quantum(elements[i], quanta[i], are_sums);
      const T decoded = any_order::multiply(static_cast<T>(quanta[i]), z_.step);
      if (are_sums) are_quanta = are_quanta && std::memcmp(&decoded, elements + i, sizeof(T)) == 0;
    }
    send_row(to, slot, row, are_quanta ? quanta.data() : nullptr, elements);
  }
  void send_row(unsigned to, std::size_t slot, const Row& row, const std::int32_t* quanta,
                const T* elements) {
    const Layout there = layout(to);
    RowHead head{0, joint::as_elements, {}};
    std::vector<std::uint16_t> offsets;
    if (quanta) {
      const auto [least, most] = std::minmax_element(quanta, quanta + row.count);
      head = {*least, 32, {}};
      if (std::int64_t{*most} - *least <= UINT16_MAX) {
        head.bits = 16;
        for (std::size_t i = 0; i < row.count; ++i) {
          offsets.push_back(static_cast<std::uint16_t>(quanta[i] - *least));
        }
      }
    }
    has_elements_ = has_elements_ || !quanta;
    std::memcpy(at(to, there.head_at(slot, row.number)), &head, sizeof head);
    const void* const data = !quanta            ? static_cast<const void*>(elements)
                             : !offsets.empty() ? offsets.data()
                                                : static_cast<const void*>(quanta);
    const std::size_t bytes = bytes_of(head, row);
    std::memcpy(at(to, there.row_at(slot, row.number)), data, bytes);
    sent_ += sizeof head + bytes;
  }
  static std::size_t bytes_of(const RowHead& head, const Row& row) {
    return row.count * (head.bits == joint::as_elements ? sizeof(T) : head.bits / 8);
  }
  void read(const T* row, const Row& of) {
    if (given_.finds_range) range_.join(codec::finite_range(elements, row, of.count));
  }
  void tell(unsigned to, std::size_t which, std::size_t unit) const {
    word(to, layout(to).flag_at(which)).store(flag(unit), std::memory_order_release);
  }
  bool await_flag(std::size_t which, std::size_t unit) const {
    return await([&] {
      return word(given_.member, layout(given_.member).flag_at(which))
                 .load(std::memory_order_acquire) == flag(unit);
    });
  }

  /// A row that came, from the memory of `holder`.
  std::vector<T> take(unsigned holder, std::size_t slot, const Row& row, bool& all_are_quanta) {
    const Layout there = layout(holder);
    RowHead head;
    std::memcpy(&head, at(holder, there.head_at(slot, row.number)), sizeof head);
    const bool are_quanta = head.bits != joint::as_elements;
    const std::size_t bytes = bytes_of(head, row);
    received_ += sizeof head + bytes;
    const std::byte* const data = at(holder, there.row_at(slot, row.number));
    std::vector<T> elements(row.count);
    has_elements_ = has_elements_ || !are_quanta;
    all_are_quanta = all_are_quanta && are_quanta;
    if (!are_quanta) {
      std::memcpy(elements.data(), data, bytes);
      return elements;
    }
    const auto* const quanta = reinterpret_cast<const std::int32_t*>(data);
    const auto* const offsets = reinterpret_cast<const std::uint16_t*>(data);
    for (std::size_t i = 0; i < row.count; ++i) {
      const std::int32_t q = head.bits == 16 ? head.least + offsets[i] : quanta[i];
      elements[i] = any_order::multiply(static_cast<T>(q), z_.step);
    }
    return elements;
  }

  /// Of a part, the units of a round.
  std::size_t first_of(std::size_t round) const { return round * per_round(); }
  std::size_t end_of(std::size_t round, unsigned part) const {
    return std::min(first_of(round + 1), units(part));
  }

  void contribute(std::size_t round) {
    for (unsigned part = 0; part < members(); ++part) {
      if (part == given_.member) continue;
      for (std::size_t unit = first_of(round); unit < end_of(round, part); ++unit) {
        const std::size_t slot =
            layout(part).contribution(Layout::other(part, given_.member), place(unit));
        if (brings(given_.member)) {
          each_row(part, unit, [&](const Row& row) {
            read(input() + begins_[part] + row.begin, row);
            send(part, slot, row, input() + begins_[part] + row.begin, false);
          });
        }
        tell(part, slot, unit);  // also who brings nothing to a broadcast
      }
    }
  }

  /// `unit`: the first that is not yet added up.
  bool add_up(std::size_t round, std::size_t& unit) {
    const unsigned own = given_.member;
    for (; unit < end_of(round, own); ++unit) {
      for (unsigned other = 0; other + 1 < members(); ++other) {
        if (!await_flag(layout(own).contribution(other, place(unit)), unit)) return false;
      }
      each_row(own, unit, [&](const Row& row) { add_row(unit, row); });
      for (unsigned member = 0; member < members(); ++member) {
        if (member == own || !is_told(member, own, unit)) continue;
        tell(member, layout(member).result(Layout::other(member, own), place(unit)), unit);
      }
    }
    return true;
  }

  void add_row(std::size_t unit, const Row& row) {
    const unsigned own = given_.member;
    std::vector<std::vector<T>> rows;
    bool are_quanta = true;
    for (unsigned member = 0; member < members(); ++member) {
      if (!brings(member)) continue;
      if (member == own) {
        const T* const mine = input() + begins_[own] + row.begin;
        read(mine, row);
        are_quanta = are_quanta && std::all_of(mine, mine + row.count, [&](T x) {
                       std::int32_t q = 0;
                       return quantum(x, q);
                     });
        has_elements_ = has_elements_ || !are_quanta;
        rows.emplace_back(mine, mine + row.count);
      } else {
        const unsigned other = Layout::other(own, member);
        const std::size_t slot = layout(own).contribution(other, place(unit));
        rows.push_back(take(own, slot, row, are_quanta));
      }
    }
    std::vector<T> sums(row.count);
    if (given_.grid.bound == 0) {
      std::vector<const void*> inputs;
      for (const std::vector<T>& from : rows) inputs.push_back(from.data());
      codec::combine_all(given_.how, elements, inputs, sums.data(), row.count);
    }
    for (std::size_t i = 0; i < row.count && given_.grid.bound != 0; ++i) {
      const auto load = [&](unsigned member) { return rows[member][i]; };
      sums[i] = any_order::sum_on_grid<T>(members(), any_order::room_for(members()), z_, load);
    }
    unsigned readers = 0;
    for (unsigned member = 0; member < members(); ++member) {
      if (member == own || !is_reader(member)) continue;
      ++readers;
      if (given_.is_on_host) continue;
      send(member, layout(member).result(Layout::other(member, own), place(unit)), row, sums.data(),
           true, are_quanta);
    }
    if (given_.is_on_host && readers > 0) {
      const std::uint64_t before = sent_;
      send(own, layout(own).own_result(place(unit)), row, sums.data(), true, are_quanta);
      sent_ += (readers - 1) * (sent_ - before);
    }
    if (given_.readers == 0 || is_reader(own)) {
      const std::size_t first = given_.readers == 0 ? 0 : begins_[own];
      std::memcpy(out() + first + row.begin, sums.data(), row.count * sizeof(T));
    }
  }

  bool collect(std::size_t round) {
    for (unsigned part = 0; part < members(); ++part) {
      if (part == given_.member) continue;
      for (std::size_t unit = first_of(round); unit < end_of(round, part); ++unit) {
        const std::size_t flag =
            layout(given_.member).result(Layout::other(given_.member, part), place(unit));
        if (is_told(given_.member, part, unit) && !await_flag(flag, unit)) return false;
        if (!is_reader(given_.member)) continue;
        const unsigned holder = given_.is_on_host ? part : given_.member;
        const std::size_t slot = given_.is_on_host ? layout(part).own_result(place(unit)) : flag;
        each_row(part, unit, [&](const Row& row) {
          bool are_quanta = true;
          const std::vector<T> elements = take(holder, slot, row, are_quanta);
          std::memcpy(out() + begins_[part] + row.begin, elements.data(), row.count * sizeof(T));
        });
      }
    }
    return true;
  }

  const std::vector<std::byte*> memory_;
  const std::vector<std::uint32_t> units_;
  const std::vector<std::uint64_t> begins_, counts_;
  const gpu::JointSum given_;        ///< but for what it views
  szp::Quantizer<T> z_, z_of_sums_;  ///< sums go beyond a grid's reach
  std::uint64_t sent_ = 0, received_ = 0;
  bool has_elements_ = false;  ///< in place of quanta, where there is a grid
  codec::Range range_;         ///< of what was read of this member's
};

}  // namespace

gpu::Event Queue::sum_jointly(ElementType type, const gpu::JointSum& given) {
  const Call call(calls_);
  const std::size_t members = given.memory.size();
  if (members < 2 || members > joint::most_members) fault("%zu members", members);
  if (given.begins.size() != members || given.counts.size() != members ||
      given.units.size() != members) {
    fault("parts of other members than %zu", members);
  }
  if (given.call == 0) fault("a joint sum without a number");
  check_reached(given.tally, sizeof *given.tally);
  const std::size_t width = element_size(type);
  std::size_t end = 0;
  for (std::size_t i = 0; i < members; ++i) {
    const Layout layout{static_cast<std::uint32_t>(members), given.units[i], given.is_on_host};
    Memory::instance().check_joint(device_, given.memory[i], layout.bytes());
    const std::size_t units = joint::units_of(given.counts[i], width);
    const std::uint32_t room = *std::min_element(given.units.begin(), given.units.end());
    if (units > room && room < joint::rounds_a_lap) {
      fault("a part of %zu units, and room for %u", units, room);
    }
    end = std::max(end, (given.begins[i] + given.counts[i]) * width);
  }
  for (const void* data : {given.input, static_cast<const void*>(given.out)}) {
    if (reinterpret_cast<std::uintptr_t>(data) % width != 0) {
      fault("%p: elements are not aligned", data);
    }
  }
  const bool brings = given.source < 0 || given.source == static_cast<int>(given.member);
  if (brings) Memory::instance().check(device_, given.input, end);
  if (given.finds_range && given.grid.bound == 0) fault("a range of what goes as it is");
  if (given.how != gpu::Combine::sum && given.grid.bound != 0) fault("not a sum, on a grid");
  if (given.source >= 0) {
    const auto source = static_cast<std::size_t>(given.source);
    if (given.grid.bound != 0 || given.counts[source] != 0 || (given.readers >> source & 1) != 0) {
      fault("member %zu does not broadcast", source);
    }
  }
  // What is written there already before work is given again stays.
  std::vector<Access> accesses;
  const auto write = [&](std::size_t first, std::size_t count) {
    std::byte* const to = static_cast<std::byte*>(given.out) + first * width;
    if (count == 0) return;
    Memory::instance().check(device_, to, count * width);
    accesses.push_back(given.again ? reads(to, count * width) : writes(to, count * width));
  };
  const bool is_reader = (given.readers >> given.member & 1) != 0;
  for (std::size_t i = 0; i < members; ++i) {
    const std::byte* const from =
        static_cast<const std::byte*>(given.input) + given.begins[i] * width;
    if (brings && given.counts[i] > 0) accesses.push_back(reads(from, given.counts[i] * width));
    if (is_reader) write(given.begins[i], given.counts[i]);
  }
  if (given.readers == 0) write(0, given.counts[given.member]);
  use_thread();
  const auto run = [&]<class T>(SumWork<T> work) {
    return give(accesses, [work, this]() mutable -> std::optional<gpu::Outcome> {
      work.run(sum_left_off_);
      return std::nullopt;
    });
  };
  return type == ElementType::f32 ? run(SumWork<float>(given)) : run(SumWork<double>(given));
}

}  // namespace mpress::simulated
