// What any link has to keep of its slots, by the peer link of simulated GPUs: one and several
// readers, order, slots running out, cancelling, a reader that never comes, a partner that dies, a
// device that fails; published by the device, and by the host where the device cannot.

#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "gpu/codec_queue.hpp"
#include "peer_link_ends.hpp"

using namespace mpress;
using gpu::Place;
using link::Account;

namespace {

constexpr std::size_t elements_in_chunk = 60000;
constexpr std::size_t chunk_bytes = elements_in_chunk * sizeof(double);
constexpr std::uint32_t chunks = 7;  // runs of 1, 2 and 4

Spec spec() {
  Spec spec;
  std::string error;
  CHECK(parse_spec("szp:abs=1e-6", spec, error));
  return spec;
}

std::size_t room() { return codec::max_payload_bytes(spec(), ElementType::f64, elements_in_chunk); }

std::vector<double> field() { return wave<double>(chunks * elements_in_chunk); }

/// Elements on device 0.
struct Elements {
  std::byte* memory;
  Elements(Queue& queue, const std::vector<double>& values)
      : memory(static_cast<std::byte*>(
            gpu::gpu()->allocate(Place::device, 0, values.size() * sizeof(double)))) {
    put(queue, memory, values.data(), values.size() * sizeof(double));
  }
  ~Elements() { gpu::gpu()->release(Place::device, 0, memory); }
};

/// A sender's work on one transfer: what a send of the engine's does.
class Work {
 public:
  Work(Link& link, Queue& queue, Transfer& transfer) : link_(link), queue_(queue) {
    publishes_ = link.devices_publish();
    link.lay_out(transfer);
  }

  void encode(const Transfer& transfer, const std::byte* elements) {
    std::vector<gpu::Piece> pieces;
    for (std::uint32_t chunk = 0; chunk < transfer.chunks; ++chunk) {
      pieces.push_back({elements + chunk * chunk_bytes, elements_in_chunk, transfer.place(chunk),
                        publishes_ ? link_.report(transfer, chunk) : nullptr});
    }
    const Event first = queue_.codecs().encode(spec(), ElementType::f64, pieces);
    for (std::uint32_t chunk = 0; chunk < transfer.chunks; ++chunk) {
      events_.push_back({chunk, first + chunk});
    }
  }

  void copy(const Transfer& transfer, const std::byte* elements) {
    for (std::uint32_t run = 0, end = 0; run < transfer.chunks; run = end) {
      end = std::min(Transfer::run_behind(run), transfer.chunks);
      Event event = queue_.copy_near(transfer.place(run), elements + run * transfer.chunk_room,
                                     (end - run) * transfer.chunk_room);
      if (publishes_) event = queue_.write(&link_.report(transfer, run)->sequence, 1);
      for (std::uint32_t chunk = run; chunk < end; ++chunk) events_.push_back({chunk, event});
    }
  }

  /// What a host has to do, whenever it looks. False where the device refused.
  bool finish(const Transfer& transfer) {
    for (const auto& [chunk, event] : events_) {
      gpu::Outcome outcome;
      if (mpress::finish(queue_, event, &outcome) == State::failed) {
        queue_.drain();
        CHECK(link_.fail(transfer));
        return false;
      }
      const std::size_t bytes = outcome.bytes > 0 ? outcome.bytes : transfer.chunk_room;
      if (!publishes_) link_.publish(transfer, chunk, bytes);
    }
    link_.release(transfer);
    return true;
  }

 private:
  struct Part {
    std::uint32_t chunk;
    Event event;
  };
  Link& link_;
  Queue& queue_;
  bool publishes_;
  std::vector<Part> events_;
};

/// Waits for a slot, as a reader does.
Arrival poll(PeerLink& peer, std::uint32_t slot, int device) {
  for (;;) {
    const Arrival arrival = peer.look(sender, slot, device);
    if (arrival.state != Slot::planned) return arrival;
    ::sched_yield();
  }
}

const int both[] = {receiver, receiver};

void reserve_for_both(Link& link, std::size_t bytes, Transfer& transfer) {
  CHECK(link.reserve({both, 0, chunks, bytes, 1}, transfer));
  CHECK(transfer.readers == 2 && transfer.first_of(1) == transfer.first + chunks);
}

void one_and_many_readers_send(const Line& line) {
  End end(line, sender);
  Link& link = end.link;
  introduce(link, line, 0);
  CHECK(link.devices_publish() == (std::string(std::getenv("SIMULATED_GPU_MAP")) == "1"));
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  const Elements elements(*queue, field());
  for (const bool encodes : {true, false}) {
    Transfer transfer;
    reserve_for_both(link, encodes ? room() : chunk_bytes, transfer);
    if (!encodes) transfer.raw_bytes = chunks * transfer.chunk_room;
    Work work(link, *queue, transfer);
    line.send(transfer);
    if (encodes) {
      work.encode(transfer, elements.memory);
    } else {
      work.copy(transfer, elements.memory);
    }
    // The device tells the readers although nobody looks here.
    if (link.devices_publish()) line.wait();
    CHECK(work.finish(transfer));
    if (!link.devices_publish()) line.wait();
    // One of the two has taken all, the other all but one.
    const std::uint64_t before = reinterpret_cast<std::uint64_t>(transfer.memory);
    Transfer next;
    CHECK(reserve(link, receiver, 0, 1, 256, 2, next));
    CHECK(reinterpret_cast<std::uint64_t>(next.memory) >= before + transfer.bytes());
    link.lay_out(next);
    link.fail(next);
    link.cancel(2);
    line.tell();
    line.wait();  // now all
    CHECK(reserve(link, receiver, 0, 1, 256, 3, next));
    CHECK(next.memory == transfer.memory);
    link.lay_out(next);
    link.fail(next);
    link.cancel(3);
  }
  end.finish(line);
}

void one_and_many_readers_receive(const Line& line) {
  End end(line, receiver);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  open_what_is_shared(link, line, 1);
  const std::vector<double> sent = field();
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(1);
  auto* const own = static_cast<std::byte*>(gpu::gpu()->allocate(Place::device, 1, room()));
  for (const bool encodes : {true, false}) {
    Transfer transfer;
    CHECK(line.receive(transfer));
    for (std::uint32_t reader = 0; reader < 2; ++reader) {
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const Arrival arrival = poll(peer, transfer.first_of(reader) + chunk, 1);
        CHECK(arrival.state == Slot::there);
        const double* const part = sent.data() + chunk * elements_in_chunk;
        if (encodes) {
          std::vector<std::byte> payload = bytes_of(*queue, arrival.data, arrival.bytes);
          std::vector<double> decoded(elements_in_chunk);
          CHECK(codec::decode(spec(), ElementType::f64, payload.data(), payload.size(),
                              decoded.data(), decoded.size()) == codec::Status::ok);
          for (std::size_t i = 0; i < decoded.size(); i += 997) {
            CHECK(std::abs(decoded[i] - part[i]) <= 1e-6);
          }
        } else {
          CHECK(arrival.bytes == transfer.chunk_room);
          CHECK(std::memcmp(bytes_of(*queue, arrival.data, chunk_bytes).data(), part,
                            chunk_bytes) == 0);
        }
        const bool is_last = reader == 1 && chunk == chunks - 1;
        if (!is_last) peer.acknowledge(sender, transfer.first_of(reader) + chunk);
      }
    }
    line.tell();
    line.wait();
    peer.acknowledge(sender, transfer.first_of(1) + chunks - 1);
    line.tell();
  }
  gpu::gpu()->release(Place::device, 1, own);
  end.finish(line);
}

/// What an operation may hold is its own; what it gives back is there again.
void runs_out(const Line& line) {
  End end(line, sender);
  Link& link = end.link;
  introduce(link, line, 0);
  Account greedy(2 * bytes), other(limit);
  Transfer kept[2], transfer;
  const auto reserve = [&](Account& account, Transfer& into) {
    return link.reserve({{&receiver, 1}, 0, 1, bytes, 1, &account}, into);
  };
  CHECK(reserve(greedy, kept[0]) && reserve(greedy, kept[1]) && greedy.held() == 2 * bytes);
  CHECK(!reserve(greedy, transfer) && transfer.chunks == 0);
  CHECK(reserve(other, transfer) && other.held() == bytes);
  link.lay_out(kept[0]);
  link.fail(kept[0]);
  line.send(kept[0]);
  line.wait();  // taken, of a reader who was told that it failed
  CHECK(reserve(greedy, kept[0]) && !reserve(greedy, kept[0]));
  for (const Transfer* one : {&kept[0], &kept[1], &transfer}) {
    link.lay_out(*one);
    link.fail(*one);
  }
  link.cancel(1);
  CHECK(reserve(greedy, kept[0]) && greedy.held() == bytes && other.held() == 0);
  link.fail(kept[0]);
  end.finish(line);  // a reader who never comes is waited for by nobody
}

void is_told_of_failure(const Line& line) {
  End end(line, receiver);
  open_what_is_shared(end.link, line, 0);
  Transfer failed;
  CHECK(line.receive(failed));
  CHECK(poll(end.peer, failed.first, 0).state == Slot::failed);
  end.peer.acknowledge(sender, failed.first);
  line.tell();
  end.finish(line);
}

void device_fails(const Line& line) {
  End end(line, sender);
  Link& link = end.link;
  introduce(link, line, 0);
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  const Elements elements(*queue, field());
  Transfer transfer;
  CHECK(reserve(link, receiver, 0, chunks, room(), 1, transfer));
  Work work(link, *queue, transfer);
  void* const loaded = ::dlopen(MPRESS_SIMULATED_GPU, RTLD_NOW | RTLD_NOLOAD);
  using Fail = void (*)(int, unsigned);
  reinterpret_cast<Fail>(::dlsym(loaded, "sim_set_failing"))(0, 3);
  line.send(transfer);
  work.encode(transfer, elements.memory);
  CHECK(!work.finish(transfer));
  line.wait();
  end.finish(line);
}

void reads_what_there_is(const Line& line) {
  End end(line, receiver);
  open_what_is_shared(end.link, line, 1);
  Transfer transfer;
  CHECK(line.receive(transfer));
  bool has_failed = false;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const auto state = poll(end.peer, transfer.first + chunk, 1).state;
    CHECK(state == Slot::failed || (state == Slot::there && !has_failed));
    has_failed = has_failed || state == Slot::failed;
    end.peer.acknowledge(sender, transfer.first + chunk);
  }
  CHECK(has_failed);
  line.tell();
  end.finish(line);
}

/// While its queue works.
void dies(const Line& line) {
  End end(line, sender);
  introduce(end.link, line, 0);
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  const Elements elements(*queue, field());
  Transfer transfer;
  CHECK(reserve(end.link, receiver, 0, chunks, room(), 1, transfer));
  Work work(end.link, *queue, transfer);
  line.send(transfer);
  line.wait();
  std::_Exit(0);
}

void outlives_it(const Line& line) {
  End end(line, receiver);
  open_what_is_shared(end.link, line, 1);
  Transfer transfer;
  CHECK(line.receive(transfer) && end.link.lives(sender));
  CHECK(end.peer.look(sender, transfer.first, 1).state == Slot::planned);
  line.tell();
  while (end.link.lives(sender)) ::sched_yield();
  CHECK(end.peer.look(sender, transfer.first, 1).state == Slot::planned);
  end.peer.close();
  end.peer.free_memory();
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  const char* const library = MPRESS_SIMULATED_GPU;
  for (const char* const maps : {"1", "0"}) {
    ::setenv("SIMULATED_GPU_MAP", maps, 1);
    run(library, one_and_many_readers_send, one_and_many_readers_receive);
    run(library, runs_out, is_told_of_failure);
    run(library, device_fails, reads_what_there_is);
    run(library, dies, outlives_it);
  }
  return check::failures != 0;
}
