#include "gpu_peers.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "codec/codec.hpp"
#include "gpu/codec_queue.hpp"
#include "gpu/loaded_gpu.hpp"
#include "processes.hpp"
#include "queues.hpp"

using namespace mpress;
using gpu::MemoryHandle;
using gpu::Place;

namespace {

constexpr std::size_t count = 300000;
constexpr std::size_t odd = 12345;  // bytes of a small block

Spec codec_of_payload() {
  Spec spec;
  std::string error;
  CHECK(parse_spec("mpc", spec, error));
  return spec;
}

std::size_t room() { return codec::max_payload_bytes(codec_of_payload(), ElementType::f64, count); }

/// A payload after as many bytes; blocks are aligned enough for both.
constexpr std::size_t payload_at = 4096 + 256;

struct Sent {
  MemoryHandle large, small, other_small;
  std::size_t payload_bytes;
};

void* take(std::size_t bytes) {
  void* const memory = gpu::gpu()->allocate(Place::device, 0, bytes);
  CHECK(memory);
  return memory;
}

void owner(const Line& line) {
  gpu::Gpu& all = *gpu::gpu();
  const std::unique_ptr<Queue> queue = all.open_queue(0);
  const std::vector<double> field = wave<double>(count);
  auto* const large = static_cast<std::byte*>(take(payload_at + room()));
  void* const small = take(odd);
  void* const other_small = take(odd);
  void* const elements = take(count * 8);
  put(*queue, elements, field.data(), count * 8);
  put(*queue, large, noise(payload_at, 1).data(), payload_at);
  put(*queue, small, noise(odd, 2).data(), odd);
  put(*queue, other_small, noise(odd, 3).data(), odd);
  Outcome outcome;
  const Event encoded = queue->codecs().encode(codec_of_payload(), ElementType::f64, elements,
                                               count, large + payload_at);
  CHECK(finish(*queue, encoded, &outcome) == State::done);

  Sent sent{};
  sent.payload_bytes = outcome.bytes;
  CHECK(all.share(0, large, sent.large) && all.share(0, small, sent.small));
  CHECK(all.share(0, other_small, sent.other_small));
  line.send(sent);
  line.wait();  // read
  put(*queue, small, noise(odd, 4).data(), odd);
  line.tell();
  line.wait();  // written to and closed; to be opened again
  CHECK(bytes_of(*queue, other_small, odd) == noise(odd, 6));
  std::vector<std::byte> payload(room());
  payload.resize(
      codec::encode(codec_of_payload(), ElementType::f64, field.data(), count / 2, payload.data()));
  CHECK(bytes_of(*queue, large + payload_at, payload.size()) == payload);
  put(*queue, large, noise(payload_at, 5).data(), payload_at);
  CHECK(all.share(0, large, sent.large));
  line.send(sent.large);
  line.wait();  // closed
  for (void* memory : {static_cast<void*>(large), small, other_small, elements}) {
    all.release(Place::device, 0, memory);
  }
  line.tell();
  line.wait();
}

void opener(const Line& line, int device) {
  gpu::Gpu& all = *gpu::gpu();
  const std::unique_ptr<Queue> queue = all.open_queue(device);
  Sent sent{};
  CHECK(queue && line.receive(sent));
  auto* const large = static_cast<std::byte*>(all.open(device, sent.large));
  auto* const small = static_cast<std::byte*>(all.open(device, sent.small));
  auto* const other_small = static_cast<std::byte*>(all.open(device, sent.other_small));
  CHECK(large && small && other_small);
  auto* const own = static_cast<std::byte*>(all.allocate(Place::device, device, count * 8));
  auto* const pinned = static_cast<std::byte*>(all.allocate(Place::pinned, device, odd));

  // To the device's own memory, and at once to the host; at addresses of any alignment.
  queue->copy(own + 1, large + 3, payload_at - 3);
  const std::vector<std::byte> begin = noise(payload_at, 1);
  CHECK(bytes_of(*queue, own + 1, payload_at - 3) ==
        std::vector<std::byte>(begin.begin() + 3, begin.end()));
  CHECK(bytes_of(*queue, small, odd) == noise(odd, 2));
  put(*queue, pinned, other_small, odd);
  CHECK(std::memcmp(pinned, noise(odd, 3).data(), odd) == 0);

  Outcome outcome{0, codec::Status::corrupt};
  const Event decoded = queue->codecs().decode(codec_of_payload(), ElementType::f64,
                                               large + payload_at, sent.payload_bytes, own, count);
  CHECK(finish(*queue, decoded, &outcome) == State::done && outcome.status == codec::Status::ok);
  const std::vector<double> field = wave<double>(count);
  CHECK(std::memcmp(bytes_of(*queue, own, count * 8).data(), field.data(), count * 8) == 0);

  line.tell();
  line.wait();
  CHECK(bytes_of(*queue, small, odd) == noise(odd, 4));  // what its owner writes later is seen
  put(*queue, other_small, noise(odd, 6).data(), odd);
  const Event encoded = queue->codecs().encode(codec_of_payload(), ElementType::f64, own, count / 2,
                                               large + payload_at);
  CHECK(finish(*queue, encoded, &outcome) == State::done && outcome.status == codec::Status::ok);
  for (void* memory : {large, small, other_small}) all.close(device, memory);
  line.tell();
  CHECK(line.receive(sent.large));
  void* const again = all.open(device, sent.large);
  CHECK(again && bytes_of(*queue, again, payload_at) == noise(payload_at, 5));
  all.close(device, again);
  all.release(Place::device, device, own);
  all.release(Place::pinned, device, pinned);
  line.tell();
  line.wait();  // freed
  CHECK(!all.open(device, sent.large));
  line.tell();
}

/// Between two devices where there are two.
void opener_elsewhere(const Line& line) {
  void* const there = gpu::gpu()->allocate(Place::device, 1, 1);
  if (there) gpu::gpu()->release(Place::device, 1, there);
  opener(line, there ? 1 : 0);
}

/// What two processes share without a word between them: payloads that one device publishes and
/// another decodes, the first told to the other's host, later ones to its queue.
struct Board {
  gpu::Report report;
  alignas(64) std::uint32_t written;
  alignas(64) std::uint32_t read;
};

constexpr std::uint32_t rounds = 6;

std::uint32_t load(std::uint32_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

void publisher(const Line& line, Board& board) {
  gpu::Gpu& all = *gpu::gpu();
  const std::unique_ptr<Queue> queue = all.open_queue(0);
  CHECK(queue->can_wait() && all.map(0, &board, sizeof board));
  void* const payload = take(room());
  void* const elements = take(count * 8);
  MemoryHandle handle;
  CHECK(all.share(0, payload, handle));
  line.send(handle);
  line.wait();  // it is open
  std::vector<double> field = wave<double>(count);
  Event encoded = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    field[round] = round;
    if (encoded != 0) CHECK(finish(*queue, encoded) == State::done);
    put(*queue, elements, field.data(), count * 8);
    queue->wait(&board.read, round - 1);
    const gpu::Piece piece{elements, count, payload, round == 1 ? &board.report : nullptr};
    encoded = queue->codecs().encode(codec_of_payload(), ElementType::f64, {&piece, 1});
    queue->write(&board.written, round);
  }
  queue->drain();
  line.wait();
  all.unmap(0, &board);
  all.release(Place::device, 0, payload);
  all.release(Place::device, 0, elements);
}

void subscriber(const Line& line, Board& board, int device) {
  gpu::Gpu& all = *gpu::gpu();
  const std::unique_ptr<Queue> queue = all.open_queue(device);
  CHECK(queue->can_wait() && all.map(device, &board, sizeof board));
  MemoryHandle handle;
  CHECK(line.receive(handle));
  auto* const payload = static_cast<std::byte*>(all.open(device, handle));
  auto* const elements =
      static_cast<std::byte*>(all.allocate(Place::device, device, rounds * count * 8));
  auto* const copy = static_cast<std::byte*>(all.allocate(Place::device, device, room()));
  CHECK(payload && elements && copy);
  std::vector<double> field = wave<double>(count);
  std::vector<std::byte> expected(room());
  line.tell();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    field[round] = round;
    const std::size_t bytes =
        codec::encode(codec_of_payload(), ElementType::f64, field.data(), count, expected.data());
    if (round == 1) {
      while (load(board.report.sequence) == 0) std::this_thread::yield();
      CHECK(board.report.status == codec::Status::ok && board.report.bytes == bytes);
    } else {
      queue->wait(&board.written, round);
    }
    queue->copy(copy, payload, bytes);
    const Event decoded = queue->codecs().decode(codec_of_payload(), ElementType::f64, copy, bytes,
                                                 elements + (round - 1) * count * 8, count);
    queue->write(&board.read, round);
    if (round % 2 != 0) continue;
    Outcome outcome{0, codec::Status::corrupt};
    CHECK(finish(*queue, decoded, &outcome) == State::done && outcome.status == codec::Status::ok);
    CHECK(std::memcmp(bytes_of(*queue, elements + (round - 1) * count * 8, count * 8).data(),
                      field.data(), count * 8) == 0);
  }
  queue->drain();
  all.close(device, payload);
  all.unmap(device, &board);
  all.release(Place::device, device, elements);
  all.release(Place::device, device, copy);
  line.tell();
}

void check_published(const char* library, bool elsewhere) {
  void* const shared =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  auto& board = *static_cast<Board*>(shared);
  run(
      library, [&](const Line& line) { publisher(line, board); },
      [&](const Line& line) {
        void* const there = elsewhere ? gpu::gpu()->allocate(Place::device, 1, 1) : nullptr;
        if (there) gpu::gpu()->release(Place::device, 1, there);
        subscriber(line, board, there ? 1 : 0);
      });
  ::munmap(shared, 4096);
}

// What only simulated devices notice.

/// Shares a block; the opener has it when it `tell`s.
void* shared(const Line& line) {
  void* const memory = take(odd);
  MemoryHandle handle;
  CHECK(gpu::gpu()->share(0, memory, handle));
  line.send(handle);
  return memory;
}

void share_only(const Line& line) {
  void* const memory = shared(line);
  line.wait();
  gpu::gpu()->release(Place::device, 0, memory);
}

MemoryHandle received(const Line& line) {
  MemoryHandle handle = {};
  CHECK(line.receive(handle));
  return handle;
}

void* opened(const Line& line) {
  void* const memory = gpu::gpu()->open(1, received(line));
  CHECK(memory);
  return memory;
}

void nothing(const Line& line) { line.wait(); }

void misuse(const char* library) {
  const auto faults = [&](const char* text, bool by_owner, const Role& owner, const Role& opener) {
    run(library, owner, opener, {text, by_owner});
  };
  const auto opener_faults = [&](const char* text, const std::function<void(void*)>& use) {
    faults(text, false, share_only, [&](const Line& line) { use(opened(line)); });
  };
  const auto own = [] { return gpu::gpu()->allocate(Place::device, 1, odd); };

  faults(
      "writes to a block of another program", false,
      [&](const Line& line) {
        MemoryHandle handle;
        CHECK(gpu::gpu()->share(0, program_memory(library, 0, odd), handle));
        line.send(handle);
        line.wait();
      },
      [&](const Line& line) {
        void* const memory = opened(line);
        gpu::gpu()->open_queue(1)->copy(memory, own(), odd);
      });
  opener_faults("open for device 1, and copied by device 0",
                [&](void* memory) { gpu::gpu()->open_queue(0)->copy(own(), memory, odd); });
  opener_faults("do not lie in a block",
                [&](void* memory) { gpu::gpu()->open_queue(1)->copy(own(), memory, odd + 1); });
  opener_faults("closed while it is in use", [&](void* memory) {
    const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(1);
    queue->copy(own(), memory, odd);
    gpu::gpu()->close(1, memory);
  });
  opener_faults("closed that is not open", [](void* memory) {
    gpu::gpu()->close(1, memory);
    gpu::gpu()->close(1, memory);
  });
  opener_faults("is another's",
                [](void* memory) { gpu::gpu()->release(Place::device, 1, memory); });
  opener_faults("which is no block", [](void* memory) {
    MemoryHandle handle;
    gpu::gpu()->share(1, memory, handle);
  });
  opener_faults("never closed", [](void*) { ::setenv("SIMULATED_GPU_LEAKS", "abort", 1); });
  faults("opened twice", false, share_only, [](const Line& line) {
    const MemoryHandle handle = received(line);
    CHECK(gpu::gpu()->open(0, handle));
    CHECK(gpu::gpu()->open(1, handle));
    gpu::gpu()->open(1, handle);
  });
  faults(
      "a block of its own", true,
      [](const Line&) {
        MemoryHandle handle;
        CHECK(gpu::gpu()->share(0, take(odd), handle));
        gpu::gpu()->open(1, handle);
      },
      nothing);
  faults(
      "which is no block", true,
      [](const Line&) {
        MemoryHandle handle;
        gpu::gpu()->share(0, static_cast<std::byte*>(take(odd)) + 256, handle);
      },
      nothing);
  faults("released that another process has open", true, share_only, [](const Line& line) {
    opened(line);
    line.tell();
    line.wait();
  });
  // Each process's work must be seen done before the other's begins.
  faults(
      "two processes race", true,
      [](const Line& line) {
        void* const memory = shared(line);
        line.wait();
        gpu::gpu()->open_queue(0)->copy(memory, take(odd), odd);
      },
      [&](const Line& line) {
        const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(1);
        void* const memory = opened(line);
        const Event first = queue->copy(own(), memory, odd);
        queue->copy(own(), memory, odd);  // still under way when the first is done
        CHECK(finish(*queue, first) == State::done);
        line.tell();
        line.wait();
        queue->drain();
      });
  faults(
      "two processes race", false,
      [](const Line& line) {
        const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
        queue->copy(shared(line), take(odd), odd);
        line.tell();
        line.wait();
        queue->drain();
      },
      [&](const Line& line) {
        void* const memory = opened(line);
        line.wait();
        gpu::gpu()->open_queue(1)->copy(own(), memory, odd);
      });
}

/// Work on one part of a block, or done before, is in nobody's way.
void beside(const char* library) {
  run(
      library,
      [](const Line& line) {
        auto* const memory = static_cast<std::byte*>(shared(line));
        void* const from = take(odd);
        const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
        line.wait();
        put(*queue, memory + 100, from, odd - 100);
        line.tell();
        line.wait();
        put(*queue, memory, from, odd);
        line.tell();
        line.wait();
        for (void* block : {static_cast<void*>(memory), from}) {
          gpu::gpu()->release(Place::device, 0, block);
        }
      },
      [](const Line& line) {
        void* const memory = opened(line);
        void* const to = gpu::gpu()->allocate(Place::device, 1, odd);
        const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(1);
        const Event whole = queue->copy(to, memory, 100);
        const Event part = queue->copy(to, memory, 50);
        line.tell();
        line.wait();
        CHECK(finish(*queue, whole) == State::done && finish(*queue, part) == State::done);
        line.tell();
        line.wait();
        gpu::gpu()->close(1, memory);
        gpu::gpu()->release(Place::device, 1, to);
        line.tell();
      });
}

/// A process that is killed has nothing open any more.
void killed(const char* library) {
  int sockets[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const Line lines[2] = {{sockets[0]}, {sockets[1]}};
  const Child first = start(library, lines[0], lines[1], share_only);
  const Child second = start(library, lines[1], lines[0], [](const Line& line) {
    opened(line);
    ::raise(SIGKILL);
  });
  for (const Line& line : lines) ::close(line.socket);
  last_words(first);
  CHECK(status_of(first) == 0);  // while the other's status has not been asked for
  last_words(second);
  CHECK(WIFSIGNALED(status_of(second)));
}

void apart(const char* library) {
  ::setenv("SIMULATED_GPU_PEERS", "0", 1);
  run(library, share_only, [](const Line& line) {
    CHECK(!gpu::gpu()->open(1, received(line)));
    line.tell();
  });
  ::unsetenv("SIMULATED_GPU_PEERS");
}

}  // namespace

void check_peers(const char* library) {
  run(library, owner, [](const Line& line) { opener(line, 0); });
  run(library, owner, opener_elsewhere);
  check_published(library, false);
  check_published(library, true);
  if (std::string(library) != MPRESS_SIMULATED_GPU) return;
  misuse(library);
  beside(library);
  killed(library);
  apart(library);
}
