// The codecs of a simulated device, and what combines elements there.

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "codec/codec.hpp"
#include "codec/range.hpp"
#include "codec/szp/format.hpp"
#include "queue.hpp"
#include "queue_work.hpp"

namespace mpress::simulated {
namespace {

struct CodecCalls {
  std::atomic<std::size_t> encoded{0}, measured{0};  ///< calls
  std::atomic<const int*> holding_decoders{nullptr};
};

CodecCalls& codec_calls() {
  static OfMembers<CodecCalls> all;
  return all.own();
}

void check_codec(const Spec& spec, const void* payload, ElementType type, const void* elements) {
  if (spec.codec == Codec::none || spec.codec == Codec::automatic) fault("the spec has no codec");
  if (reinterpret_cast<std::uintptr_t>(payload) % 16 != 0) fault("a payload is not aligned");
  if (reinterpret_cast<std::uintptr_t>(elements) % element_size(type) != 0) {
    fault("elements are not aligned");
  }
}

}  // namespace

std::size_t encode_calls() { return codec_calls().encoded; }
std::size_t range_calls() { return codec_calls().measured; }

/// `report` may be null.
void Queue::prepare(gpu::Report* report) {
  if (!report) return;
  check_flag(&report->sequence);
  std::atomic_ref(report->sequence).store(0, std::memory_order_release);
  use_thread();  // it is done although no host looks
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
  const Call call(calls_);
  Memory::instance().check(device_, elements, count * element_size(type));
  check_reached(extent, sizeof *extent);
  ++codec_calls().measured;
  use_thread();  // it is done although no host looks
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
  const Call call(calls_);
  ++codec_calls().encoded;
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
               publish(piece.published, event, {bytes, codec::Status::ok});
               return gpu::Outcome{bytes, codec::Status::ok};
             });
    if (first == 0) first = event;
  }
  return first;
}

/// The payload's size where it is known by its report alone.
std::size_t size_of(std::size_t bytes, const gpu::Report* report, codec::Status& status) {
  if (!report) return bytes;
  if (std::atomic_ref(const_cast<gpu::Report*>(report)->sequence).load(std::memory_order_acquire) ==
      0) {
    fault("a payload is used before its report is there");
  }
  status = report->status;
  if (status == codec::Status::ok && report->bytes > bytes) status = codec::Status::truncated;
  return report->bytes;
}

void hold_decoders(const int* flag) { codec_calls().holding_decoders = flag; }

gpu::Event Queue::decode(const Spec& spec, ElementType type,
                         std::span<const gpu::Incoming> payloads, gpu::Combine how) {
  const Call call(calls_);
  if (payloads.empty() || payloads.size() > most_pieces) {
    fault("%zu payloads to decode", payloads.size());
  }
  if (const int* const flag = codec_calls().holding_decoders) {
    use_thread();
    give_wait(flag);
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
      codec::Status status = codec::Status::ok;
      const std::size_t bytes = size_of(one.bytes, one.report, status);
      if (status == codec::Status::ok) {
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
  const Call call(calls_);
  if (spec.codec != Codec::szp) fault("the spec's codec has no sums");
  if (sums.empty() || sums.size() > most_pieces) fault("%zu payloads to add", sums.size());
  gpu::Event first = 0;
  for (const gpu::Sum& sum : sums) {
    check_codec(spec, sum.payload, type, nullptr);
    if (sum.summands.size() < 2 || sum.summands.size() > codec::most_summands) {
      fault("%zu summands", sum.summands.size());
    }
    const std::size_t room = codec::max_payload_bytes(spec, type, sum.count);
    Memory::instance().check(device_, sum.payload, room);
    std::vector<Access> accesses = {writes(sum.payload, room)};
    for (const gpu::Summand& one : sum.summands) {
      const std::size_t bytes = one.is_elements ? sum.count * element_size(type) : one.bytes;
      if (one.is_elements) {
        if (spec.bound != Bound::abs) fault("elements to add without an absolute bound");
        if (reinterpret_cast<std::uintptr_t>(one.payload) % element_size(type) != 0) {
          fault("%p: elements are not aligned", one.payload);
        }
      } else {
        check_codec(spec, one.payload, type, nullptr);
      }
      Memory::instance().check(device_, one.payload, bytes);
      if (one.report) check_flag(&one.report->sequence);
      accesses.push_back(reads(one.payload, bytes));
    }
    if (sum.decoded) {
      Memory::instance().check(device_, sum.decoded, sum.count * element_size(type));
      accesses.push_back(writes(sum.decoded, sum.count * element_size(type)));
    }
    prepare(sum.published);
    const std::vector<gpu::Summand> given(sum.summands.begin(), sum.summands.end());
    const auto work = [=, this, number = given_ + 1]() -> std::optional<gpu::Outcome> {
      const Memory& memory = Memory::instance();
      codec::Status status = codec::Status::ok;
      std::vector<codec::Summand> summands;
      for (const gpu::Summand& one : given) {
        if (status != codec::Status::ok) break;
        const std::size_t bytes = size_of(one.bytes, one.report, status);
        summands.push_back({memory.view(one.payload), bytes, one.is_elements});
      }
      std::byte* const payload = memory.view(sum.payload);
      std::byte* const decoded =
          sum.decoded ? memory.view(static_cast<std::byte*>(sum.decoded)) : nullptr;
      std::size_t bytes = 0;
      if (status == codec::Status::ok) {
        const codec::szp::EncodedAs elements{codec::grid_of(spec), spec.mode};
        status = codec::szp::add(type, summands, sum.count, payload, bytes, elements, decoded);
      }
      if (status != codec::Status::ok) bytes = 0;
      if (status != codec::Status::ok && decoded) {
        std::memset(decoded, rubbish, sum.count * element_size(type));
      }
      std::memset(payload + bytes, rubbish, room - bytes);
      publish(sum.published, number, {bytes, status});
      return gpu::Outcome{bytes, status};
    };
    const gpu::Event event = give(accesses, work);
    if (first == 0) first = event;
  }
  return first;
}

gpu::Event Queue::combine(gpu::Combine how, ElementType type, std::span<const void* const> inputs,
                          void* out, std::size_t count, bool wide) {
  const Call call(calls_);
  if (inputs.size() > most_inputs) fault("%zu inputs to combine", inputs.size());
  const auto combine = [=](std::span<const void* const> views, void* view) {
    codec::combine_all(how, type, views, view, count, wide);
  };
  return combine_by(combine, type, inputs, out, count);
}

gpu::Event Queue::combine_in_any_order(gpu::Combine how, ElementType type,
                                       std::span<const void* const> inputs, void* out,
                                       std::size_t count, const codec::Grid& grid) {
  const Call call(calls_);
  const auto combine = [=](std::span<const void* const> views, void* view) {
    codec::combine_in_any_order(how, type, views, view, count, grid);
  };
  return combine_by(combine, type, inputs, out, count);
}

template <class Combining>
gpu::Event Queue::combine_by(Combining combine, ElementType type,
                             std::span<const void* const> inputs, void* out, std::size_t count) {
  if (inputs.empty()) fault("no inputs to combine");
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
        combine(views, memory.view(out));
        return std::nullopt;
      });
}

}  // namespace mpress::simulated
