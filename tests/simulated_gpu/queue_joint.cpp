// What several members combine together, as simulated devices do it: by the layout of real ones, a
// line and a flag at a time, in the thread of the queue.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "await.hpp"
#include "codec/combine.hpp"
#include "gpu/joint.hpp"
#include "lines.hpp"
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
  std::size_t longest_part() const {
    std::size_t longest = 0;
    for (std::size_t part = 0; part < parts(); ++part) longest = std::max(longest, count(part));
    return longest * width_;
  }
  std::size_t out_bytes() const {
    if (given_.gathers) return bytes();
    return combines(given_.member) ? count(part_of(given_.member)) * width_ : 0;
  }

  void run() const {
    const bool is_done = given_.in_lines ? run_in_lines() : run_by_flags();
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

  LinesView lines(const gpu::Lines& lines, unsigned of, unsigned from) const {
    return {at(of, lines.at(from)), where().are_dense};
  }
  joint::TwoLines where() const {
    return joint::lines_for(members(), longest_part(), given_.gathers);
  }
  std::size_t part_bytes(std::size_t part) const { return count(part) * width_; }

  bool run_in_lines() const {
    const joint::TwoLines where = this->where();
    const unsigned own = given_.member;
    for (unsigned member = 0; member < members() && !given_.again; ++member) {
      const std::size_t part = part_of(member);
      if (!combines(member)) continue;
      lines(where.contributions, member, own).store(input(part), part_bytes(part), given_.call);
    }
    if (combines(own)) {
      const std::size_t part = part_of(own);
      std::vector<std::vector<std::byte>> inputs(members(),
                                                 std::vector<std::byte>(part_bytes(part)));
      std::vector<const void*> views;
      for (unsigned member = 0; member < members(); ++member) {
        if (!lines(where.contributions, own, member)
                 .load(inputs[member].data(), part_bytes(part), given_.call, stop())) {
          return false;
        }
        views.push_back(inputs[member].data());
      }
      std::byte* const result = out() + (given_.gathers ? begins_[part] * width_ : 0);
      codec::combine_all(how_, type_, views, result, count(part));
      for (unsigned member = 0; member < members() && given_.gathers; ++member) {
        if (member == own) continue;
        lines(where.results, member, own).store(result, part_bytes(part), given_.call);
      }
    }
    for (unsigned member = 0; member < members() && given_.gathers; ++member) {
      if (member == own) continue;
      if (!lines(where.results, own, member)
               .load(out() + begins_[member] * width_, part_bytes(member), given_.call, stop())) {
        return false;
      }
    }
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
    std::size_t offset = joint::parts_at(members(), given_.has_long_lines), own_at = offset;
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
  const Call call(calls_);
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
  if (given.in_lines && work.longest_part() > joint::most_in_lines) {
    fault("%zu bytes in lines", work.longest_part());
  }
  const bool is_brief = given.in_lines && joint::is_brief(work.longest_part(), given.gathers);
  if (given.in_lines && !is_brief && !given.has_long_lines) fault("no room for long lines");
  for (std::byte* const memory : given.memory) {
    Memory::instance().check_joint(
        device_, memory,
        joint::memory_bytes(static_cast<unsigned>(members), is_brief ? 0 : work.bytes(),
                            given.has_long_lines));
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
