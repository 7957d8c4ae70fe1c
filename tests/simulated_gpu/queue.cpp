#include "queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "await.hpp"
#include "codec/codec.hpp"
#include "codec/float_environment.hpp"
#include "queue_work.hpp"
#include "streams.hpp"

namespace mpress::simulated {
namespace {

/// Pieces of work of one queue that are done without delay: who gives so many at once waits long.
constexpr std::size_t much_work = 16;

/// Pieces that each device of a member still does; less than 0 once it has failed.
std::atomic<std::int64_t>& pieces_left(int device) {
  struct Left {
    std::atomic<std::int64_t> pieces[devices] = {INT64_MAX, INT64_MAX};
  };
  static OfMembers<Left> left;
  return left.own().pieces[device];
}

unsigned next_seed() {
  static const char* const text = std::getenv("SIMULATED_GPU_SEED");
  static std::atomic<unsigned> queues{0};
  const unsigned seed = text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 1;
  return seed * 7919 + queues++;
}

/// Whoever looks at what is not done yet shall see that.
void spoil(const std::vector<Access>& accesses) {
  const auto is_read = [&](const Access& target) {
    for (const Access& a : accesses) {
      if (!a.writes && overlap(a, target.memory, target.bytes)) return true;
    }
    return false;
  };
  for (const Access& a : accesses) {
    if (!a.writes || a.sparse || a.bytes == 0 || is_read(a)) continue;
    std::memset(Memory::instance().view(a.memory), rubbish, a.bytes);
  }
}

/// Copies between the host and a device, where the test allows short ones alone.
void check_staging(const void* to, const void* from, std::size_t bytes) {
  static const char* const text = std::getenv("SIMULATED_GPU_STAGING");
  const Memory& memory = Memory::instance();
  const bool crosses = (memory.locate(to) == gpu::host) != (memory.locate(from) == gpu::host);
  if (text && crosses && bytes > std::strtoull(text, nullptr, 10)) {
    fault("%zu bytes are copied between the host and a device", bytes);
  }
}

/// Checks every run; returns their bounds, and sets `total` to their sum.
Access check_runs(int device, const void* buffer, const gpu::Runs& runs, bool writes,
                  std::size_t& total) {
  const auto* const base = static_cast<const std::byte*>(buffer);
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  total = 0;
  runs.for_each([&](const gpu::Run& run) {
    if (run.bytes == 0) return;
    const std::byte* const at = base + run.offset;
    Memory::instance().check(device, at, run.bytes);
    total += run.bytes;
    if (!begin || at < begin) begin = at;
    if (!end || at + run.bytes > end) end = at + run.bytes;
  });
  return {begin, static_cast<std::size_t>(end - begin), writes, true};
}

}  // namespace

void set_failing(int device, unsigned pieces) { pieces_left(device) = pieces; }

bool is_failed(int device) { return pieces_left(device) < 0; }

Queue::Queue(int device, gpu::Priority priority, bool is_programs)
    : device_(device), priority_(priority), is_programs_(is_programs), random_(next_seed()) {
  if (is_programs || random_() % 2 == 0) use_thread();
}

gpu::State Given::query() const {
  for (const Mark& mark : marks_) {
    if (mark.progress->failed) return gpu::State::failed;
    if (mark.progress->done < mark.event) return gpu::State::pending;
    Memory::instance().end(mark.progress.get(), mark.event);
  }
  return gpu::State::done;
}

/// From now on work is done although nobody asks for it.
void Queue::use_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this, seed = random_()] { run(seed); });
}

Queue::~Queue() {
  const Call call(calls_);
  {
    std::lock_guard lock(mutex_);
    if (!pieces_.empty()) fault("a queue is destroyed while it has work");
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Memory::instance().end(name(), given_);
}

gpu::Event Queue::give(std::vector<Access> accesses, Work work, bool is_wait) {
  std::lock_guard lock(mutex_);
  if (goes_ahead_) fault("copies go ahead, and no copy follows");
  const gpu::Event event = ++given_;
  if (!is_programs_ && pieces_.empty() &&
      pieces_left(device_) <= 0) {  // as a device that fails tells at once
    pieces_left(device_) = -1;
    failed_ = true;
    progress_->failed = true;
  }
  if (failed_) return event;
  pieces_.push_back({event, std::move(accesses), std::move(work),
                     static_cast<unsigned>(1 + random_() % 4), is_wait, false});
  // What is behind a wait begins when that ends: until then others may use the memory.
  if (waits_ == 0) begin(pieces_.back());
  if (is_wait) ++waits_;
  if (pieces_.size() == 1) spoil(pieces_.front().accesses);
  changed_.notify_all();
  return event;
}

void Queue::begin(Piece& piece) {
  if (std::exchange(piece.is_under_way, true)) return;
  Memory::instance().begin(name(), piece.event, piece.accesses);
}

void Queue::do_first(std::unique_lock<std::mutex>& lock) {
  Piece& piece = pieces_.front();
  if (!is_programs_ && --pieces_left(device_) < 0) {
    pieces_left(device_) = -1;
    failed_ = true;
    progress_->failed = true;
    pieces_.clear();
    waits_ = 0;
    changed_.notify_all();
    return;
  }
  lock.unlock();  // others look meanwhile; the first piece stays where it is
  // Devices know nothing of how the host's threads round.
  const std::optional<gpu::Outcome> outcome = compute([&] { return piece.work(); });
  lock.lock();
  if (outcome) outcomes_[piece.event] = *outcome;
  done_ = piece.event;
  progress_->done = done_;
  const bool was_wait = piece.is_wait;
  pieces_.pop_front();
  if (was_wait) {
    --waits_;
    for (Piece& next : pieces_) {
      begin(next);
      if (next.is_wait) break;
    }
  }
  if (!pieces_.empty()) spoil(pieces_.front().accesses);
  changed_.notify_all();
}

void Queue::run(std::mt19937::result_type seed) {
  be_member(calls_.member);
  std::mt19937 random(seed);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !pieces_.empty(); });
    if (stopping_) return;
    // Mostly short, as hosts poll meanwhile.
    const unsigned most = pieces_.size() >= much_work ? 1 : random() % 4 == 0 ? 300 : 50;
    const auto delay = std::chrono::microseconds(random() % most);
    lock.unlock();
    std::this_thread::sleep_for(delay);
    lock.lock();
    do_first(lock);
  }
}

/// Until nothing is left to do.
void Queue::finish() {
  std::unique_lock lock(mutex_);
  if (thread_.joinable()) {
    changed_.wait(lock, [&] { return pieces_.empty(); });
  } else {
    while (!pieces_.empty()) do_first(lock);
  }
}

void Queue::drain() {
  const Call call(calls_);
  goes_ahead_ = false;
  finish();
  Memory::instance().end(name(), given_);
}

gpu::Event Queue::copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  goes_ahead_ = false;
  return give_copy(to, from, bytes, flag);
}

gpu::Event Queue::copy_ahead(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  goes_ahead_ = false;
  const gpu::Event event = give_copy(to, from, bytes, flag);
  goes_ahead_ = true;
  return event;
}

gpu::Event Queue::give_copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  const Call call(calls_);
  Memory& memory = Memory::instance();
  bool pageable = false;
  for (const void* end : {static_cast<const void*>(to), from}) {
    const int device = memory.locate(end);
    if (device != gpu::host) {
      memory.check(device, end, bytes);
      if (device != device_ && memory.is_opened(end)) {
        fault("a block is open for device %d, and copied by device %d", device, device_);
      }
    } else if (!memory.is_pinned(end, bytes)) {
      pageable = true;
    }
  }
  if (overlap(reads(from, bytes), to, bytes)) fault("a copy overlaps itself");
  check_staging(to, from, bytes);
  const gpu::Event event =
      give({reads(from, bytes), writes(to, bytes)}, [=]() -> std::optional<gpu::Outcome> {
        const Memory& memory = Memory::instance();
        if (bytes > 0) std::memcpy(memory.view(to), memory.view(from), bytes);
        return {};
      });
  if (flag) return give_write(flag, 1);
  if (pageable && random_() % 2 == 0) finish();
  return event;
}

gpu::Event Queue::give_write(std::uint32_t* flag, std::uint32_t value) {
  check_flag(flag);
  use_thread();  // it is done although no host looks
  return give({}, [this, flag, value, before = given_]() -> std::optional<gpu::Outcome> {
    // Whoever reads the flag may go on as if this process had looked.
    Memory::instance().end(name(), before);
    std::atomic_ref(*flag).store(value, std::memory_order_release);
    return {};
  });
}

gpu::Event Queue::write(std::uint32_t* flag, std::uint32_t value) {
  const Call call(calls_);
  return give_write(flag, value);
}

gpu::Event Queue::wait(const std::uint32_t* flag, std::uint32_t value) {
  const Call call(calls_);
  check_flag(flag);
  use_thread();
  const auto work = [this, flag, value]() -> std::optional<gpu::Outcome> {
    const std::atomic_ref seen(*const_cast<std::uint32_t*>(flag));
    while (static_cast<std::int32_t>(seen.load(std::memory_order_acquire) - value) < 0 &&
           !is_failed(device_)) {
      std::this_thread::sleep_for(between_looks);
    }
    return {};
  };
  return give({}, work, true);
}

gpu::Event Queue::copy_near(std::span<const gpu::Copy> copies, std::uint32_t* flag) {
  const Call call(calls_);
  if (copies.empty() || copies.size() > most_copies) fault("%zu copies", copies.size());
  Memory& memory = Memory::instance();
  std::vector<Access> accesses;
  for (const gpu::Copy& one : copies) {
    for (const void* end : {static_cast<const void*>(one.to), one.from}) {
      const int device = memory.locate(end);
      if (device == gpu::host) fault("a kernel copies the host's memory");
      memory.check(device, end, one.bytes);
      if (device != device_ && memory.is_opened(end)) {
        fault("a block is open for device %d, and copied by device %d", device, device_);
      }
    }
    accesses.push_back(reads(one.from, one.bytes));
    accesses.push_back(writes(one.to, one.bytes));
  }
  for (std::size_t i = 1; i < accesses.size(); i += 2) {
    for (std::size_t j = 0; j < accesses.size(); ++j) {
      if (i != j && overlap(accesses[j], accesses[i].memory, accesses[i].bytes)) {
        fault("copies overlap");
      }
    }
  }
  const auto work = [all = std::vector(copies.begin(), copies.end())] {
    const Memory& memory = Memory::instance();
    for (const gpu::Copy& one : all) {
      if (one.bytes > 0) std::memcpy(memory.view(one.to), memory.view(one.from), one.bytes);
    }
    return std::optional<gpu::Outcome>();
  };
  const gpu::Event event = give(std::move(accesses), work);
  return flag ? give_write(flag, 1) : event;
}

/// What is given later waits for all that `earlier` has been given.
void Queue::give_wait(Queue& earlier) {
  earlier.use_thread();
  give_wait({earlier.progress_, earlier.last()});
}

void Queue::give_wait(const Given::Mark& mark) {
  use_thread();
  const auto work = [progress = mark.progress, event = mark.event] {
    while (progress->done < event && !progress->failed) {
      std::this_thread::sleep_for(between_looks);
    }
    Memory::instance().end(progress.get(), event);
    return std::optional<gpu::Outcome>();
  };
  give({}, work, true);
}

gpu::Event Queue::last() {
  std::lock_guard lock(mutex_);
  return given_;
}

void Queue::wait_for(const gpu::PriorWork& work) {
  const Call call(calls_);
  for (const Given::Mark& mark : static_cast<const Given&>(work).marks_) give_wait(mark);
}

/// What it has been given until now.
void Queue::add_to(Given& work) {
  use_thread();
  work.add(progress_, last());
}

/// Has it done all of that?
bool Queue::is_idle() {
  const gpu::Event event = last();
  if (progress_->done < event) return false;
  Memory::instance().end(name(), event);
  return true;
}

bool Queue::signal(void* stream) {
  const Call call(calls_);
  Queue* const callers = stream_of(stream, device_);
  if (!callers || is_failed(device_)) return false;
  callers->give_wait(*this);
  return true;
}

void Queue::copy_for_program(void* to, const void* from, std::size_t bytes) {
  for (const void* end : {static_cast<const void*>(to), from}) {
    const int device = Memory::instance().locate(end);
    if (device != gpu::host) Memory::instance().check(device, end, bytes);
  }
  give({reads(from, bytes), writes(to, bytes)}, [=]() -> std::optional<gpu::Outcome> {
    std::memcpy(Memory::instance().view(to), Memory::instance().view(from), bytes);
    return {};
  });
}

/// From the host's memory that is not pinned: the call has it, and the device not yet.
void Queue::copy_for_program(void* to, std::vector<std::byte> data) {
  Memory::instance().check(Memory::instance().locate(to), to, data.size());
  const Access access = writes(to, data.size());
  give({access}, [to, data = std::move(data)]() -> std::optional<gpu::Outcome> {
    if (!data.empty()) std::memcpy(Memory::instance().view(to), data.data(), data.size());
    return {};
  });
}

void Queue::give_wait(const int* flag) {
  const auto work = [flag] {
    const std::atomic_ref seen(*const_cast<int*>(flag));
    while (seen.load(std::memory_order_acquire) == 0) {
      std::this_thread::sleep_for(between_looks);
    }
    return std::optional<gpu::Outcome>();
  };
  give({}, work, true);
}

void Queue::drain_for_program() {
  const gpu::Event event = last();
  finish();
  Memory::instance().end(name(), event);
}

gpu::Event Queue::gather(void* packed, const void* buffer, const gpu::Runs& runs) {
  const Call call(calls_);
  std::size_t total = 0;
  const Access bounds = check_runs(device_, buffer, runs, false, total);
  Memory::instance().check(device_, packed, total);
  return give({bounds, writes(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
    const Memory& memory = Memory::instance();
    std::byte* to = memory.view(packed);
    runs.for_each([&](const gpu::Run& run) {
      std::memcpy(to, memory.view(static_cast<const std::byte*>(buffer) + run.offset), run.bytes);
      to += run.bytes;
    });
    return {};
  });
}

gpu::Event Queue::scatter(void* buffer, const void* packed, const gpu::Runs& runs) {
  const Call call(calls_);
  std::size_t total = 0;
  const Access bounds = check_runs(device_, buffer, runs, true, total);
  Memory::instance().check(device_, packed, total);
  return give({bounds, reads(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
    const Memory& memory = Memory::instance();
    const std::byte* from = memory.view(packed);
    runs.for_each([&](const gpu::Run& run) {
      std::memcpy(memory.view(static_cast<const std::byte*>(buffer) + run.offset), from, run.bytes);
      from += run.bytes;
    });
    return {};
  });
}

Spec Queue::resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count) {
  const Call call(calls_);
  Memory::instance().check(device_, elements, count * element_size(type));
  finish();
  return codec::resolve(spec, type, Memory::instance().view(elements), count);
}

gpu::State Queue::query(gpu::Event event, gpu::Outcome* outcome) {
  const Call call(calls_);
  std::unique_lock lock(mutex_);
  if (event == 0 || event > given_) fault("an event that no work has");
  if (!thread_.joinable() && event > done_ && !pieces_.empty() && --pieces_.front().looks == 0) {
    do {
      do_first(lock);
    } while (pieces_.size() >= much_work);
  }
  if (event > done_) {
    if (!failed_) return gpu::State::pending;
    lock.unlock();
    Memory::instance().end(name(), given_);
    return gpu::State::failed;
  }
  if (outcome) {
    if (const auto found = outcomes_.extract(event)) *outcome = found.mapped();
  }
  lock.unlock();
  Memory::instance().end(name(), event);
  return gpu::State::done;
}

}  // namespace mpress::simulated
