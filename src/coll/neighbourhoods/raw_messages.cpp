#include "coll/neighbourhoods/raw_messages.hpp"

#include <algorithm>

#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

void RawMessages::start(std::size_t receives, std::size_t sends) {
  receives_.clear();
  receives_.resize(receives);
  sends_.clear();
  sends_.resize(sends);
  come_ = sent_ = 0;
  status_ = Status::ok;
}

void RawMessages::receive(std::size_t number, const BlockData& place, int from,
                          bool may_be_shorter) {
  if (place.bytes == 0) return;
  receives_[number].expected = may_be_shorter ? 0 : place.bytes;
  receives_[number].envelope =
      envelopes_->receive(place, from, {.called = called_, .content = Envelopes::Content::bytes});
}

void RawMessages::receive_likely_raw(std::size_t number, const BlockData& place, int from,
                                     Outcome& outcome) {
  if (place.bytes == 0) return;
  receives_[number].envelope = envelopes_->receive(
      place, from,
      {.called = called_, .content = Envelopes::Content::likely_raw_block, .outcome = &outcome});
}

void RawMessages::send(std::size_t number, const BlockData& data, int to) {
  if (data.bytes > 0) sends_[number] = envelopes_->send(data, to);
}

void RawMessages::send_nothing(std::size_t number, int to) {
  sends_[number] = envelopes_->send_nothing(to);
}

void RawMessages::count(trace::Direction direction, int peer, std::size_t raw_bytes,
                        std::size_t wire_bytes, Codec codec, trace::Reason reason) {
  if (raw_bytes == 0) return;
  const trace::Key key{direction, called_, team_.world_rank(peer), codec, reason};
  trace::add_message(messaging_.record.row(key), raw_bytes, wire_bytes);
}

/// Lets one proceed; returns whether it is complete.
bool RawMessages::look(Receive& receive) {
  if (!receive.envelope) return true;
  envelopes_->end_round();
  if (!receive.envelope->advance()) return false;
  const Status status = receive.envelope->status();
  note(status);
  if (status.is_ok()) {
    receive.bytes = receive.envelope->received_bytes();
    if (receive.expected > 0 && receive.bytes != receive.expected) note(Status::truncated);
  }
  receive.envelope.reset();
  return true;
}

bool RawMessages::pass_next() {
  std::unique_ptr<Envelope>& one = sends_[sent_];
  if (one) {
    envelopes_->end_round();
    if (!one->advance()) return false;
    note(one->status());
    one.reset();
  }
  ++sent_;
  return true;
}

// Each is looked at in a round of its own: MPI may take in one message at a time.

bool RawMessages::have_come(std::size_t most) {
  bool have_all = true;
  for (std::size_t i = come_; i < most; ++i) {
    if (look(receives_[i])) {
      if (have_all) come_ = i + 1;
      continue;
    }
    have_all = false;
    if (!receives_[i].envelope->has_begun()) break;  // data that follow headers come at once
  }
  return have_all;
}

bool RawMessages::are_sent() {
  while (sent_ < sends_.size()) {
    if (!pass_next()) return false;
  }
  return true;
}

bool RawMessages::may_wait() const {
  return messaging_.progress.idle() && !messaging_.expects_data();
}

bool RawMessages::wait_for(std::size_t most) {
  if (come_ >= most || !may_wait()) return false;
  bool has_waited = false;
  while (come_ < most) {
    Envelope* const next = receives_[come_].envelope.get();
    if (next && next->can_be_waited_for()) {
      envelopes_->wait(*next);
      has_waited = true;
    }
    if (!look(receives_[come_])) break;
    ++come_;
  }
  return has_waited;
}

bool RawMessages::wait_until_sent() {
  const bool has_all = come_ == receives_.size();
  if (!has_all || sent_ == sends_.size() || !may_wait()) return false;
  while (sent_ < sends_.size()) {
    Envelope* const next = sends_[sent_].get();
    if (next && next->can_be_waited_for()) envelopes_->wait(*next);
    if (!pass_next()) return false;
  }
  return true;
}

bool RawMessages::needs_host() const {
  return std::ranges::any_of(
      receives_, [](const Receive& one) { return one.envelope && one.envelope->needs_host(); });
}

}  // namespace mpress::engine
