// Blocks by the channel: how they are sent, and how they are received.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "link/channel/channel_link.hpp"
#include "trace/message.hpp"

namespace mpress::link {
namespace {

/// Slots of this link have no numbers: a bit of a route's says whether the transfer is timed.
constexpr std::uint32_t timed_slot = 1u << 29;

/// Of the time that a reader reports: what a side may have been away in one piece.
constexpr std::uint64_t most_away = 4;

}  // namespace

/// A reader time, as the channel carries it.
struct ChannelLink::Word {
  std::uint64_t number;
  std::uint64_t ns;
};

/// A transfer as its sender has it.
struct ChannelLink::Sending {
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

bool ChannelLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (!channel_) return false;
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

std::byte* ChannelLink::place(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Sending& sending = *static_cast<Sending*>(transfer.record);
  memory::Buffer& slot = sending.slots[chunk];
  if (!slot) slot = memory_->take(sending.device, bytes);
  return slot.data();
}

void ChannelLink::publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Sending& sending = *static_cast<Sending*>(transfer.record);
  sending.give_back(1);
  const auto held = std::make_shared<const Held>(std::move(sending.slots[chunk]), sending.account);
  hand_over(sending, chunk, held->memory.data(), bytes, held);
}

void ChannelLink::publish_from(const Transfer& transfer, std::size_t chunk, const std::byte* data,
                               std::size_t bytes, const std::shared_ptr<const void>& owner) {
  hand_over(*static_cast<Sending*>(transfer.record), chunk, data, bytes, owner);
}

/// An empty block stands for one that could not be made.
void ChannelLink::hand_over(Sending& sending, std::size_t chunk, const std::byte* data,
                            std::size_t bytes, const std::shared_ptr<const void>& owner) {
  sending.published = chunk + 1;
  for (const int reader : sending.readers) {
    trace::Event on_wire = sending.like;
    on_wire.begin_ns = trace::timeline.now();
    on_wire.peer = reader;
    on_wire.chunk = static_cast<std::uint32_t>(chunk);
    on_wire.wire_bytes = bytes;
    const Channel::Pending pending = channel_->send(data, bytes, reader, tag_of(sending.operation));
    outbox.add({pending, owner, sending.operation, reader, on_wire, sending.is_timed});
  }
}

bool ChannelLink::fail(const Transfer& transfer) {
  const Sending& sending = *static_cast<Sending*>(transfer.record);
  for (std::size_t chunk = sending.published; chunk < sending.slots.size(); ++chunk) {
    publish(transfer, chunk, 0);
  }
  release(transfer);
  return true;
}

void ChannelLink::abandon(const Transfer& transfer) {
  const std::unique_ptr<Sending> sending(static_cast<Sending*>(transfer.record));
  sending->give_back(sending->slots.size() - sending->published);
}

/// Keeps receives posted for the blocks that come next, as far as the reader has room.
class ChannelLink::Reader final : public Inbound {
 public:
  Reader(ChannelLink& link, const Expected& expected)
      : link_(link), expected_(expected), is_timed_((expected.route.slot & timed_slot) != 0) {
    if (is_timed_) began_ns_ = looked_ns_ = trace::now_ns();
    post();
  }

  gpu::State poll(std::uint64_t chunk, Arrived& arrived) override {
    if (is_timed_) look();
    post();
    if (chunk == posted_) return gpu::State::pending;
    Posted& posted = at(chunk);
    std::size_t bytes = 0;
    const gpu::State state = link_.channel_->poll(posted.pending, &bytes);
    if (state == gpu::State::pending) {
      has_waited_ = true;
      return state;
    }
    ++taken_;
    link_.received();
    const bool waited = std::exchange(has_waited_, false);
    if (state == gpu::State::failed) {
      problem_ = "is longer than it was announced";
      is_corrupt_ = true;
      return gpu::State::failed;
    }
    if (link_.pacer_->active()) {
      const bool on_its_way = expected_.begin_ns > 0 && !waited;
      link_.pacer_->arrive(bytes, on_its_way ? expected_.begin_ns : trace::now_ns());
    }
    const int memory_device = expected_.buffers->memory_device();
    arrived = {posted.place, bytes, memory_device, memory_device != gpu::host};
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
    Channel::Pending pending;
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
      const std::uint64_t begin_ns = trace::timeline.now();
      const int tag = static_cast<int>(expected_.route.number);
      posted = {link_.channel_->receive(place, bytes, expected_.rank, tag), place, begin_ns};
    }
  }

  ChannelLink& link_;
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

void ChannelLink::tell(int rank, const Word& word) {
  if (is_shut_down_.load(std::memory_order_relaxed)) return;
  auto data = std::make_shared<const Held>(memory_->take(gpu::host, sizeof word), nullptr);
  if (!data->memory) return;  // the sender gives up
  std::memcpy(data->memory.data(), &word, sizeof word);
  const Channel::Pending pending =
      channel_->send(data->memory.data(), sizeof word, rank, reader_tag());
  outbox.add({pending, std::move(data), UINT64_MAX, rank, {}, false});
}

std::optional<ChannelLink::ReaderTime> ChannelLink::take_reader_time() {
  const std::optional<Channel::Found> found = channel_->find(reader_tag());
  if (!found) return std::nullopt;
  Word word{};
  channel_->take(*found, reinterpret_cast<std::byte*>(&word), sizeof word);
  received();
  const bool was_here = outbox.longest_away_ns() <= word.ns / most_away;
  return ReaderTime{found->from, static_cast<std::uint32_t>(word.number), was_here ? word.ns : 0};
}

std::unique_ptr<Inbound> ChannelLink::receive(const Expected& expected) {
  return std::make_unique<Reader>(*this, expected);
}

}  // namespace mpress::link
