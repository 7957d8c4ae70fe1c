// How messages that are sent are counted, in statistics and in the timeline.

#include "message/message.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

trace::Row& count(Messaging& messaging, const Message& message, const Departure& departure,
                  trace::Span& span) {
  trace::Key key{trace::Direction::send, message.call.op,  message.peer,
                 departure.codec,        departure.reason, departure.way};
  if (message.device != gpu::host) {
    key.is_on_device = true;
    key.fallback = fallback_of(messaging, message, departure.way, departure.of_peer,
                               departure.codec != Codec::none);
  }
  trace::Row& row = messaging.record.row(key);
  trace::add_message(row, message.bytes, departure.wire_bytes);
  note(row, departure.loss);
  if (!trace::timeline.is_on()) return row;
  span = trace::Span({.begin_ns = departure.begin_ns,
                      .raw_bytes = message.bytes,
                      .wire_bytes = departure.wire_bytes,
                      .message = departure.number,
                      .peer = message.peer,
                      .device = message.device,
                      .kind = trace::Kind::send,
                      .op = message.call.op,
                      .codec = departure.codec,
                      .reason = departure.reason});
  return row;
}

void tell_error(const SendCall& call, double error) {
  double* const largest = call.coding ? call.coding->largest_error : nullptr;
  if (largest) *largest = Outcome::looser(*largest, error);
}

}  // namespace mpress::engine
