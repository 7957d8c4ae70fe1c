// What several members combine together, as simulated devices do it: by the layout of real ones, a
// line and a flag at a time, in the thread of the queue.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "await.hpp"
#include "codec/combine.hpp"
#include "gpu/joint.hpp"
#include "queue.hpp"
#include "queue_work.hpp"

namespace mpress::simulated {
namespace {

namespace joint = gpu::joint;

/// What a Joint says, for as long as the work takes.
class JointWork {
 public:
  JointWork(gpu::Combine how, ElementType type, const gpu::Joint& given)
      : how_(how),
        type_(type),
        width_(element_size(type)),
        memory_(given.memory.begin(), given.memory.end()),
        begins_(given.begins.begin(), given.begins.end()),
        given_(given) {}

  std::size_t bytes() const { return begins_.back() * width_; }
  std::size_t out_bytes() const {
    if (given_.gathers) return bytes();
    return combines(given_.member) ? count(part_of(given_.member)) * width_ : 0;
  }

  void run() const {
    const bool is_done = given_.is_brief ? run_in_lines() : run_by_flags();
    if (!is_done) std::atomic_ref(*given_.undone).store(1, std::memory_order_release);
  }

 private:
  std::uint32_t* stop() const { return given_.is_endless ? given_.undone : nullptr; }
  std::size_t parts() const { return begins_.size() - 1; }
  bool has_parts() const { return parts() > 1; }
  unsigned members() const { return static_cast<unsigned>(memory_.size()); }
  bool combines(unsigned member) const {
    return has_parts() ? count(member) > 0 : (given_.combiners >> member & 1) != 0;
  }
  std::size_t part_of(unsigned member) const { return has_parts() ? member : 0; }
  std::size_t count(std::size_t part) const { return begins_[part + 1] - begins_[part]; }
  unsigned blocks() const { return joint::blocks_for(bytes()); }
  std::byte* at(unsigned member, std::size_t offset) const {
    return Memory::instance().view(memory_[member]) + offset;
  }
  const std::byte* input(std::size_t part) const {
    return Memory::instance().view(static_cast<const std::byte*>(given_.input)) +
           begins_[part] * width_;
  }
  std::byte* out() const { return Memory::instance().view(static_cast<std::byte*>(given_.out)); }

  std::uint64_t* line(unsigned of, unsigned from, std::size_t number) const {
    return reinterpret_cast<std::uint64_t*>(
        at(of, joint::lines_at(from) + number * joint::line_bytes));
  }
  std::size_t lines(std::size_t part) const {
    return (count(part) * width_ + joint::line_payload - 1) / joint::line_payload;
  }

  bool run_in_lines() const {
    for (unsigned member = 0; member < members() && !given_.again; ++member) {
      if (!combines(member)) continue;
      const std::size_t part = part_of(member);
      for (std::size_t i = 0; i < lines(part); ++i) {
        std::uint32_t data[2] = {};
        const std::size_t first = i * joint::line_payload;
        std::memcpy(data, input(part) + first, std::min(sizeof data, count(part) * width_ - first));
        for (int half = 0; half < 2; ++half) {
          std::atomic_ref(line(member, given_.member, i)[half])
              .store(std::uint64_t{given_.call} << 32 | data[half], std::memory_order_release);
        }
      }
    }
    if (!combines(given_.member)) return true;
    const std::size_t part = part_of(given_.member);
    std::vector<std::vector<std::uint32_t>> inputs(members());
    for (unsigned member = 0; member < members(); ++member) {
      for (std::size_t half = 0; half < 2 * lines(part); ++half) {
        const std::atomic_ref word(line(given_.member, member, half / 2)[half % 2]);
        std::uint64_t found = 0;
        const auto is_there = [&] {
          found = word.load(std::memory_order_acquire);
          return found >> 32 == given_.call;
        };
        if (!await(is_there, stop())) return false;
        inputs[member].push_back(static_cast<std::uint32_t>(found));
      }
    }
    std::vector<const void*> views;
    for (const auto& one : inputs) views.push_back(one.data());
    codec::combine_all(how_, type_, views, out(), count(part));
    return true;
  }

  void tell(unsigned wait, bool all) const {
    for (unsigned member = 0; member < members(); ++member) {
      if (member == given_.member || !(all || combines(member))) continue;
      for (unsigned block = 0; block < blocks(); ++block) {
        flag(member, wait, given_.member, block).store(given_.call, std::memory_order_release);
      }
    }
  }
  std::atomic_ref<std::uint32_t> flag(unsigned of, unsigned wait, unsigned from,
                                      unsigned block) const {
    return std::atomic_ref(
        *reinterpret_cast<std::uint32_t*>(at(of, joint::flag_at(wait, from, block))));
  }
  bool await_others(unsigned wait) const {
    for (unsigned member = 0; member < members(); ++member) {
      for (unsigned block = 0; block < blocks() && member != given_.member; ++block) {
        const auto is_set = [&] {
          return flag(given_.member, wait, member, block).load(std::memory_order_acquire) ==
                 given_.call;
        };
        if (!await(is_set, stop())) return false;
      }
    }
    return true;
  }

  bool run_by_flags() const {
    std::size_t offset = joint::parts_at(members()), own_at = offset;
    for (std::size_t part = 0; part < parts(); ++part) {
      if (part == part_of(given_.member)) own_at = offset;
      const std::size_t bytes = count(part) * width_;
      if (!given_.again && bytes > 0) std::memcpy(at(given_.member, offset), input(part), bytes);
      offset += joint::aligned(bytes);
    }
    tell(0, false);
    const std::size_t part = part_of(given_.member);
    if (combines(given_.member)) {
      if (!await_others(0)) return false;
      std::vector<const void*> views;
      for (unsigned member = 0; member < members(); ++member) views.push_back(at(member, own_at));
      std::byte* const result = out() + (given_.gathers ? begins_[part] * width_ : 0);
      codec::combine_all(how_, type_, views, result, count(part));
      if (given_.gathers) std::memcpy(at(given_.member, offset), result, count(part) * width_);
    }
    if (!given_.gathers) return true;
    tell(1, true);
    if (!await_others(1)) return false;
    for (unsigned member = 0; member < members(); ++member) {
      if (member == given_.member || count(member) == 0) continue;
      std::memcpy(out() + begins_[member] * width_, at(member, offset), count(member) * width_);
    }
    return true;
  }

  const gpu::Combine how_;
  const ElementType type_;
  const std::size_t width_;
  const std::vector<std::byte*> memory_;
  const std::vector<std::uint64_t> begins_;
  const gpu::Joint given_;  ///< but for what it views
};

}  // namespace

gpu::Event Queue::combine_jointly(gpu::Combine how, ElementType type, const gpu::Joint& given) {
  const Call call(in_call_);
  const std::size_t members = given.memory.size(), parts = given.begins.size() - 1;
  if (members < 2 || members > joint::most_members) fault("%zu members", members);
  if (parts != 1 && parts != members) fault("%zu parts of %zu members", parts, members);
  if (given.call == 0) fault("a joint call without a number");
  check_reached(given.undone, sizeof *given.undone);
  const JointWork work(how, type, given);
  for (const void* end : {given.input, static_cast<const void*>(given.out)}) {
    if (reinterpret_cast<std::uintptr_t>(end) % element_size(type) != 0) {
      fault("%p: elements are not aligned", end);
    }
  }
  if (given.is_brief && (work.bytes() > joint::most_brief || given.gathers)) {
    fault("%zu bytes in lines", work.bytes());
  }
  for (std::byte* const memory : given.memory) {
    Memory::instance().check_joint(
        device_, memory,
        joint::memory_bytes(static_cast<unsigned>(members), given.is_brief ? 0 : work.bytes()));
  }
  // Of the joint memory nothing is told: that others work there meanwhile is what it is for.
  Memory::instance().check(device_, given.input, work.bytes());
  std::vector<Access> accesses = {reads(given.input, work.bytes())};
  if (work.out_bytes() > 0) {
    Memory::instance().check(device_, given.out, work.out_bytes());
    accesses.push_back(writes(given.out, work.out_bytes()));
  }
  use_thread();
  return give(accesses, [work]() -> std::optional<gpu::Outcome> {
    work.run();
    return std::nullopt;
  });
}

}  // namespace mpress::simulated
