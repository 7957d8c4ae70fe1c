// What reductions and calls with a stream ask of queues: batches that combine, sums of payloads,
// ranges, and the order of the program's streams. On the library given as the first argument, or
// the simulated one.
//
//   gpu_reduce_test [LIBRARY]

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "check.hpp"
#include "codec/codec.hpp"
#include "codec/szp/format.hpp"
#include "gpu/codec_queue.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "program_stream.hpp"
#include "queues.hpp"

using namespace mpress;
using gpu::Combine;
using gpu::Incoming;
using gpu::Place;

namespace {

template <class T>
constexpr ElementType type_of = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;

Spec parsed(const char* text) {
  Spec spec;
  std::string error;
  CHECK(parse_spec(text, spec, error));
  return spec;
}

template <class T>
std::vector<T> scaled(std::size_t count, double by) {
  std::vector<T> result = wave<T>(count);
  for (T& value : result) value = static_cast<T>(value * by);
  return result;
}

template <class T>
std::vector<std::byte> encoded(const Spec& spec, const T* elements, std::size_t count) {
  std::vector<std::byte> payload(codec::max_payload_bytes(spec, type_of<T>, count));
  payload.resize(codec::encode(spec, type_of<T>, elements, count, payload.data()));
  return payload;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Payloads of many sizes in one call, one of them damaged, for every way to combine.
template <class T>
void decodes(const char* text) {
  const Spec spec = parsed(text);
  const std::vector<std::size_t> counts = {5000, 0, 1, 70001, 333, 2048, 40000};
  constexpr std::size_t damaged = 4;
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  const std::size_t step = aligned(codec::max_payload_bytes(spec, type_of<T>, most));
  const std::size_t stride = aligned(most * sizeof(T));
  const Block payloads(Place::device, step * counts.size());
  const Block elements(Place::device, stride * counts.size());
  const Mapped memory(counts.size() * sizeof(gpu::Report));
  auto* const reports = static_cast<gpu::Report*>(memory.data);
  const std::unique_ptr<Queue> queue = open_queue();
  for (const Combine how :
       {Combine::replace, Combine::sum, Combine::min, Combine::max, Combine::prod}) {
    std::vector<Incoming> incoming;
    std::vector<std::vector<T>> expected;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::vector<T> field = scaled<T>(counts[i], 1.0 + 0.1 * static_cast<double>(i));
      std::vector<std::byte> payload = encoded(spec, field.data(), counts[i]);
      if (i == damaged) payload.resize(payload.size() / 2);
      std::vector<T> have = scaled<T>(counts[i], -0.7);
      put(*queue, payloads.data + i * step, payload.data(), payload.size());
      put(*queue, elements.data + i * stride, have.data(), counts[i] * sizeof(T));
      incoming.push_back(
          {payloads.data + i * step, payload.size(), elements.data + i * stride, counts[i]});
      if (i % 3 == 0) {  // only its report tells the size
        reports[i] = {payload.size(), codec::Status::ok, 9};
        incoming[i].bytes = step;
        incoming[i].report = &reports[i];
      }
      codec::decode(spec, type_of<T>, payload.data(), payload.size(), have.data(), counts[i], how);
      expected.push_back(have);
    }
    const Event first = queue->codecs().decode(spec, type_of<T>, incoming, how);
    for (std::size_t i = counts.size(); i-- > 0;) {
      Outcome outcome{1, codec::Status::ok};
      CHECK(finish(*queue, first + i, &outcome) == State::done);
      CHECK((outcome.status == codec::Status::ok) == (i != damaged));
      if (i == damaged) continue;
      const std::vector<std::byte> result =
          bytes_of(*queue, elements.data + i * stride, counts[i] * sizeof(T));
      CHECK(std::equal(result.begin(), result.end(),
                       reinterpret_cast<const std::byte*>(expected[i].data())));
    }
  }
  // A report that says that there is no payload.
  reports[0] = {0, codec::Status::inexact, 1};
  const Incoming none{payloads.data, step, elements.data, counts[0], &reports[0]};
  Outcome outcome;
  CHECK(finish(*queue, queue->codecs().decode(spec, type_of<T>, {&none, 1}, Combine::sum),
               &outcome) == State::done);
  CHECK(outcome.status != codec::Status::ok);
}

/// Arrays of elements combined as the host does it: in their order, and in any; also more of them
/// than a launch's parameters hold.
template <class T>
void arrays() {
  constexpr std::size_t count = 5003;
  const std::unique_ptr<Queue> queue = open_queue();
  const std::size_t stride = aligned(count * sizeof(T));
  for (const std::size_t number :
       {std::size_t{1}, std::size_t{5}, gpu::CodecQueue::most_inputs + 44}) {
    const Block memory(Place::device, stride * number);
    const Block out(Place::device, stride);
    const Block list(Place::pinned, number * sizeof(const void*));
    auto* const inputs = reinterpret_cast<const void**>(list.data);
    std::vector<std::vector<T>> rows;
    std::vector<const void*> on_host;
    for (std::size_t k = 0; k < number; ++k) {
      rows.push_back(scaled<T>(count, std::cos(static_cast<double>(k * k)) * 3));
      for (std::size_t i = k; i < count; i += 97) rows[k][i] *= static_cast<T>(1e30);
      if (k % 3 == 0) rows[k][k % 11] = std::numeric_limits<T>::infinity();
      if (k % 5 == 4) rows[k][k % 11 + 1] = std::numeric_limits<T>::quiet_NaN();
      if (k % 2 == 0) rows[k][40] = -T(0);
      put(*queue, memory.data + k * stride, rows[k].data(), count * sizeof(T));
      inputs[k] = memory.data + k * stride;
    }
    for (const auto& row : rows) on_host.push_back(row.data());
    std::vector<T> expected(count);
    const auto check = [&](Event event) {
      CHECK(finish(*queue, event) == State::done);
      const std::vector<std::byte> got = bytes_of(*queue, out.data, count * sizeof(T));
      CHECK(std::memcmp(got.data(), expected.data(), got.size()) == 0);
    };
    for (const Combine how : {Combine::sum, Combine::min, Combine::max}) {
      for (const double grid : {0.0, 1e-3}) {
        if (grid > 0 && how != Combine::sum) continue;
        codec::combine_in_any_order(how, type_of<T>, on_host, expected.data(), count, grid);
        check(queue->codecs().combine_in_any_order(how, type_of<T>, {inputs, number}, out.data,
                                                   count, grid));
      }
    }
    if (number > gpu::CodecQueue::most_inputs) continue;
    for (std::size_t k = 0; k < number; ++k) {
      rows[k] = scaled<T>(count, 1 + 0.01 * static_cast<double>(k));
      on_host[k] = rows[k].data();
      put(*queue, memory.data + k * stride, rows[k].data(), count * sizeof(T));
    }
    for (const Combine how : {Combine::sum, Combine::prod}) {
      codec::combine_all(how, type_of<T>, on_host, expected.data(), count);
      check(queue->codecs().combine(how, type_of<T>, {inputs, number}, out.data, count, false));
    }
  }
}

/// Sums of payloads, by their reports or without; one cannot be kept in quanta, one is of two
/// steps.
template <class T>
void sums() {
  const Spec spec = parsed("szp:abs=1e-3");
  const Spec other = parsed("szp:abs=2e-3");
  constexpr std::size_t count = 30000, pairs = 6, inexact = 2, mismatched = 4;
  const std::size_t step = aligned(codec::max_payload_bytes(spec, type_of<T>, count));
  const Block a(Place::device, step * pairs), b(Place::device, step * pairs);
  const Block payloads(Place::device, step * pairs);
  const Mapped memory(3 * pairs * sizeof(gpu::Report));
  auto* const reports = static_cast<gpu::Report*>(memory.data);
  const std::unique_ptr<Queue> queue = open_queue();
  std::vector<gpu::Sum> given;
  std::vector<gpu::Summand> summands[pairs];
  std::vector<std::vector<std::byte>> expected;
  std::vector<codec::Status> statuses;
  for (std::size_t i = 0; i < pairs; ++i) {
    std::vector<T> field = scaled<T>(count, 1.0 + static_cast<double>(i));
    if (i == inexact) field[77] = std::numeric_limits<T>::infinity();
    const std::vector<std::byte> one = encoded(spec, field.data(), count);
    const std::vector<T> more = scaled<T>(count, -3);
    const std::vector<std::byte> two = encoded(i == mismatched ? other : spec, more.data(), count);
    put(*queue, a.data + i * step, one.data(), one.size());
    put(*queue, b.data + i * step, two.data(), two.size());
    reports[i] = {one.size(), codec::Status::ok, 1};
    reports[pairs + i] = {two.size(), codec::Status::ok, 1};
    const bool reported = i % 2 == 0;
    // The second comes once, twice, … up to as often as there is room.
    const std::size_t times = 1 + i % (codec::most_summands - 1);
    const gpu::Summand first_one{a.data + i * step, reported ? step : one.size(),
                                 reported ? &reports[i] : nullptr};
    const gpu::Summand second{b.data + i * step, reported ? step : two.size(),
                              reported ? &reports[pairs + i] : nullptr};
    summands[i].assign(1 + times, second);
    summands[i][0] = first_one;
    given.push_back({summands[i], count, payloads.data + i * step,
                     i % 3 == 0 ? &reports[2 * pairs + i] : nullptr});
    std::vector<std::byte> sum(step);
    std::vector<codec::Summand> on_host(1 + times, {two.data(), two.size()});
    on_host[0] = {one.data(), one.size()};
    std::size_t bytes = 0;
    statuses.push_back(codec::szp::add(type_of<T>, on_host, count, sum.data(), bytes));
    sum.resize(statuses[i] == codec::Status::ok ? bytes : 0);
    expected.push_back(sum);
  }
  CHECK(statuses[0] == codec::Status::ok && statuses[inexact] == codec::Status::inexact);
  CHECK(statuses[mismatched] == codec::Status::mismatched);
  const Event first = queue->codecs().add(spec, type_of<T>, given);
  for (std::size_t i = 0; i < pairs; ++i) {
    Outcome outcome{1, codec::Status::corrupt};
    CHECK(finish(*queue, first + i, &outcome) == State::done);
    CHECK(outcome.status == statuses[i] && outcome.bytes == expected[i].size());
    if (given[i].published) {
      CHECK(load(given[i].published->sequence) != 0);
      CHECK(given[i].published->bytes == outcome.bytes);
      CHECK(given[i].published->status == outcome.status);
    }
    CHECK(bytes_of(*queue, payloads.data + i * step, outcome.bytes) == expected[i]);
  }
}

bool same(const Extent& extent, const codec::Range& range) {
  const Extent other = codec::extent_of(range);
  return std::memcmp(&extent.min, &other.min, 8) == 0 &&
         std::memcmp(&extent.max, &other.max, 8) == 0 && extent.flags == other.flags;
}

/// Ranges of parts, told in stream order, and payloads of one part by the range of all.
template <class T>
void ranges() {
  constexpr ElementType type = type_of<T>;
  using Limits = std::numeric_limits<T>;
  std::vector<std::vector<T>> parts = {
      wave<T>(100000), {},           {Limits::infinity()},          {T(-0.0)},
      {T(0.0)},        wave<T>(513), std::vector<T>(30000, T(-2.6))};
  parts[0][70000] = T(-40.25);
  parts[5][512] = Limits::quiet_NaN();
  parts[5][7] = T(1000);
  const Mapped memory(parts.size() * sizeof(Extent));
  auto* const extents = static_cast<Extent*>(memory.data);
  const std::unique_ptr<Queue> queue = open_queue(), other = open_queue();
  std::vector<std::unique_ptr<Block>> blocks;
  codec::Range all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t bytes = parts[i].size() * sizeof(T);
    blocks.push_back(std::make_unique<Block>(Place::device, bytes + 1));
    put(*queue, blocks[i]->data, parts[i].data(), bytes);
    const auto sequence = static_cast<std::uint32_t>(i) + 5;
    const Event event =
        queue->codecs().extent(type, blocks[i]->data, parts[i].size(), &extents[i], sequence);
    while (load(extents[i].sequence) != sequence) std::this_thread::yield();
    const codec::Range own = codec::finite_range(type, parts[i].data(), parts[i].size());
    CHECK(same(extents[i], own));
    CHECK(own.any_nonfinite == (i == 2 || i == 5));
    CHECK(finish(*queue, event) == State::done);
    codec::Range forwards = all, backwards = own;
    forwards.join(own);
    backwards.join(all);
    CHECK(same(codec::extent_of(forwards), backwards));
    all = forwards;
  }
  // Elements at any address; memory that the host alone knows.
  const Block pinned(Place::pinned, sizeof(Extent));
  auto* const there = new (pinned.data) Extent;
  CHECK(finish(*queue, queue->codecs().extent(type, blocks[0]->data + sizeof(T), 70001, there,
                                              1)) == State::done);
  CHECK(same(*there, codec::finite_range(type, &parts[0][1], 70001)));

  const Spec spec = parsed("szp:rel=1e-4");
  const std::size_t room = aligned(codec::max_payload_bytes(spec, type, 50000));
  const Block payload(Place::device, 2 * room);
  const auto encodes = [&](std::span<const Extent> given, const codec::Range& range, int part = 0) {
    const Spec resolved = codec::resolve(spec, type, nullptr, 0, range);
    CHECK(resolved.bound == Bound::abs);
    CHECK(range.width() == 0 ? resolved.value == static_cast<double>(Limits::min())
                             : resolved.value == 1e-4 * range.width());
    const std::size_t half = parts[part].size() / 2;
    const std::vector<std::byte> expected = encoded(resolved, parts[part].data(), half);
    const std::vector<std::byte> rest = encoded(resolved, &parts[part][half], half);
    const gpu::Piece pieces[] = {
        {blocks[part]->data, half, payload.data},
        {blocks[part]->data + half * sizeof(T), half, payload.data + room}};
    const Event event = queue->codecs().encode(spec, type, pieces, given);
    Outcome outcome;
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::byte>& want = i == 0 ? expected : rest;
      CHECK(finish(*queue, event + i, &outcome) == State::done && outcome.bytes == want.size());
      CHECK(bytes_of(*queue, pieces[i].payload, outcome.bytes) == want);
    }
  };
  encodes({extents, parts.size()}, all);
  encodes({extents + 5, 1}, codec::range_of(extents[5]));
  encodes({extents + 6, 1}, codec::range_of(extents[6]), 6);  // all alike
  encodes({}, codec::finite_range(type, parts[6].data(), 30000), 6);
  encodes({}, codec::finite_range(type, parts[0].data(), 100000));
  encodes({extents, parts.size()}, all);
  // Those of other queues: the encoder waits for them.
  extents[0].sequence = 0;
  queue->wait(&extents[0].sequence, 100);
  extents[0].min = extents[0].max = 0;
  const gpu::Piece piece{blocks[0]->data, 50000, payload.data};
  const Event waiting = queue->codecs().encode(spec, type, {&piece, 1}, {extents, parts.size()});
  CHECK(queue->query(waiting) == State::pending);
  other->codecs().extent(type, blocks[0]->data, 100000, &extents[0], 100);
  Outcome outcome;
  CHECK(finish(*queue, waiting, &outcome) == State::done);
  const Spec resolved = codec::resolve(spec, type, nullptr, 0, all);
  const std::vector<std::byte> expected = encoded(resolved, parts[0].data(), 50000);
  CHECK(bytes_of(*queue, payload.data, outcome.bytes) == expected);
  other->drain();
}

/// Pieces of one launch, each by its own range: as if each had a launch of its own.
template <class T>
void own_ranges() {
  constexpr ElementType type = type_of<T>;
  std::vector<std::vector<T>> parts = {wave<T>(40000), wave<T>(5), {}, wave<T>(100001), wave<T>(1)};
  for (T& value : parts[1]) value *= T(1e6);
  for (T& value : parts[3]) value = value * T(1e-6) + T(3);
  parts[4][0] = std::numeric_limits<T>::quiet_NaN();
  const Spec spec = parsed("szp:rel=1e-4");
  const std::unique_ptr<Queue> queue = open_queue();
  std::vector<std::unique_ptr<Block>> elements, payloads;
  std::vector<gpu::Piece> pieces;
  for (const std::vector<T>& part : parts) {
    const std::size_t room = codec::max_payload_bytes(spec, type, part.size());
    elements.push_back(std::make_unique<Block>(Place::device, part.size() * sizeof(T) + 1));
    payloads.push_back(std::make_unique<Block>(Place::device, room));
    put(*queue, elements.back()->data, part.data(), part.size() * sizeof(T));
    pieces.push_back({elements.back()->data, part.size(), payloads.back()->data});
  }
  for (int round = 0; round < 2; ++round) {  // workspaces are left as they were
    const Event first = queue->codecs().encode(spec, type, pieces, gpu::RangeOf::segment);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Spec resolved = codec::resolve(spec, type, parts[i].data(), parts[i].size());
      const std::vector<std::byte> expected = encoded(resolved, parts[i].data(), parts[i].size());
      Outcome outcome;
      CHECK(finish(*queue, first + i, &outcome) == State::done);
      CHECK(bytes_of(*queue, payloads[i]->data, outcome.bytes) == expected);
    }
  }
}

State end_of(const gpu::PriorWork& work) {
  for (;;) {
    const State state = work.query();
    if (state != State::pending) return state;
    std::this_thread::yield();
  }
}

/// The default stream is followed, and no other, whatever it waits for itself.
void default_streams(const char* path) {
  constexpr std::size_t bytes = 1 << 20;
  const Block host(Place::pinned, bytes), flags(Place::pinned, sizeof(int));
  const Block memory(Place::device, bytes), other(Place::device, bytes);
  auto* const flag = reinterpret_cast<int*>(flags.data);
  const std::unique_ptr<Queue> queue = open_queue();
  ProgramStream stream(path, true);
  const auto set_flag = [&](int value) { std::atomic_ref(*flag).store(value); };
  const auto work = [] { return gpu::gpu()->default_work(0); };
  stream.set_by_default(other.data, 1, bytes);
  for (auto held = work(); held; held = work()) CHECK(end_of(*held) == State::done);

  set_flag(0);
  stream.hold(flag);  // of a blocking stream nothing is waited for
  if (const auto held = work()) {
    CHECK(end_of(*held) == State::done);
    queue->wait_for(*held);
  }
  CHECK(finish(*queue, queue->copy(host.data, other.data, bytes)) == State::done);
  for (unsigned char byte = 2; byte < 4; ++byte) {
    stream.set_by_default(memory.data, byte, bytes);  // but by the default stream
    const auto held = work();
    CHECK(held && held->query() == State::pending);
    queue->wait_for(*held);
    const Event event = queue->copy(host.data, memory.data, bytes);
    CHECK(queue->query(event) == State::pending);
    set_flag(1);
    CHECK(finish(*queue, event) == State::done && end_of(*held) == State::done);
    CHECK(std::all_of(host.data, host.data + bytes,
                      [&](std::byte b) { return b == std::byte{byte}; }));
    stream.synchronize();
    set_flag(0);
    stream.hold(flag);
  }
  set_flag(1);
  stream.synchronize();

  stream.set_by_default(memory.data, 5, bytes);
  stream.begin_capture();  // which lets nobody ask the default stream
  if (const auto held = work()) {
    CHECK(end_of(*held) == State::done);
    queue->wait_for(*held);
  }
  CHECK(finish(*queue, queue->copy(host.data, memory.data, bytes)) == State::done);
  CHECK(std::all_of(host.data, host.data + bytes, [](std::byte b) { return b == std::byte{5}; }));
  stream.end_capture();
}

/// A queue between what the program has on a stream before and after.
void streams(const char* path) {
  constexpr std::size_t bytes = 24 << 20;
  const Block in(Place::pinned, bytes), out(Place::pinned, bytes);
  const Block first(Place::device, bytes), second(Place::device, bytes);
  const std::unique_ptr<Queue> queue = open_queue();
  ProgramStream stream(path);
  for (unsigned round = 0; round < 3; ++round) {
    const std::vector<std::byte> data = noise(bytes, round);
    std::memcpy(in.data, data.data(), bytes);
    stream.copy(first.data, in.data, bytes);
    const auto before = gpu::gpu()->work_of(0, stream.handle());
    CHECK(before != nullptr);
    queue->wait_for(*before);
    queue->copy(second.data, first.data, bytes);
    CHECK(queue->signal(stream.handle()));
    stream.copy(out.data, second.data, bytes);
    stream.synchronize();  // nobody looks at the queue
    CHECK(std::memcmp(out.data, data.data(), bytes) == 0);
  }
  queue->drain();
  // The default stream, on which nothing is.
  CHECK(end_of(*gpu::gpu()->work_of(0, nullptr)) == State::done && queue->signal(nullptr));
  CHECK(finish(*queue, queue->copy(out.data, second.data, 8)) == State::done);
  stream.begin_capture();
  CHECK(!gpu::gpu()->work_of(0, stream.handle()) && !queue->signal(stream.handle()));
  CHECK(finish(*queue, queue->copy(out.data, second.data, 8)) == State::done);
  stream.end_capture();
  queue->wait_for(*gpu::gpu()->work_of(0, stream.handle()));
  queue->drain();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : MPRESS_SIMULATED_GPU;
  gpu::choose(path);
  if (!gpu::gpu()) {
    std::fprintf(stderr, "%s\n", gpu::why_not().c_str());
    return 2;
  }
  for (const char* spec : {"mpc", "zfp:8", "szp:abs=1e-3"}) {
    decodes<float>(spec);
    decodes<double>(spec);
  }
  arrays<float>();
  arrays<double>();
  sums<float>();
  sums<double>();
  ranges<float>();
  ranges<double>();
  own_ranges<float>();
  own_ranges<double>();
  default_streams(path);
  streams(path);
  return check::failures != 0;
}
