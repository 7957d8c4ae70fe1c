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
#include "codec/szp/format.hpp"
#include "streams.hpp"

namespace mpress::simulated {
namespace {

constexpr int rubbish = 0xee;

/// Pieces that each device still does; less than 0 once it has failed.
std::atomic<std::int64_t> pieces_left[devices] = {INT64_MAX, INT64_MAX};

std::atomic<std::size_t> encoded{0};  ///< calls

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

/// Host memory that devices reach.
void check_reached(const void* memory, std::size_t bytes) {
  if (Memory::instance().is_pinned(memory, bytes)) return;
  fault("%p is no memory of the host's that devices reach", memory);
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

void check_flag(const std::uint32_t* flag) {
  if (!Memory::instance().is_mapped(flag, sizeof *flag))
    fault("a flag lies in memory that is not mapped");
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

std::size_t encode_calls() { return encoded; }

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
  Memory::instance().end(name(), given_);
}

gpu::Event Queue::give(std::vector<Access> accesses, Work work, bool is_wait) {
  std::lock_guard lock(mutex_);
  const gpu::Event event = ++given_;
  if (pieces_.empty() && pieces_left[device_] <= 0) {  // as a device that fails tells at once
    pieces_left[device_] = -1;
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
  if (--pieces_left[device_] < 0) {
    pieces_left[device_] = -1;
    failed_ = true;
    progress_->failed = true;
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
  progress_->done = done_;
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
  Memory::instance().end(name(), given_);
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
  use_thread();  // nobody may look
  return give({}, [this, flag, value, before = given_]() -> std::optional<gpu::Outcome> {
    // Whoever reads the flag may go on as if this process had looked.
    Memory::instance().end(name(), before);
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
  return give({}, work, true);
}

gpu::Event Queue::copy_near(void* to, const void* from, std::size_t bytes) {
  for (const void* end : {static_cast<const void*>(to), from}) {
    if (Memory::instance().locate(end) == gpu::host) fault("a kernel copies the host's memory");
  }
  return copy(to, from, bytes);
}

/// What is given later waits for all that `earlier` has been given.
void Queue::give_wait(Queue& earlier) {
  earlier.use_thread();
  use_thread();
  const auto work = [progress = earlier.progress_, event = earlier.last()] {
    while (progress->done < event && !progress->failed) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
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

bool Queue::wait_for(void* stream) {
  const Call call(in_call_);
  Queue* const callers = stream_of(stream, device_);
  if (!callers || is_failed(device_)) return false;
  give_wait(*callers);
  return true;
}

bool Queue::signal(void* stream) {
  const Call call(in_call_);
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

void Queue::drain_for_program() {
  const gpu::Event event = last();
  finish();
  Memory::instance().end(name(), event);
}

gpu::Event Queue::gather(void* packed, const void* buffer, std::span<const gpu::Run> runs) {
  const Call call(in_call_);
  std::size_t total = 0;
  const Access bounds = check_runs(device_, buffer, runs, false, total);
  Memory::instance().check(device_, packed, total);
  std::vector<gpu::Run> kept(runs.begin(), runs.end());
  return give({bounds, writes(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
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
  return give({bounds, reads(packed, total)}, [=]() -> std::optional<gpu::Outcome> {
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

/// `report` may be null.
void Queue::prepare(gpu::Report* report) {
  if (!report) return;
  check_flag(&report->sequence);
  std::atomic_ref(report->sequence).store(0, std::memory_order_release);
  use_thread();  // nobody may look
}

/// Some time after the payload is there, and as if this process had looked. `report` may be null.
void Queue::publish(gpu::Report* report, gpu::Event event, const gpu::Outcome& outcome) {
  if (!report) return;
  Memory::instance().end(name(), event);
  std::this_thread::sleep_for(std::chrono::microseconds(sequence_ % 64));
  report->bytes = outcome.bytes;
  report->status = outcome.status;
  if (++sequence_ == 0) ++sequence_;
  std::atomic_ref(report->sequence).store(sequence_, std::memory_order_release);
}

gpu::Event Queue::extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
                         std::uint32_t sequence) {
  const Call call(in_call_);
  Memory::instance().check(device_, elements, count * element_size(type));
  check_reached(extent, sizeof *extent);
  use_thread();  // nobody may look
  const auto work = [=, this, before = given_]() -> std::optional<gpu::Outcome> {
    const Extent found =
        codec::extent_of(codec::finite_range(type, Memory::instance().view(elements), count));
    Memory::instance().end(name(), before + 1);
    extent->min = found.min;
    extent->max = found.max;
    extent->flags = found.flags;
    std::atomic_ref(extent->sequence).store(sequence, std::memory_order_release);
    return {};
  };
  return give({reads(elements, count * element_size(type))}, work);
}

gpu::Event Queue::encode(const Spec& spec, ElementType type, std::span<const gpu::Piece> pieces,
                         gpu::RangeOf range, std::span<const Extent> extents) {
  const Call call(in_call_);
  ++encoded;
  if (pieces.empty() || pieces.size() > most_pieces) fault("%zu pieces to encode", pieces.size());
  for (const gpu::Piece& piece : pieces) {
    check_codec(spec, piece.payload, type, piece.elements);
    Memory::instance().check(device_, piece.elements, piece.count * element_size(type));
    const std::size_t room = codec::max_payload_bytes(spec, type, piece.count);
    if (Memory::instance().locate(piece.payload) == gpu::host) {
      check_reached(piece.payload, room);
    } else {
      Memory::instance().check(device_, piece.payload, room);
    }
    prepare(piece.published);
  }
  if ((range == gpu::RangeOf::given) == extents.empty()) {
    fault("%zu ranges to encode by", extents.size());
  }
  if (!extents.empty()) check_reached(extents.data(), extents.size_bytes());
  // Where pieces have one range, the first finds that of all.
  const auto resolved = std::make_shared<Spec>(spec);
  const auto resolve = [=, all = std::vector(pieces.begin(), pieces.end())](std::size_t piece) {
    const bool is_own = range == gpu::RangeOf::segment;
    if (spec.bound != Bound::rel || (piece > 0 && !is_own)) return;
    codec::Range found;
    for (const Extent& one : extents) found.join(codec::range_of(one));
    for (std::size_t i = 0; i < all.size() && extents.empty(); ++i) {
      if (is_own && i != piece) continue;
      found.join(codec::finite_range(type, Memory::instance().view(all[i].elements), all[i].count));
    }
    *resolved = codec::resolve(spec, type, nullptr, 0, found);
  };
  gpu::Event first = 0;
  for (const gpu::Piece& piece : pieces) {
    const std::size_t room = codec::max_payload_bytes(spec, type, piece.count);
    const gpu::Event event =
        give({reads(piece.elements, piece.count * element_size(type)), writes(piece.payload, room)},
             [=, this, number = &piece - pieces.data(),
              event = given_ + 1]() -> std::optional<gpu::Outcome> {
               resolve(static_cast<std::size_t>(number));
               const Memory& memory = Memory::instance();
               std::byte* const payload = memory.view(static_cast<std::byte*>(piece.payload));
               const std::size_t bytes = codec::encode(*resolved, type, memory.view(piece.elements),
                                                       piece.count, payload);
               std::memset(payload + bytes, rubbish, room - bytes);
               publish(piece.published, event, {bytes, Status::ok});
               return gpu::Outcome{bytes, Status::ok};
             });
    if (first == 0) first = event;
  }
  return first;
}

/// The payload's size where it is known by its report alone.
std::size_t size_of(std::size_t bytes, const gpu::Report* report, Status& status) {
  if (!report) return bytes;
  if (std::atomic_ref(const_cast<gpu::Report*>(report)->sequence).load(std::memory_order_acquire) ==
      0) {
    fault("a payload is used before its report is there");
  }
  status = report->status;
  if (status == Status::ok && report->bytes > bytes) status = Status::truncated;
  return report->bytes;
}

gpu::Event Queue::decode(const Spec& spec, ElementType type,
                         std::span<const gpu::Incoming> payloads, gpu::Combine how) {
  const Call call(in_call_);
  if (payloads.empty() || payloads.size() > most_pieces) {
    fault("%zu payloads to decode", payloads.size());
  }
  gpu::Event first = 0;
  for (const gpu::Incoming& one : payloads) {
    check_codec(spec, one.payload, type, one.elements);
    Memory::instance().check(device_, one.payload, one.bytes);
    const std::size_t raw_bytes = one.count * element_size(type);
    Memory::instance().check(device_, one.elements, raw_bytes);
    if (one.report) check_flag(&one.report->sequence);
    std::vector<Access> accesses = {reads(one.payload, one.bytes), writes(one.elements, raw_bytes)};
    if (how != gpu::Combine::replace) accesses.push_back(reads(one.elements, raw_bytes));
    const gpu::Event event = give(accesses, [=]() -> std::optional<gpu::Outcome> {
      const Memory& memory = Memory::instance();
      Status status = Status::ok;
      const std::size_t bytes = size_of(one.bytes, one.report, status);
      if (status == Status::ok) {
        status = codec::decode(spec, type, memory.view(one.payload), bytes,
                               memory.view(one.elements), one.count, how);
      }
      return gpu::Outcome{bytes, status};
    });
    if (first == 0) first = event;
  }
  return first;
}

gpu::Event Queue::add(const Spec& spec, ElementType type, std::span<const gpu::Sum> sums) {
  const Call call(in_call_);
  if (spec.codec != Codec::szp) fault("the spec's codec has no sums");
  if (sums.empty() || sums.size() > most_pieces) fault("%zu payloads to add", sums.size());
  gpu::Event first = 0;
  for (const gpu::Sum& sum : sums) {
    check_codec(spec, sum.payload, type, nullptr);
    check_codec(spec, sum.a, type, nullptr);
    check_codec(spec, sum.b, type, nullptr);
    const std::size_t room = codec::max_payload_bytes(spec, type, sum.count);
    Memory::instance().check(device_, sum.a, sum.a_bytes);
    Memory::instance().check(device_, sum.b, sum.b_bytes);
    Memory::instance().check(device_, sum.payload, room);
    for (const gpu::Report* report : {sum.a_report, sum.b_report}) {
      if (report) check_flag(&report->sequence);
    }
    prepare(sum.published);
    const auto work = [=, this, number = given_ + 1]() -> std::optional<gpu::Outcome> {
      const Memory& memory = Memory::instance();
      Status status = Status::ok;
      const std::size_t a_bytes = size_of(sum.a_bytes, sum.a_report, status);
      const std::size_t b_bytes =
          status == Status::ok ? size_of(sum.b_bytes, sum.b_report, status) : 0;
      std::byte* const payload = memory.view(sum.payload);
      std::size_t bytes = 0;
      if (status == Status::ok) {
        status = codec::szp::add(type, memory.view(sum.a), a_bytes, memory.view(sum.b), b_bytes,
                                 sum.count, payload, bytes);
      }
      if (status != Status::ok) bytes = 0;
      std::memset(payload + bytes, rubbish, room - bytes);
      publish(sum.published, number, {bytes, status});
      return gpu::Outcome{bytes, status};
    };
    const gpu::Event event = give(
        {reads(sum.a, sum.a_bytes), reads(sum.b, sum.b_bytes), writes(sum.payload, room)}, work);
    if (first == 0) first = event;
  }
  return first;
}

gpu::Event Queue::combine(gpu::Combine how, ElementType type, std::span<const void* const> inputs,
                          void* out, std::size_t count, bool wide) {
  const Call call(in_call_);
  if (inputs.empty() || inputs.size() > most_inputs) fault("%zu inputs to combine", inputs.size());
  const std::size_t bytes = count * element_size(type);
  std::vector<Access> accesses = {writes(out, bytes)};
  for (const void* input : inputs) {
    Memory::instance().check(device_, input, bytes);
    if (reinterpret_cast<std::uintptr_t>(input) % element_size(type) != 0) {
      fault("%p: elements are not aligned", input);
    }
    accesses.push_back(reads(input, bytes));
  }
  Memory::instance().check(device_, out, bytes);
  return give(
      accesses,
      [=, all = std::vector(inputs.begin(), inputs.end())]() -> std::optional<gpu::Outcome> {
        const Memory& memory = Memory::instance();
        std::vector<const void*> views;
        for (const void* input : all) views.push_back(memory.view(input));
        codec::combine_all(how, type, views, memory.view(out), count, wide);
        return std::nullopt;
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
