// Receives of ranks that are threads: what MPI does with a receive, and its requests, with memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/operation.hpp"
#include "loopback/messages.hpp"
#include "message/receive.hpp"

namespace mpress::loopback {

/// A receive that a queue of envelopes matches.
class Posted final : public engine::Operation,
                     public engine::InPlaceReceive,
                     public std::enable_shared_from_this<Posted> {
 public:
  /// `outcome`: null, or it outlives this, as the memory does.
  Posted(engine::Messaging& rank, std::byte* data, std::shared_ptr<const engine::Layout> layout,
         std::int64_t count, trace::Called called = trace::Op::recv,
         engine::Outcome* outcome = nullptr)
      : receive(rank), rank_(rank), data_(data), layout_(std::move(layout)) {
    receive.describe(called, data, count, layout_.get(), outcome);
  }
  ~Posted() { leave(); }

  engine::Receive receive;

  const engine::ReceiveBuffer& buffer() const { return receive.place().buffer(); }

  /// As a receive that is completed later. Returns whether it overlapped another.
  bool post(bool stays) {
    engine::ReceivePlace& place = receive.place();
    is_watched_ = place.is_needed(true) && place.choose(true, stays);
    CHECK(!place.lacks_memory());
    if (!is_watched_ || !place.is_in_place()) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(place.data());
    is_claimed_ = rank_.in_place.add(begin, buffer().capacity(), shared_from_this());
    if (is_claimed_) return false;
    const auto others = rank_.in_place.overlapping(begin, buffer().capacity());
    place.stage_aside();
    for (const auto& other : others) other->contest();
    return true;
  }

  /// As a receive whose message a probe has taken from MPI: it stays until the receive is over.
  void take(std::span<const std::byte> message, int source) {
    receive.place().buffer().locate();
    if (!receive.collect(message.data(), message.size(), source)) {
      receive.deliver(message.data(), message.size(), source);
    }
  }

  /// What MPI does with a message that fits, as it is.
  void come(std::span<const std::byte> message, int source) {
    const engine::ReceivePlace& place = receive.place();
    if (place.kind() == engine::ReceivePlace::Kind::remote) {
      sim_copy_in(place.data(), message.data(), message.size());
      sim_synchronize();
    } else if (place.data() != data_ || layout_->contiguous) {
      if (!message.empty()) std::memcpy(place.data(), message.data(), message.size());
    } else {
      CHECK(layout_
                ->unpack(message.data(), message.size(), data_,
                         static_cast<std::int64_t>(buffer().capacity() / layout_->size), true)
                .is_ok());
    }
    bytes_ = message.size();
    source_ = source;
    has_come_ = true;
  }
  bool has_come() const { return has_come_; }
  bool is_claimed() const { return is_claimed_; }
  bool is_followed() const { return is_followed_; }

  /// Takes what has come, as far as nobody else does. True where finish() does not wait.
  bool is_all_there() {
    if (is_followed_) return is_over();
    return has_come_ && (!is_watched_ || advance());
  }

  void finish() {
    if (!receive.incoming() && !is_watched_) return;
    receive.incoming() ? receive.deliver() : receive.deliver(bytes_, source_);
    leave();
  }

  /// Does another receive have its buffer, too, whose data may be there before this one's are read?
  bool is_overwritten() const { return is_overwritten_; }

  bool advance() override {
    if (!has_come_) return false;
    if (!receive.incoming()) {
      if (!receive.may_be_header()) return true;
      if (!receive.collect(bytes_, source_)) {
        receive.save(bytes_);
        return true;
      }
    }
    return receive.advance();
  }

  bool contest() override {
    is_overwritten_ = is_overwritten_ || receive.incoming() != nullptr;
    receive.place().contest();
    if (!std::exchange(is_followed_, true)) rank_.progress.add(shared_from_this());
    return true;
  }
  bool is_filling() const override {
    const engine::Incoming* const incoming = receive.incoming();
    return !is_over() && has_come_ && (!incoming || incoming->is_in_place());
  }

 private:
  void leave() {
    if (std::exchange(is_claimed_, false)) {
      rank_.in_place.remove(reinterpret_cast<std::uintptr_t>(data_));
    }
  }

  engine::Messaging& rank_;
  std::byte* const data_;
  const std::shared_ptr<const engine::Layout> layout_;
  bool is_watched_ = false;
  bool is_claimed_ = false;
  bool is_followed_ = false;
  bool is_overwritten_ = false;
  bool has_come_ = false;
  std::size_t bytes_ = 0;
  int source_ = trace::any_peer;
};

}  // namespace mpress::loopback
