// Zero copy: the data is offered to its receiver where the program has it.

#include <optional>
#include <string>
#include <utility>

#include "message/chunk_send.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "pipeline/send_pipeline.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class OfferedSend final : public ChunkSend {
 public:
  using ChunkSend::ChunkSend;
  ~OfferedSend() override {
    pipeline_.reset();
    if (holds_transfer_) link_.abandon(transfer_);
  }

  bool plan(const Elements& elements);

  trace::Way way() const override {
    return transfer_.memory || is_offered_ ? trace::Way::peer : trace::Way::chunks;
  }
  trace::Fallback fallback() const override {
    return is_copied_ ? trace::Fallback::not_shareable : trace::Fallback::none;
  }
  bool needs_host() const override { return !is_offered_ && pipeline_ && pipeline_->needs_host(); }
  bool is_offered() const override { return is_offered_; }
  Status status() const override { return status_; }

 private:
  std::size_t sent_bytes() const override { return sent_bytes_; }
  bool proceed(bool waits_for_more) override;
  bool advance_offer(bool waits_for_more);
  void end(Status status, std::size_t sent_bytes);
  bool open_by_channel();
  bool open_slots();
  std::uint64_t took_ns() const override { return pipeline_ ? pipeline_->took_ns() : 0; }

  link::PeerLink& peer_link_ = messaging_.links.peer;
  link::Link& link_ = peer_link_;
  link::Offers& offers_ = peer_link_.offers();
  link::Transfer transfer_;
  Region region_{};
  bool holds_transfer_ = false;
  bool is_offered_ = false;
  bool is_copied_ = false;  ///< it cannot be, as its memory is
  bool is_over_ = false;
  std::uint64_t began_ns_ = 0;  ///< 0: nobody has waited yet
  std::uint64_t looks_ = 0;     ///< at what the receiver does
  Status status_;
  std::size_t sent_bytes_ = 0;
  std::optional<SendPipeline> pipeline_;  ///< of what is not offered any more
};

/// May a message for which the link has no memory end as chunks by MPI? Those take the host's; one
/// that is longer than the limit may, but not when others hold so much already: a sender is not to
/// run ahead of its receiver without end.
bool may_go_by_channel(const Messaging& messaging) {
  return messaging.chunks.is_open() && messaging.links.held_for_channel.has_room(0);
}

bool OfferedSend::plan(const Elements& elements) {
  region_ = elements.region;
  const link::Reservation wanted = reservation(region_.device, cut().room(), nullptr);
  if (!link_.reserve(wanted, transfer_) &&
      !(may_go_by_channel(messaging_) &&
        peer_link_.reserve_bare(peer_, wanted.chunks, operation(), transfer_))) {
    return false;
  }
  holds_transfer_ = true;
  transfer_.raw_bytes = region_.bytes();
  route(link::Kind::peer, transfer_.first);
  const link::Offers::Exposure exposure =
      offers_.expose(transfer_, peer_, region_.device, region_.data, region_.bytes());
  is_offered_ = exposure == link::Offers::Exposure::offered;
  is_copied_ = exposure == link::Offers::Exposure::impossible;
  if (is_offered_) return true;
  if (!transfer_.memory) return offers_.introduce(transfer_) && open_by_channel();
  link_.lay_out(transfer_);
  return open_slots();
}

/// The chunks come by MPI, of which the header says the tag.
bool OfferedSend::open_by_channel() {
  link::Transfer transfer;
  link::Reservation wanted =
      reservation(region_.device, cut().room(), &messaging_.links.held_for_channel);
  wanted.may_exceed = true;
  link::Link& channel = messaging_.links.channel;
  if (!channel.reserve(wanted, transfer)) return false;
  pipeline_.emplace(messaging_, channel, transfer, cut());
  if (pipeline_->open(region_)) return true;
  pipeline_.reset();
  return false;
}

bool OfferedSend::open_slots() {
  holds_transfer_ = false;
  pipeline_.emplace(messaging_, link_, transfer_, cut());
  return pipeline_->open(region_);
}

bool OfferedSend::proceed(bool waits_for_more) {
  if (is_offered_ && !advance_offer(waits_for_more)) return false;
  if (is_over_) return true;
  if (!pipeline_->advance()) return false;
  end(pipeline_->status(), pipeline_->sent_bytes());
  if (std::exchange(holds_transfer_, false)) link_.release(transfer_);
  return true;
}

void OfferedSend::end(Status status, std::size_t sent_bytes) {
  status_ = status;
  sent_bytes_ = sent_bytes;
  is_over_ = true;
}

/// True once the offered data has been taken, or is not offered any more.
bool OfferedSend::advance_offer(bool waits_for_more) {
  switch (offers_.look(transfer_, peer_)) {
    case link::Offers::State::open:
      if (waits_for_more) return false;
      if (began_ns_ == 0) began_ns_ = trace::now_ns();
      if (trace::now_ns() - began_ns_ < offers_.stands_ns(transfer_, region_.bytes())) return false;
      if (!transfer_.memory && !pipeline_ && !open_by_channel()) {
        if (!link_.fail(transfer_)) return false;
        end(refused(messaging_, region_.device), 0);
        break;
      }
      if (!offers_.withdraw(transfer_, peer_)) return false;
      is_offered_ = false;
      if (!transfer_.memory || open_slots()) return true;
      pipeline_->fail();
      end(refused(messaging_, region_.device), 0);
      return true;
    case link::Offers::State::getting:
      if (!peer_link_.has_ended(peer_, looks_)) return false;
      trace::say("rank " + std::to_string(messaging_.rank) + ": rank " + std::to_string(peer_) +
                 " ended while it took a message");
      end(Status::device_failed, 0);
      break;
    case link::Offers::State::returned: end(Status::ok, region_.bytes()); break;
  }
  is_offered_ = false;
  holds_transfer_ = false;
  pipeline_.reset();
  return true;
}

}  // namespace

std::unique_ptr<ChunkSend> send_by_offer(Messaging& messaging, const Message& message,
                                         Elements& elements) {
  auto send = std::make_unique<OfferedSend>(
      messaging, message, no_codec(), elements.region,
      chunk_bytes_by(*link::attributes_of(link::Kind::peer), messaging, message, false));
  if (!send->plan(elements)) return nullptr;
  return send;
}

}  // namespace mpress::engine
