// Queues of a GPU, and memory that processes share: those of the library given as the first
// argument, or the simulated ones.
//
//   gpu_test [LIBRARY]

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "codec/codec.hpp"
#include "gpu/codec_queue.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "gpu_peers.hpp"
#include "queues.hpp"

using namespace mpress;
using gpu::Place;
using gpu::Run;

namespace {

void places() {
  const Block on_device(Place::device, 1000);
  const Block pinned(Place::pinned, 1000);
  const gpu::Gpu& all = *gpu::gpu();
  CHECK(all.locate(on_device.data) == device && all.locate(on_device.data + 999) == device);
  CHECK(all.locate(pinned.data) == gpu::host && all.locate(&pinned) == gpu::host);
  CHECK(all.locate(nullptr) == gpu::host);
  CHECK(gpu::locate(on_device.data) == device);
  CHECK(std::string(all.name()).size() > 3);
}

void copies() {
  const std::unique_ptr<Queue> queue = open_queue();
  constexpr std::size_t bytes = 300007;
  const Block on_device(Place::device, 2 * bytes + 1);
  const Block pinned(Place::pinned, bytes);
  const std::vector<std::byte> data = noise(bytes, 1);
  std::memcpy(pinned.data, data.data(), bytes);
  // In order, without a look between them; odd addresses.
  queue->copy(on_device.data + 1, pinned.data, bytes);
  queue->copy(on_device.data + bytes + 1, on_device.data + 1, bytes);
  const Event back = queue->copy(pinned.data, on_device.data + bytes + 1, bytes);
  CHECK(finish(*queue, back) == State::done);
  CHECK(std::memcmp(pinned.data, data.data(), bytes) == 0);
  CHECK(bytes_of(*queue, on_device.data + bytes + 1, bytes) ==
        data);                               // to memory that is not pinned
  CHECK(queue->query(back) == State::done);  // still, and those before it
  CHECK(queue->query(1) == State::done);
  CHECK(finish(*queue, queue->copy(on_device.data, pinned.data, 0)) == State::done);
}

/// Many at once, of any lengths and addresses; what lies between them is not touched.
void many_copies() {
  const std::unique_ptr<Queue> queue = open_queue();
  std::mt19937 random(5);
  for (const std::size_t number :
       {std::size_t{1}, std::size_t{2}, std::size_t{17}, Queue::most_copies}) {
    std::vector<gpu::Copy> copies(number);
    std::size_t room = 0;
    for (gpu::Copy& one : copies) {
      one.bytes = random() % 3 == 0 ? random() % 40 : random() % 70000;
      room += one.bytes + 64;
    }
    const Block from(Place::device, room), to(Place::device, room);
    const std::vector<std::byte> data = noise(room, 2);
    std::vector<std::byte> expected = noise(room, 3);
    put(*queue, from.data, data.data(), room);
    put(*queue, to.data, expected.data(), room);
    std::size_t at = 0;
    for (gpu::Copy& one : copies) {
      const std::size_t source = at + random() % 32, target = at + random() % 32;
      one.from = from.data + source;
      one.to = to.data + target;
      std::memcpy(expected.data() + target, data.data() + source, one.bytes);
      at += one.bytes + 64;
    }
    CHECK(finish(*queue, queue->copy_near(copies)) == State::done);
    CHECK(bytes_of(*queue, to.data, room) == expected);
  }
}

void packs(const char* what, const std::vector<Run>& runs, std::size_t extent) {
  const std::unique_ptr<Queue> queue = open_queue();
  std::size_t total = 0;
  std::int64_t least = 0;
  for (const Run& run : runs) {
    total += run.bytes;
    least = std::min(least, run.offset);
  }
  const auto before = static_cast<std::size_t>(-least);
  const std::vector<std::byte> data = noise(extent, 2);
  const std::vector<std::byte> rest = noise(extent, 3);
  std::vector<std::byte> packed, scattered = rest;
  for (const Run& run : runs) {
    const std::size_t at = before + static_cast<std::size_t>(run.offset);
    packed.insert(packed.end(), &data[at], &data[at] + run.bytes);
    std::copy_n(&data[at], run.bytes, &scattered[at]);
  }
  const Block from(Place::device, extent), to(Place::device, extent), between(Place::device, total);
  put(*queue, from.data, data.data(), extent);
  put(*queue, to.data, rest.data(), extent);
  {
    gpu::RunList list;
    for (const Run& run : runs) list.add(run.offset, run.bytes);
    gpu::Runs given(list);  // the queue keeps its own
    queue->gather(between.data, from.data + before, given);
    queue->scatter(to.data + before, between.data, given);
    given = {};
  }
  const bool gathered = bytes_of(*queue, between.data, total) == packed;
  const bool spread = bytes_of(*queue, to.data, extent) == scattered;
  if (!gathered || !spread) std::fprintf(stderr, "%s\n", what);
  CHECK(gathered);
  CHECK(spread);
}

void layouts() {
  packs("nothing", {}, 16);
  packs("nothing, in two runs", {{0, 0}, {8, 0}}, 16);
  packs("one run", {{3, 1000000}}, 1100000);
  packs("a few long runs, some aligned", {{0, 65536}, {131072, 70000}, {262147, 4096}}, 300000);
  packs("backwards", {{-64, 32}, {0, 16}, {-128, 64}}, 256);
  std::vector<Run> column, strided, mixed;
  for (int i = 0; i < 100000; ++i) column.push_back({i * 24, 8});
  packs("a column of doubles", column, 100000 * 24);
  for (int i = 0; i < 5000; ++i) strided.push_back({i * 200 + 4, 100});
  packs("floats in rows", strided, 5000 * 200);
  std::vector<Run> face, spoilt, last_first;
  for (int z = 0; z < 70; ++z) {
    for (int y = 0; y < 130; ++y) face.push_back({z * 5000 + y * 36 + 4, 12});
  }
  face.resize(face.size() - 57);
  packs("a face, the last row of which is short", face, 70 * 5000);
  spoilt = face;
  spoilt[4000].offset += 4;
  packs("a face with a run out of place", spoilt, 70 * 5000);
  spoilt[4000] = {face[4000].offset, 8};
  packs("a face with a short run", spoilt, 70 * 5000);
  for (int i = 0; i < 200; ++i) last_first.push_back({-i * 48, 16});
  packs("rows in the opposite order", last_first, 200 * 48);
  std::mt19937 random(5);
  std::int64_t at = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto bytes = static_cast<std::uint64_t>(i % 500 == 0 ? 100000 : random() % 40);
    mixed.push_back({at, bytes});
    at += static_cast<std::int64_t>(bytes + random() % 9);
  }
  packs("of any length", mixed, static_cast<std::size_t>(at) + 16);
}

template <class T>
void codecs(const char* text) {
  constexpr ElementType type = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;
  Spec spec;
  std::string error;
  CHECK(parse_spec(text, spec, error));
  const std::unique_ptr<Queue> queue = open_queue();
  for (const std::size_t count : {0, 1, 1000, 262147}) {
    const std::vector<T> field = wave<T>(count);
    const std::size_t bytes = count * sizeof(T);
    const std::size_t room = codec::max_payload_bytes(spec, type, count);
    const Block elements(Place::device, bytes + 1), payload(Place::device, room);
    const Block decoded(Place::device, bytes + 1);
    put(*queue, elements.data, field.data(), bytes);
    const Spec resolved = queue->codecs().resolve(spec, type, elements.data, count);
    CHECK(resolved.bound != Bound::rel);
    std::vector<std::byte> expected(room);
    expected.resize(codec::encode(spec, type, field.data(), count, expected.data()));

    Outcome outcome{1, codec::Status::corrupt};
    const Event encoded =
        queue->codecs().encode(resolved, type, elements.data, count, payload.data);
    CHECK(finish(*queue, encoded, &outcome) == State::done);
    CHECK(outcome.status == codec::Status::ok && outcome.bytes == expected.size());
    CHECK(bytes_of(*queue, payload.data, outcome.bytes) == expected);
    Outcome untouched{7, codec::Status::ok};
    CHECK(queue->query(encoded, &untouched) == State::done && untouched.bytes == 7);

    std::vector<T> values(count);
    CHECK(codec::decode(spec, type, expected.data(), expected.size(), values.data(), count) ==
          codec::Status::ok);
    const Event event =
        queue->codecs().decode(resolved, type, payload.data, expected.size(), decoded.data, count);
    CHECK(finish(*queue, event, &outcome) == State::done && outcome.status == codec::Status::ok);
    const std::vector<std::byte> result = bytes_of(*queue, decoded.data, bytes);
    CHECK(std::equal(result.begin(), result.end(),
                     reinterpret_cast<const std::byte*>(values.data())));

    const Event cut = queue->codecs().decode(resolved, type, payload.data, expected.size() / 2,
                                             decoded.data, count);
    CHECK(finish(*queue, cut, &outcome) == State::done && outcome.status != codec::Status::ok);
  }
}

void bounds() {
  Spec spec;
  std::string error;
  CHECK(parse_spec("szp:rel=0.001", spec, error));
  const std::unique_ptr<Queue> queue = open_queue();
  std::vector<double> field = wave<double>(50000);
  field[7] = std::numeric_limits<double>::infinity();
  field[9] = std::numeric_limits<double>::quiet_NaN();
  field[11] = -40.5;
  const Block elements(Place::device, field.size() * 8);
  put(*queue, elements.data, field.data(), field.size() * 8);
  const auto resolved = [&](std::size_t first, std::size_t count) {
    return queue->codecs().resolve(spec, ElementType::f64, elements.data + 8 * first, count);
  };
  CHECK(resolved(0, 50000) == codec::resolve(spec, ElementType::f64, field.data(), 50000));
  CHECK(resolved(9, 40001) == codec::resolve(spec, ElementType::f64, &field[9], 40001));
  const std::pair<std::size_t, std::size_t> of_one_value[] = {{7, 1}, {7, 0}, {8, 1}};
  for (const auto& [first, count] : of_one_value) {
    CHECK(resolved(first, count) == codec::resolve(spec, ElementType::f64, &field[first], count));
    CHECK(resolved(first, count).value == std::numeric_limits<double>::min());
  }
}

/// Chunks as messages have them: encoded on one queue, copied on another once their size is known.
void pipeline() {
  constexpr std::size_t chunk = 65536, chunks = 12;
  Spec spec;
  std::string error;
  CHECK(parse_spec("mpc:dim=1", spec, error));
  const std::vector<float> field = wave<float>(chunk * chunks);
  const std::size_t room = codec::max_payload_bytes(spec, ElementType::f32, chunk);
  const std::size_t step = (room + 255) / 256 * 256;
  const Block elements(Place::device, field.size() * 4), decoded(Place::device, field.size() * 4);
  const Block payloads(Place::device, step * chunks), pinned(Place::pinned, step * chunks);
  const Block arrived(Place::device, step * chunks);
  const std::unique_ptr<Queue> work = open_queue(), wire = open_queue();
  put(*wire, elements.data, field.data(), field.size() * 4);
  std::vector<Event> encoded, sent, received;
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < chunks; ++i) {
    encoded.push_back(work->codecs().encode(spec, ElementType::f32, elements.data + i * chunk * 4,
                                            chunk, payloads.data + i * step));
  }
  for (std::size_t i = 0; i < chunks; ++i) {
    Outcome outcome;
    CHECK(finish(*work, encoded[i], &outcome) == State::done);
    sizes.push_back(outcome.bytes);
    wire->copy(pinned.data + i * step, payloads.data + i * step, outcome.bytes);
    sent.push_back(wire->copy(arrived.data + i * step, pinned.data + i * step, outcome.bytes));
  }
  for (std::size_t i = 0; i < chunks; ++i) {
    CHECK(finish(*wire, sent[i]) == State::done);
    received.push_back(work->codecs().decode(spec, ElementType::f32, arrived.data + i * step,
                                             sizes[i], decoded.data + i * chunk * 4, chunk));
  }
  work->drain();
  for (const Event event : received) {
    Outcome outcome{0, codec::Status::corrupt};
    CHECK(work->query(event, &outcome) == State::done && outcome.status == codec::Status::ok);
  }
  const std::vector<std::byte> result = bytes_of(*wire, decoded.data, field.size() * 4);
  CHECK(std::memcmp(result.data(), field.data(), result.size()) == 0);
}

/// Payloads that the device publishes are found by whoever reads the reports, and by query().
void published(const char* text) {
  constexpr std::size_t chunk = 40000, chunks = 9;
  Spec spec;
  std::string error;
  CHECK(parse_spec(text, spec, error));
  std::vector<float> field = wave<float>(chunk * chunks);
  const std::vector<std::byte> random = noise(chunk * 4, 8);
  std::memcpy(&field[3 * chunk], random.data(), random.size());  // one that stays raw
  const std::size_t step =
      (codec::max_payload_bytes(spec, ElementType::f32, chunk) + 255) / 256 * 256;
  const Block elements(Place::device, field.size() * 4), payloads(Place::device, step * chunks);
  const Mapped memory(chunks * sizeof(gpu::Report));
  auto* const reports = static_cast<gpu::Report*>(memory.data);
  const std::unique_ptr<Queue> queue = open_queue(), other = open_queue();
  put(*other, elements.data, field.data(), field.size() * 4);
  std::vector<gpu::Piece> pieces;
  for (std::size_t i = 0; i < chunks; ++i) {
    reports[i] = {7, codec::Status::corrupt, 7};  // of an earlier use
    gpu::Report* const report = i % 4 == 1 ? nullptr : &reports[i];
    pieces.push_back({elements.data + i * chunk * 4, chunk - i, payloads.data + i * step, report});
  }
  const Event first = queue->codecs().encode(spec, ElementType::f32, pieces);
  for (std::size_t i = chunks; i-- > 0;) {
    std::vector<std::byte> expected(step);
    expected.resize(
        codec::encode(spec, ElementType::f32, &field[i * chunk], chunk - i, expected.data()));
    gpu::Outcome outcome{1, codec::Status::corrupt};
    if (pieces[i].published) {
      while (load(reports[i].sequence) == 0) std::this_thread::yield();
      CHECK(reports[i].status == codec::Status::ok && reports[i].bytes == expected.size());
      // The queue has not been asked.
      CHECK(bytes_of(*other, payloads.data + i * step, reports[i].bytes) == expected);
    } else {
      CHECK(reports[i].bytes == 7 && reports[i].sequence == 7);
    }
    CHECK(finish(*queue, first + i, &outcome) == State::done);
    CHECK(outcome.status == codec::Status::ok && outcome.bytes == expected.size());
  }
  for (std::size_t i = 0; i < chunks; ++i) {
    if (pieces[i].published) CHECK(reports[i].sequence != 0);
  }
  // Again, to the same reports: they say nothing until they say the new.
  pieces[0].count = 100;
  const Event again = queue->codecs().encode(spec, ElementType::f32, {pieces.data(), 1});
  while (load(reports[0].sequence) == 0) std::this_thread::yield();
  std::vector<std::byte> expected(step);
  CHECK(reports[0].bytes ==
        codec::encode(spec, ElementType::f32, field.data(), 100, expected.data()));
  CHECK(finish(*queue, again) == State::done);
}

/// Flags in stream order, past the number that is 0 again.
void flags() {
  const std::unique_ptr<Queue> writer = open_queue(), reader = open_queue();
  CHECK(writer->can_wait() && reader->can_wait());
  constexpr std::size_t bytes = 100000;
  const Block between(Place::device, bytes), source(Place::device, bytes);
  const Block target(Place::pinned, bytes);
  const Mapped memory(64);
  auto* const flag = static_cast<std::uint32_t*>(memory.data);
  auto* const back = flag + 4;
  *flag = *back = UINT32_MAX - 2;
  for (std::uint32_t value = UINT32_MAX - 1; value != 4; ++value) {
    const std::vector<std::byte> data = noise(bytes, value);
    put(*writer, source.data, data.data(), bytes);
    // The reader first: it must not begin.
    reader->wait(flag, value);
    const Event read = reader->copy(target.data, between.data, bytes);
    reader->write(back, value);
    CHECK(reader->query(read) == State::pending);
    writer->copy(between.data, source.data, bytes);
    const Event written = writer->write(flag, value);
    while (load(*back) != value) std::this_thread::yield();
    CHECK(load(*flag) == value);
    CHECK(std::memcmp(target.data, data.data(), bytes) == 0);
    CHECK(finish(*reader, read) == State::done && finish(*writer, written) == State::done);
  }
  CHECK(finish(*reader, reader->wait(flag, UINT32_MAX)) == State::done);  // it is beyond that
  // Whoever gives up a wait ends it.
  const Event given_up = reader->wait(flag, 10);
  const Event later = reader->copy(target.data, between.data, 1);
  CHECK(reader->query(given_up) == State::pending && reader->query(later) == State::pending);
  std::atomic_ref(*flag).store(10, std::memory_order_release);
  CHECK(finish(*reader, later) == State::done);
  reader->drain();
  writer->drain();
}

/// Whoever finds the flag of a copy finds its bytes, and asks no queue.
void copies_ahead() {
  constexpr std::size_t bytes = 300000, copies = 24;
  const std::unique_ptr<Queue> queue = open_queue();
  const std::vector<std::byte> data = noise(bytes * copies, 21);
  const Block source(Place::device, bytes * copies), target(Place::pinned, bytes * copies);
  const Mapped memory(copies * sizeof(std::uint32_t));
  auto* const flags = static_cast<std::uint32_t*>(memory.data);
  put(*queue, source.data, data.data(), data.size());
  for (int round = 0; round < 3; ++round) {
    std::memset(flags, 0, copies * sizeof *flags);
    std::memset(target.data, 0, bytes * copies);
    std::vector<Event> given;
    for (std::size_t i = 0; i < copies; ++i) {
      std::uint32_t* const flag = i % 5 == 3 ? nullptr : &flags[i];
      std::byte* const to = target.data + i * bytes;
      const std::byte* const from = source.data + i * bytes;
      const std::size_t length = i % 7 == 6 ? 0 : bytes;
      // Others go between.
      given.push_back(i % 6 == 5 ? queue->copy(to, from, length, flag)
                                 : queue->copy_ahead(to, from, length, flag));
    }
    for (std::size_t i = copies; i-- > 0;) {
      if (i % 5 == 3) {
        CHECK(finish(*queue, given[i]) == State::done && flags[i] == 0);
      } else {
        while (load(flags[i]) == 0) std::this_thread::yield();
      }
      if (i % 7 == 6) continue;
      CHECK(std::memcmp(target.data + i * bytes, data.data() + i * bytes, bytes) == 0);
    }
    for (const Event event : given) CHECK(finish(*queue, event) == State::done);
    if (round == 1) queue->drain();
  }
}

void exhaustion() {
  constexpr std::size_t too_much = std::size_t{1} << 50;
  CHECK(!gpu::gpu()->allocate(Place::device, device, too_much));
  CHECK(!gpu::gpu()->allocate(Place::pinned, device, too_much));
  const Block still_there(Place::device, 1000);
}

/// A simulated device breaks and stays so.
void failure(void (*set_failing)(int, unsigned)) {
  constexpr int other = 1;
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(other);
  void* const memory = gpu::gpu()->allocate(Place::device, other, 1000);
  const Block pinned(Place::pinned, 1000);
  const Mapped reports(sizeof(gpu::Report));
  set_failing(other, 2);
  const Event first = queue->copy(memory, pinned.data, 1000);
  const Event second = queue->copy(pinned.data, memory, 1000);
  const Event third = queue->copy(memory, pinned.data, 1000);
  CHECK(finish(*queue, third) == State::failed);
  CHECK(queue->query(first) == State::done && queue->query(second) == State::done);
  CHECK(finish(*queue, queue->copy(memory, pinned.data, 1)) == State::failed);
  auto* const report = static_cast<gpu::Report*>(reports.data);
  const gpu::Piece piece{memory, 0, memory, report};
  Spec spec;
  spec.codec = Codec::mpc;
  CHECK(finish(*queue, queue->codecs().encode(spec, ElementType::f32, {&piece, 1})) ==
        State::failed);
  CHECK(load(report->sequence) == 0);
  queue->drain();
  CHECK(!gpu::gpu()->open_queue(other));
  gpu::gpu()->release(Place::device, other, memory);
}

/// A call that a real device refuses spoils what comes after it in the queue, until that is
/// drained.
void refusal() {
  const std::unique_ptr<Queue> queue = open_queue();
  const Block memory(Place::device, 4096);
  Spec none;
  none.codec = Codec::none;
  const Event before = queue->copy(memory.data, memory.data + 2048, 100);
  const Event refused =
      queue->codecs().encode(none, ElementType::f32, memory.data, 16, memory.data + 1024);
  const Event after = queue->copy(memory.data, memory.data + 2048, 100);
  CHECK(finish(*queue, refused) == State::failed && finish(*queue, after) == State::failed);
  CHECK(finish(*queue, before) == State::done);
  queue->drain();
  CHECK(queue->query(refused) == State::failed);
  CHECK(finish(*queue, queue->copy(memory.data, memory.data + 2048, 100)) == State::done);
}

void threads() {
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) {
    all.emplace_back([] {
      codecs<float>("szp:rel=1e-4");
      copies();
    });
  }
  for (std::thread& thread : all) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : MPRESS_SIMULATED_GPU;
  check_peers(path);  // in processes of its own, before this one uses a device
  gpu::choose(path);
  if (!gpu::gpu()) {
    std::fprintf(stderr, "%s\n", gpu::why_not().c_str());
    return 2;
  }
  places();
  copies();
  many_copies();
  layouts();
  for (const char* spec : {"mpc", "zfp:8", "szp:abs=1e-3", "szp:rel=1e-4,mode=dense"}) {
    codecs<float>(spec);
    codecs<double>(spec);
  }
  bounds();
  pipeline();
  for (const char* spec : {"mpc", "zfp:8", "szp:abs=1e-3"}) published(spec);
  flags();
  copies_ahead();
  threads();
  exhaustion();
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (void* found = library ? ::dlsym(library, "sim_set_failing") : nullptr) {
    failure(reinterpret_cast<void (*)(int, unsigned)>(found));
  } else {
    refusal();
  }
  return check::failures != 0;
}
