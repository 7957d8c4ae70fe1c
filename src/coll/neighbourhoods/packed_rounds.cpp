#include "coll/neighbourhoods/packed_rounds.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#include "coll/blocks/copy_block.hpp"
#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

using schedule::Passages;
using schedule::Transfer;

namespace {

/// May memcpy take it?
bool is_plain(Messaging& messaging, const std::vector<BlockData>& blocks) {
  return std::ranges::all_of(blocks, [&](const BlockData& block) {
    if (block.bytes == 0) return true;
    return block.layout->contiguous &&
           (!gpu::in_use() || locate(messaging, block.data).is_readable);
  });
}

}  // namespace

PackedRounds::PackedRounds(Messaging& messaging, trace::Called called, const Team& team, int tag,
                           const Exchange& exchange, const Way& way, Frames* frames)
    : messaging_(messaging),
      exchange_(exchange),
      way_(way),
      frames_(frames),
      is_plain_(is_plain(messaging, exchange.sent) && is_plain(messaging, exchange.received)),
      messages_(messaging, called, team, tag) {
  lay_out();
}

/// One block goes from where the program has it, or where it came, and comes to where the program
/// wants it first, if a message may take and put it there as it is.
PackedRounds::Message PackedRounds::message_of(const Transfer& transfer, bool is_received,
                                               std::size_t& end) const {
  const Passages& passages = way_.passages;
  Message message{&transfer, 0, end, nullptr, Passages::own, 0, Codec::none};
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    message.bytes += room(passages.part[i]);
  }
  if (frames_) {
    end += message.bytes;
    return message;
  }
  message.wire_bytes = message.bytes;
  if (transfer.count == 1 && is_received) {
    const std::span slots = passages.slots(transfer.first);
    if (!slots.empty() && is_plain_) {
      message.direct = &exchange_.received[static_cast<std::size_t>(slots.front())];
    }
  } else if (transfer.count == 1) {
    const std::uint32_t from = passages.from[transfer.first];
    if (from != Passages::own) {
      message.passed_on = from;
      return message;
    }
    if (is_plain_) message.direct = &exchange_.sent[passages.part[transfer.first]];
  }
  if (!message.direct) end += message.bytes;
  return message;
}

void PackedRounds::lay_out() {
  places_.resize(way_.schedule.blocks.size());
  if (frames_) lengths_.resize(places_.size());
  receives_.reserve(way_.schedule.receives.size());
  sends_.reserve(way_.schedule.sends.size());
  for (const Transfer& transfer : way_.schedule.receives) {
    const Message message = message_of(transfer, true, bytes_);
    receives_.push_back(message);
    auto* const programs = message.direct ? static_cast<std::byte*>(message.direct->data) : nullptr;
    std::size_t at = message.at;
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      places_[i] = {programs, at};
      at += room(way_.passages.part[i]);
    }
  }
  for (const Transfer& transfer : way_.schedule.sends) {
    sends_.push_back(message_of(transfer, false, bytes_));
  }
}

void PackedRounds::start() {
  unpacked_ = measured_ = next_send_ = 0;
  if (frames_) frames_->restart();
  if (bytes_ > 0 && !memory_) memory_ = messaging_.pool.take(bytes_);
  messages_.start(receives_.size(), sends_.size());
  if (bytes_ > 0 && !memory_) messages_.note(Status::no_memory);
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const Message& message = receives_[i];
    std::byte* const at = memory_ ? memory_.data() + message.at : nullptr;
    const BlockData place = message.direct ? *message.direct : bytes_at(at, message.bytes);
    messages_.receive(i, place, message.transfer->peer, frames_ != nullptr);
  }
  proceed();
}

/// How many receives the next sends need, of what earlier rounds have brought; receives are in the
/// order of their rounds.
std::size_t PackedRounds::needed() const {
  const int round = next_send_ < sends_.size() ? sends_[next_send_].transfer->round : INT_MAX;
  std::size_t most = unpacked_;
  while (most < receives_.size() && receives_[most].transfer->round < round) ++most;
  return most;
}

/// Is all sent that is to be sent, and all there that is received?
bool PackedRounds::proceed() {
  while (next_send_ < sends_.size() || unpacked_ < receives_.size()) {
    const std::size_t most = needed();
    if (!messages_.have_come(most)) return false;
    // Before they are passed on.
    for (; frames_ && measured_ < most; ++measured_) measure(measured_);
    if (next_send_ < sends_.size()) send_round();
    for (; unpacked_ < most; ++unpacked_) {
      frames_ ? unpack_framed(receives_[unpacked_]) : unpack(receives_[unpacked_]);
    }
  }
  return true;
}

bool PackedRounds::advance() {
  if (!proceed() || !messages_.are_sent()) return false;
  const auto count = [&](trace::Direction direction, const std::vector<Message>& messages) {
    for (const Message& one : messages) {
      const std::size_t lengths = frames_ ? one.transfer->count * sizeof(Length) : 0;
      messages_.count(direction, one.transfer->peer, one.bytes - lengths, one.wire_bytes,
                      one.codec);
    }
  };
  count(trace::Direction::send, sends_);
  count(trace::Direction::receive, receives_);
  return true;
}

void PackedRounds::send_round() {
  const int round = sends_[next_send_].transfer->round;
  for (; next_send_ < sends_.size() && sends_[next_send_].transfer->round == round; ++next_send_) {
    Message& message = sends_[next_send_];
    if (message.bytes == 0) continue;
    const BlockData data = status().is_ok() ? ready(message) : BlockData{};
    if (status().is_ok()) {
      messages_.send(next_send_, data, message.transfer->peer);
    } else {
      messages_.send_nothing(next_send_, message.transfer->peer);
    }
  }
}

BlockData PackedRounds::ready(Message& message) {
  if (frames_) return ready_framed(message);
  if (message.direct) return *message.direct;
  if (message.passed_on != Passages::own) {
    return bytes_at(address(places_[message.passed_on]), message.bytes);
  }
  const Passages& passages = way_.passages;
  const Transfer& transfer = *message.transfer;
  std::byte* const begin = memory_.data() + message.at;
  std::byte* to = begin;
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    const std::size_t bytes = exchange_.sizes[passages.part[i]];
    if (bytes > 0 && passages.from[i] != Passages::own) {
      std::memcpy(to, address(places_[passages.from[i]]), bytes);
    } else if (bytes > 0) {
      pack(exchange_.sent[passages.part[i]], to);
    }
    to += bytes;
  }
  return bytes_at(begin, message.bytes);
}

/// The lengths of its blocks, and then those.
BlockData PackedRounds::ready_framed(Message& message) {
  const Passages& passages = way_.passages;
  const Transfer& transfer = *message.transfer;
  std::byte* const begin = memory_.data() + message.at;
  std::byte* to = begin + transfer.count * sizeof(Length);
  message.codec = Codec::none;
  for (std::uint32_t k = 0; k < transfer.count; ++k) {
    const std::size_t i = transfer.first + k;
    const std::size_t bytes = exchange_.sizes[passages.part[i]];
    Length length{bytes, 0};
    if (bytes > 0 && passages.from[i] != Passages::own) {
      length = lengths_[passages.from[i]];
      std::memcpy(to, address(places_[passages.from[i]]), length.bytes);
    } else if (bytes > 0) {
      const BlockData& data = exchange_.sent[passages.part[i]];
      const auto frame = frames_->frame(passages.part[i], data, transfer.peer);
      messages_.note(frames_->status());
      if (frame.empty()) {
        pack(data, to);
      } else {
        length = {frame.size(), static_cast<std::uint64_t>(frames_->codec())};
        std::memcpy(to, frame.data(), frame.size());
      }
    }
    if (length.codec != 0) message.codec = static_cast<Codec>(length.codec);
    std::memcpy(begin + k * sizeof(Length), &length, sizeof length);
    to += length.bytes;
  }
  message.wire_bytes = static_cast<std::size_t>(to - begin);
  return bytes_at(begin, message.wire_bytes);
}

/// Of `bytes` that have come. False where they are no such message.
bool PackedRounds::read_lengths(Message& message, std::size_t bytes) {
  const Transfer& transfer = *message.transfer;
  std::size_t at = transfer.count * sizeof(Length);
  if (bytes < at) return false;
  const std::byte* const begin = memory_.data() + message.at;
  for (std::uint32_t k = 0; k < transfer.count; ++k) {
    const std::size_t i = transfer.first + k;
    Length& length = lengths_[i];
    std::memcpy(&length, begin + k * sizeof(Length), sizeof length);
    const std::size_t whole = exchange_.sizes[way_.passages.part[i]];
    const bool is_sound = length.codec != 0 ? length.bytes < whole : length.bytes == whole;
    if (!is_sound || length.bytes > bytes - at) return false;
    places_[i].at = message.at + at;
    if (length.codec != 0) message.codec = static_cast<Codec>(length.codec);
    at += length.bytes;
  }
  return at == bytes;
}

void PackedRounds::measure(std::size_t number) {
  Message& message = receives_[number];
  message.codec = Codec::none;
  message.wire_bytes = messages_.received_bytes(number);
  if (message.bytes == 0 || !status().is_ok()) return;
  if (!read_lengths(message, message.wire_bytes)) messages_.note(Status::corrupt);
}

void PackedRounds::unpack_framed(const Message& message) {
  if (message.bytes == 0 || !status().is_ok()) return;
  const Transfer& transfer = *message.transfer;
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    const std::span slots = way_.passages.slots(i);
    if (slots.empty() || lengths_[i].bytes == 0) continue;
    const std::byte* const block = address(places_[i]);
    const auto place = [&](int slot) -> const BlockData& {
      return exchange_.received[static_cast<std::size_t>(slot)];
    };
    if (lengths_[i].codec != 0) {
      messages_.note(frames_->decode({block, lengths_[i].bytes}, transfer.peer, place(slots[0])));
    } else {
      unpack(address(places_[i]), lengths_[i].bytes, place(slots[0]));
    }
    for (const int slot : slots.subspan(1)) copy(place(slots[0]), place(slot));
  }
}

void PackedRounds::unpack(const Message& message) {
  if (!status().is_ok()) return;
  const Transfer& transfer = *message.transfer;
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    const std::size_t bytes = exchange_.sizes[way_.passages.part[i]];
    if (bytes == 0) continue;
    for (const int slot : way_.passages.slots(i).subspan(message.direct ? 1 : 0)) {
      unpack(address(places_[i]), bytes, exchange_.received[static_cast<std::size_t>(slot)]);
    }
  }
}

void PackedRounds::pack(const BlockData& from, std::byte* to) {
  if (is_plain_) {
    std::memcpy(to, from.data, from.bytes);
  } else {
    copy(from, bytes_at(to, from.bytes));
  }
}

void PackedRounds::unpack(std::byte* from, std::size_t bytes, const BlockData& to) {
  if (is_plain_) {
    std::memcpy(to.data, from, std::min(bytes, to.bytes));
  } else {
    copy(bytes_at(from, bytes), to);
  }
}

void PackedRounds::copy(const BlockData& from, const BlockData& to) {
  if (is_plain_) {
    std::memcpy(to.data, from.data, std::min(from.bytes, to.bytes));
  } else {
    messages_.note(copy_block(messaging_, from, to));
  }
}

bool PackedRounds::wait() {
  if (next_send_ < sends_.size() || unpacked_ < receives_.size()) {
    return messages_.wait_for(needed());
  }
  return messages_.wait_until_sent();
}

}  // namespace mpress::engine
