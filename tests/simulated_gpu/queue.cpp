#include "queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "codec/codec.hpp"
#include "codec/range.hpp"

namespace mpress::simulated {
namespace {

constexpr int rubbish = 0xee;

/// Pieces that each device still does; less than 0 once it has failed.
std::atomic<std::int64_t> pieces_left[devices] = {INT64_MAX, INT64_MAX};

unsigned next_seed() {
  static const char* const text = std::getenv("SIMULATED_GPU_SEED");
  static std::atomic<unsigned> queues{0};
  const unsigned seed = text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 1;
  return seed * 7919 + queues++;
}

/// A queue is for one thread at a time.
class Call {
 public:
  explicit Call(std::atomic<bool>& in_call) : in_call_(in_call) {
    if (in_call_.exchange(true)) fault("two threads use a queue at once");
  }
  ~Call() { in_call_ = false; }

 private:
  std::atomic<bool>& in_call_;
};

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

Access reads(const void* memory, std::size_t bytes) {
  return {static_cast<const std::byte*>(memory), bytes, false};
}
Access writes(const void* memory, std::size_t bytes) {
  return {static_cast<const std::byte*>(memory), bytes, true};
}

void check_codec(const Spec& spec, const void* payload, ElementType type, const void* elements) {
  if (spec.codec == Codec::none || spec.codec == Codec::automatic) fault("the spec has no codec");
  if (reinterpret_cast<std::uintptr_t>(payload) % 16 != 0) fault("a payload is not aligned");
  if (reinterpret_cast<std::uintptr_t>(elements) % element_size(type) != 0) {
    fault("elements are not aligned");
  }
}

void check_flag(const std::uint32_t* flag) {
  if (!Memory::instance().is_mapped(flag)) fault("a flag lies in memory that is not mapped");
}

/// Some time after the payload is there. `sequence`: what a device's counter may be.
void publish(gpu::Report& report, std::size_t bytes, std::uint32_t& sequence) {
  std::this_thread::sleep_for(std::chrono::microseconds(sequence % 64));
  report.bytes = bytes;
  report.status = Status::ok;
  if (++sequence == 0) ++sequence;
  std::atomic_ref(report.sequence).store(sequence, std::memory_order_release);
}

/// Checks every run; returns their bounds, and sets `total` to their sum.
Access check_runs(int device, const void* buffer, std::span<const gpu::Run> runs, bool writes,
                  std::size_t& total) {
  const auto* const base = static_cast<const std::byte*>(buffer);
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  total = 0;
  for (const gpu::Run& run : runs) {
    if (run.bytes == 0) continue;
    const std::byte* const at = base + run.offset;
    Memory::instance().check(device, at, run.bytes);
    total += run.bytes;
    if (!begin || at < begin) begin = at;
    if (!end || at + run.bytes > end) end = at + run.bytes;
  }
  return {begin, static_cast<std::size_t>(end - begin), writes, true};
}

}  // namespace

void set_failing(int device, unsigned pieces) { pieces_left[device] = pieces; }

bool is_failed(int device) { return pieces_left[device] < 0; }

Queue::Queue(int device, gpu::Priority priority)
    : device_(device), priority_(priority), random_(next_seed()) {
  if (random_() % 2 == 0) use_thread();
}

/// From now on work is done although nobody asks for it.
void Queue::use_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this, seed = random_()] { run(seed); });
}

Queue::~Queue() {
  const Call call(in_call_);
  {
    std::lock_guard lock(mutex_);
    if (!pieces_.empty()) fault("a queue is destroyed while it has work");
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Memory::instance().end(this, given_);
}

gpu::Event Queue::add(std::vector<Access> accesses, Work work, bool is_wait) {
  std::lock_guard lock(mutex_);
  const gpu::Event event = ++given_;
  if (pieces_.empty() && pieces_left[device_] <= 0) {  // as a device that fails tells at once
    pieces_left[device_] = -1;
    failed_ = true;
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
  Memory::instance().begin(this, piece.event, piece.accesses);
}

void Queue::do_first(std::unique_lock<std::mutex>& lock) {
  Piece& piece = pieces_.front();
  if (--pieces_left[device_] < 0) {
    pieces_left[device_] = -1;
    failed_ = true;
    pieces_.clear();
    waits_ = 0;
    changed_.notify_all();
    return;
  }
  lock.unlock();  // others look meanwhile; the first piece stays where it is
  const std::optional<gpu::Outcome> outcome = piece.work();
  lock.lock();
  if (outcome) outcomes_[piece.event] = *outcome;
  done_ = piece.event;
  if (piece.is_wait) --waits_;
  pieces_.pop_front();
  for (Piece& next : pieces_) {
    begin(next);
    if (next.is_wait) break;
  }
  if (!pieces_.empty()) spoil(pieces_.front().accesses);
  changed_.notify_all();
}

void Queue::run(std::mt19937::result_type seed) {
  std::mt19937 random(seed);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !pieces_.empty(); });
    if (stopping_) return;
    // Who gives much work at once has waited long enough.
    const auto delay = std::chrono::microseconds(pieces_.size() < 16 ? random() % 300 : 0);
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
  const Call call(in_call_);
  finish();
  Memory::instance().end(this, given_);
}

gpu::Event Queue::copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  const Call call(in_call_);
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
  const gpu::Event event =
      add({reads(from, bytes), writes(to, bytes)}, [=]() -> std::optional<gpu::Outcome> {
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
  use_thread();  // nobody may look
  return add({}, [this, flag, value, before = given_]() -> std::optional<gpu::Outcome> {
    // Whoever reads the flag may go on as if this process had looked.
    Memory::instance().end(this, before);
    std::atomic_ref(*flag).store(value, std::memory_order_release);
    return {};
  });
}

gpu::Event Queue::write(std::uint32_t* flag, std::uint32_t value) {
  const Call call(in_call_);
  return give_write(flag, value);
}

gpu::Event Queue::wait(const std::uint32_t* flag, std::uint32_t value) {
  const Call call(in_call_);
  check_flag(flag);
  use_thread();
  const auto work = [this, flag, value]() -> std::optional<gpu::Outcome> {
    const std::atomic_ref seen(*const_cast<std::uint32_t*>(flag));
    while (static_cast<std::int32_t>(seen.load(std::memory_order_acquire) - value) < 0 &&
           !is_failed(device_)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return {};
  };
  return add({}, work, true);
}

gpu::Event Queue::copy_near(void* to, const void* from, std::size_t bytes) {
  for (const void* end : {static_cast<const void*>(to), from}) {
    if (Memory::instance().locate(end) == gpu::host) fault("a kernel copies the host's memory");
  }
  return copy(to, from, bytes);
}

gpu::Event Queue::gather(void* packed, const void* buffer, std::span<const gpu::Run> runs) {
  const Call call(in_call_);
  std::size_t total = 0;
  const Access bounds = check_runs(device_, buffer, runs, false, total);
  Memory::instance().check(device_, packed, total);
  std::vector<gpu::Run> kept(runs.begin(), runs.end());
  return add({bounds, writes(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
    const Memory& memory = Memory::instance();
    std::byte* to = memory.view(packed);
    for (const gpu::Run& run : kept) {
      std::memcpy(to, memory.view(static_cast<const std::byte*>(buffer) + run.offset), run.bytes);
      to += run.bytes;
    }
    return {};
  });
}

gpu::Event Queue::scatter(void* buffer, const void* packed, std::span<const gpu::Run> runs) {
  const Call call(in_call_);
  std::size_t total = 0;
  const Access bounds = check_runs(device_, buffer, runs, true, total);
  Memory::instance().check(device_, packed, total);
  std::vector<gpu::Run> kept(runs.begin(), runs.end());
  return add({bounds, reads(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
    const Memory& memory = Memory::instance();
    const std::byte* from = memory.view(packed);
    for (const gpu::Run& run : kept) {
      std::memcpy(memory.view(static_cast<const std::byte*>(buffer) + run.offset), from, run.bytes);
      from += run.bytes;
    }
    return {};
  });
}

Spec Queue::resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count) {
  const Call call(in_call_);
  Memory::instance().check(device_, elements, count * element_size(type));
  finish();
  return codec::resolve(spec, type, Memory::instance().view(elements), count);
}

gpu::Event Queue::encode(const Spec& spec, ElementType type, std::span<const gpu::Piece> pieces) {
  const Call call(in_call_);
  if (pieces.empty() || pieces.size() > most_pieces) fault("%zu pieces to encode", pieces.size());
  for (const gpu::Piece& piece : pieces) {
    check_codec(spec, piece.payload, type, piece.elements);
    Memory::instance().check(device_, piece.elements, piece.count * element_size(type));
    Memory::instance().check(device_, piece.payload,
                             codec::max_payload_bytes(spec, type, piece.count));
    if (piece.published) {
      check_flag(&piece.published->sequence);
      std::atomic_ref(piece.published->sequence).store(0, std::memory_order_release);
      use_thread();  // nobody may look
    }
  }
  // The first piece finds the range of all.
  const auto resolved = std::make_shared<Spec>(spec);
  const auto resolve = [=, all = std::vector(pieces.begin(), pieces.end())] {
    if (spec.bound != Bound::rel) return;
    codec::Range range;
    for (const gpu::Piece& piece : all) {
      const codec::Range own =
          codec::finite_range(type, Memory::instance().view(piece.elements), piece.count);
      if (!own.any_finite) continue;
      range.min = range.any_finite ? std::min(range.min, own.min) : own.min;
      range.max = range.any_finite ? std::max(range.max, own.max) : own.max;
      range.any_finite = true;
    }
    resolved->bound = Bound::abs;
    resolved->value = spec.value * range.width();
  };
  gpu::Event first = 0;
  for (const gpu::Piece& piece : pieces) {
    const std::size_t room = codec::max_payload_bytes(spec, type, piece.count);
    const gpu::Event event =
        add({reads(piece.elements, piece.count * element_size(type)), writes(piece.payload, room)},
            [=, this, is_first = first == 0, event = given_ + 1]() -> std::optional<gpu::Outcome> {
              if (is_first) resolve();
              const Memory& memory = Memory::instance();
              std::byte* const payload = memory.view(static_cast<std::byte*>(piece.payload));
              const std::size_t bytes =
                  codec::encode(*resolved, type, memory.view(piece.elements), piece.count, payload);
              std::memset(payload + bytes, rubbish, room - bytes);
              if (piece.published) {
                Memory::instance().end(this, event);
                publish(*piece.published, bytes, sequence_);
              }
              return gpu::Outcome{bytes, Status::ok};
            });
    if (first == 0) first = event;
  }
  return first;
}

gpu::Event Queue::decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                         void* elements, std::size_t count) {
  const Call call(in_call_);
  check_codec(spec, payload, type, elements);
  Memory::instance().check(device_, payload, bytes);
  Memory::instance().check(device_, elements, count * element_size(type));
  return add({reads(payload, bytes), writes(elements, count * element_size(type))},
             [=]() -> std::optional<gpu::Outcome> {
               const Memory& memory = Memory::instance();
               const Status status = codec::decode(spec, type, memory.view(payload), bytes,
                                                   memory.view(elements), count);
               return gpu::Outcome{bytes, status};
             });
}

gpu::State Queue::query(gpu::Event event, gpu::Outcome* outcome) {
  const Call call(in_call_);
  std::unique_lock lock(mutex_);
  if (event == 0 || event > given_) fault("an event that no work has");
  if (!thread_.joinable() && event > done_ && !pieces_.empty() && --pieces_.front().looks == 0) {
    do_first(lock);
  }
  if (event > done_) {
    if (!failed_) return gpu::State::pending;
    lock.unlock();
    Memory::instance().end(this, given_);
    return gpu::State::failed;
  }
  if (outcome) {
    if (const auto found = outcomes_.extract(event)) *outcome = found.mapped();
  }
  lock.unlock();
  Memory::instance().end(this, event);
  return gpu::State::done;
}

}  // namespace mpress::simulated
