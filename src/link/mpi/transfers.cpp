// Blocks by MPI: how they are sent, and how they are received.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "link/mpi/mpi_link.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/peek.hpp"
#include "mpi/progress_hook.hpp"
#include "trace/message.hpp"

namespace mpress::link {
namespace {

/// Slots of this link have no numbers: a bit of a route's says whether the transfer is timed.
constexpr std::uint32_t timed_slot = 1u << 29;

/// Of the time that is told: what a side may have been away in one piece.
constexpr std::uint64_t most_away = 4;

}  // namespace

/// What a reader tells, as MPI carries it.
struct MpiLink::Word {
  std::uint64_t number;
  std::uint64_t ns;
};

/// A transfer as its sender has it.
struct MpiLink::Sending {
  std::vector<int> readers;
  int device;
  std::uint64_t operation;
  Account* account;
  trace::Event like;
  std::size_t room;                   ///< what each slot counts for until it is published
  std::vector<memory::Buffer> slots;  ///< empty: not taken yet, or handed over
  bool is_timed;
  std::size_t published = 0;

  /// Memory for all slots by `take`; none, and false, where there is too little.
  template <typename Take>
  bool fill(const Take& take) {
    for (memory::Buffer& slot : slots) {
      slot = take(device, room);
      if (slot) continue;
      for (memory::Buffer& taken : slots) taken.reset();
      return false;
    }
    return true;
  }

  void give_back(std::size_t slot_count) {
    if (account) account->give(slot_count * room);
  }
};

bool MpiLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (comm_ == MPI_COMM_NULL) return false;
  if (wanted.account && !wanted.may_exceed &&
      !wanted.account->has_room(wanted.chunks * wanted.bytes)) {
    return false;
  }
  auto sending = std::make_unique<Sending>(Sending{{wanted.readers.begin(), wanted.readers.end()},
                                                   wanted.device,
                                                   wanted.operation,
                                                   wanted.account,
                                                   wanted.like,
                                                   wanted.bytes,
                                                   std::vector<memory::Buffer>(wanted.chunks),
                                                   wanted.is_timed});
  const bool is_near = !wanted.is_zero_copy && sending->fill([this](int device, std::size_t bytes) {
    return memory_->take_near(device, bytes);
  });
  if (!is_near && !wanted.is_zero_copy && wanted.device == gpu::host &&
      !sending->fill(
          [this](int device, std::size_t bytes) { return memory_->take(device, bytes); })) {
    return false;
  }
  if (wanted.account) wanted.account->take(wanted.chunks * wanted.bytes);
  if (wanted.is_timed) outbox.watch(wanted.chunks * wanted.readers.size());
  transfer = {wanted.is_timed ? timed_slot : 0, static_cast<std::uint32_t>(wanted.chunks),
              static_cast<std::uint32_t>(wanted.readers.size()), wanted.bytes};
  transfer.is_near = is_near;
  transfer.record = sending.release();
  return true;
}

std::byte* MpiLink::place(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Sending& sending = *static_cast<Sending*>(transfer.record);
  memory::Buffer& slot = sending.slots[chunk];
  if (!slot) slot = memory_->take(sending.device, bytes);
  return slot.data();
}

void MpiLink::publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Sending& sending = *static_cast<Sending*>(transfer.record);
  sending.give_back(1);
  const auto held = std::make_shared<const Held>(std::move(sending.slots[chunk]), sending.account);
  hand_over(sending, chunk, held->memory.data(), bytes, held);
}

void MpiLink::publish_from(const Transfer& transfer, std::size_t chunk, const std::byte* data,
                           std::size_t bytes, const std::shared_ptr<const void>& owner) {
  hand_over(*static_cast<Sending*>(transfer.record), chunk, data, bytes, owner);
}

/// An empty block stands for one that could not be made.
void MpiLink::hand_over(Sending& sending, std::size_t chunk, const std::byte* data,
                        std::size_t bytes, const std::shared_ptr<const void>& owner) {
  sending.published = chunk + 1;
  for (const int reader : sending.readers) {
    trace::Event on_wire = sending.like;
    on_wire.begin_ns = trace::timeline.now();
    on_wire.peer = reader;
    on_wire.chunk = static_cast<std::uint32_t>(chunk);
    on_wire.wire_bytes = bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = mpi::calls().Isend(data, static_cast<int>(bytes), MPI_BYTE, reader,
                                        tag_of(sending.operation), comm_, &request);
    if (code != MPI_SUCCESS) {  // nor can the reader be told, who would wait for ever
      mpi::fatal("MPI refused to send chunk " + std::to_string(chunk) + " of a message to rank " +
                 std::to_string(reader));
    }
    outbox.add({request, owner, sending.operation, reader, on_wire, sending.is_timed});
  }
}

bool MpiLink::fail(const Transfer& transfer) {
  const Sending& sending = *static_cast<Sending*>(transfer.record);
  for (std::size_t chunk = sending.published; chunk < sending.slots.size(); ++chunk) {
    publish(transfer, chunk, 0);
  }
  release(transfer);
  return true;
}

void MpiLink::abandon(const Transfer& transfer) {
  const std::unique_ptr<Sending> sending(static_cast<Sending*>(transfer.record));
  sending->give_back(sending->slots.size() - sending->published);
}

/// Keeps receives posted for the blocks that come next, as far as the reader has room.
class MpiLink::Reader final : public Inbound {
 public:
  Reader(MpiLink& link, const Expected& expected)
      : link_(link), expected_(expected), is_timed_((expected.route.slot & timed_slot) != 0) {
    if (is_timed_) began_ns_ = looked_ns_ = trace::now_ns();
    post();
  }

  gpu::State poll(std::uint64_t chunk, Arrived& arrived) override {
    if (is_timed_) look();
    post();
    if (chunk == posted_) return gpu::State::pending;
    Posted& posted = at(chunk);
    int has_come = 0;
    MPI_Status status;
    const int code = mpi::test(&posted.request, &has_come, &status);
    if (code == MPI_SUCCESS && !has_come) {
      has_waited_ = true;
      return gpu::State::pending;
    }
    ++taken_;
    link_.received();
    const bool waited = std::exchange(has_waited_, false);
    if (code != MPI_SUCCESS) {
      problem_ = "is longer than it was announced";
      is_corrupt_ = true;
      return gpu::State::failed;
    }
    const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(status));
    if (link_.pacer_->active()) {
      const bool on_its_way = expected_.begin_ns > 0 && !waited;
      link_.pacer_->arrive(bytes, on_its_way ? expected_.begin_ns : trace::now_ns());
    }
    const int home = expected_.buffers->home();
    arrived = {posted.place, bytes, home, home != gpu::host};
    arrived.begin_ns = posted.begin_ns;
    post();
    problem_ = "could not be made there";
    return bytes > 0 ? gpu::State::done : gpu::State::failed;
  }

  const char* problem() const override { return problem_; }
  bool is_corrupt() const override { return is_corrupt_; }
  void acknowledge(std::uint64_t) override {}
  void finish(bool) override {
    if (!is_timed_) return;
    look();
    const std::uint64_t took = looked_ns_ - began_ns_;
    const bool is_sound = !is_corrupt_ && longest_away_ns_ <= took / most_away;
    link_.tell(expected_.rank, {expected_.route.number, is_sound ? took : 0});
  }
  trace::Way way() const override { return trace::Way::chunks; }

 private:
  struct Posted {
    MPI_Request request;
    std::byte* place;
    std::uint64_t begin_ns;  ///< for the timeline
  };

  void look() {
    const std::uint64_t now = trace::now_ns();
    longest_away_ns_ = std::max(longest_away_ns_, now - looked_ns_);
    looked_ns_ = now;
  }

  Posted& at(std::uint64_t chunk) { return ahead_[chunk % ahead_.size()]; }

  void post() {
    for (; posted_ < expected_.chunks && posted_ < taken_ + ahead_.size(); ++posted_) {
      const std::size_t bytes = expected_.bytes_of(posted_);
      std::byte* const place = expected_.buffers->place_of(posted_, bytes);
      if (!place) return;
      Posted& posted = at(posted_);
      posted = {MPI_REQUEST_NULL, place, trace::timeline.now()};
      const int code = mpi::calls().Irecv(place, static_cast<int>(bytes), MPI_BYTE, expected_.rank,
                                          static_cast<int>(expected_.route.number), link_.comm_,
                                          &posted.request);
      if (code != MPI_SUCCESS) {
        mpi::fatal("MPI refused to receive a chunk from rank " + std::to_string(expected_.rank));
      }
    }
  }

  MpiLink& link_;
  const Expected expected_;
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
  std::array<Posted, 16> ahead_;
  bool has_waited_ = false;  ///< the next block was not there when it was looked for
  const char* problem_ = "";
  bool is_corrupt_ = false;
  const bool is_timed_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t longest_away_ns_ = 0;  ///< from one look to the next
};

void MpiLink::tell(int rank, const Word& word) {
  if (is_parting_.load(std::memory_order_relaxed)) return;
  auto data = std::make_shared<const Held>(memory_->take(gpu::host, sizeof word), nullptr);
  if (!data->memory) return;  // the sender gives up
  std::memcpy(data->memory.data(), &word, sizeof word);
  MPI_Request request = MPI_REQUEST_NULL;
  if (mpi::calls().Isend(data->memory.data(), sizeof word, MPI_BYTE, rank, told_tag(), comm_,
                         &request) == MPI_SUCCESS) {
    outbox.add({request, std::move(data), UINT64_MAX, rank, {}, false});
  }
}

bool MpiLink::take_told(Told& told) {
  if (mpi::in_progress_hook()) return false;  // a probe lets MPI proceed
  const mpi::Calls& mpi = mpi::calls();
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpi.Improbe(MPI_ANY_SOURCE, told_tag(), comm_, &found, &message, &status);
  if (!found) return false;
  Word word{};
  mpi.Mrecv(&word, sizeof word, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  received();
  const bool was_here = outbox.longest_away_ns() <= word.ns / most_away;
  told = {status.MPI_SOURCE, static_cast<std::uint32_t>(word.number), was_here ? word.ns : 0};
  return true;
}

std::unique_ptr<Inbound> MpiLink::receive(const Expected& expected) {
  return std::make_unique<Reader>(*this, expected);
}

}  // namespace mpress::link
