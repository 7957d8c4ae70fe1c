#include "message/chunk_send.hpp"

#include <utility>

#include "link/route.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

link::Reservation reservation(const Chunking& cut, std::span<const int> readers, int device,
                              std::size_t room, std::uint64_t operation) {
  trace::Event like = cut.event(trace::Kind::wire, 0, 0);
  like.raw_bytes = 0;
  return {readers, device, cut.chunks(), room, operation, nullptr, like};
}

ChunkSend::ChunkSend(Messaging& messaging, const Message& message, const Spec& spec,
                     const Region& region, std::size_t chunk_bytes)
    : Send(messaging.links.channel.next_operation()), messaging_(messaging), peer_(message.peer) {
  header_.type = region.type;
  header_.count = region.count;
  header_.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes);
  header_.spec = spec;
  route(link::Kind::channel, 0);
  if (spec.codec != Codec::none) subject_ = subject_of(messaging, message, spec.codec);
}

std::uint32_t ChunkSend::number() const {
  return static_cast<std::uint32_t>(messaging_.links.channel.tag_of(operation()));
}

ChunkSend::~ChunkSend() {
  if (is_timed_ && !is_over_) messaging_.timings.drop(number());
}

void ChunkSend::time(const policy::Subject& subject) {
  is_timed_ = messaging_.timings.begin(number(), subject, header_.spec.codec != Codec::none);
}

void ChunkSend::route(link::Kind kind, std::uint32_t first) {
  header_.route = link::Route(number(), kind, first).word();
}

link::Reservation ChunkSend::reservation(int device, std::size_t room,
                                         link::Account* account) const {
  link::Reservation wanted = engine::reservation(cut(), {&peer_, 1}, device, room, operation());
  wanted.account = account;
  wanted.is_timed = is_timed_;
  return wanted;
}

bool ChunkSend::announce() {
  header_memory_ = messaging_.pool.take(wire::min_frame_bytes);
  if (!header_memory_) return false;
  wire::close_frame(header_, messaging_.nonce, header_memory_.data());
  beginnings_.push_back({0, header_memory_.data(), wire::min_frame_bytes});
  return true;
}

void ChunkSend::count_in(trace::Row& row, trace::Span span) {
  row_ = &row;
  span_ = std::move(span);
}

bool ChunkSend::advance(bool waits_for_more) {
  if (!proceed(waits_for_more)) return false;
  trace::add(row_->wire_bytes, sent_bytes());
  span_.add_wire_bytes(sent_bytes());
  is_over_ = true;
  if (is_timed_) messaging_.timings.sent(number(), sent_bytes());
  if (!status().is_ok()) return true;
  trace::add(row_->encode_ns, took_ns());
  if (subject_)
    messaging_.policy.encoded(*subject_, sent_bytes() + wire::min_frame_bytes, took_ns());
  return true;
}

}  // namespace mpress::engine
