#include "message/incoming.hpp"

#include <utility>

#include "link/route.hpp"
#include "message/messaging.hpp"
#include "pipeline/decoder.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

link::Link* Incoming::link_of(Messaging& messaging, const wire::Header& header, int source) {
  if (!messaging.chunks.is_open() || source == trace::any_peer) return nullptr;
  const link::Route route(header.route);
  link::Link* const link = messaging.links.find(route.kind);
  return link && link->knows(source, route, header.chunks()) ? link : nullptr;
}

std::unique_ptr<Incoming> Incoming::from_link(Messaging& messaging, const wire::Header& header,
                                              int source, const Destination& to,
                                              std::uint64_t begin_ns) {
  const link::Route route(header.route);
  link::Link& link = messaging.links.of(route.kind);
  const bool is_near = to.device != gpu::host && link.lands_on(source, route) == to.device;
  const link::Attributes* const about = link::attributes_of(route.kind);
  From from = is_near ? From::near : about && !about->is_through_host ? From::device : From::host;
  if (!about && messaging.hands_devices_to_mpi()) from = From::rooms;
  auto incoming = make(messaging, Chunking::of(header, source), to, from);
  if (incoming) incoming->pipeline_->open(link, route, begin_ns);
  return incoming;
}

std::unique_ptr<Incoming> Incoming::from_frame(Messaging& messaging, const wire::Header& header,
                                               int source, const Destination& to,
                                               const std::byte* payload) {
  auto incoming = make(messaging, Chunking::of(header, source), to, From::host);
  if (incoming) incoming->pipeline_->open(payload, header.payload_bytes);
  return incoming;
}

/// Finds room for the elements, and who decodes them.
std::unique_ptr<Incoming> Incoming::make(Messaging& messaging, const Chunking& cut,
                                         const Destination& to, From from) {
  std::unique_ptr<Incoming> incoming(new Incoming);
  memory::Buffer& packed = incoming->packed_;
  std::unique_ptr<Decoder> decoder;
  const bool is_left = to.kept_in && to.is_kept_alone && cut.encodes();
  const bool is_direct =
      is_left || (to.takes_elements && is_aligned(to.buffer, to.device, cut.type));
  if (is_left) {
    decoder = leaving_decoder(messaging, cut, *to.kept_in, to.device, from);
  } else if (to.device != gpu::host) {
    if (!is_direct) packed = messaging.devices.take(to.device, cut.bytes());
    // What is kept is decoded from there.
    const bool is_kept_near = to.kept_in && cut.encodes() && from != From::rooms;
    if (is_direct || packed) {
      decoder = device_decoder(messaging, cut, to.device, is_direct ? to.buffer : packed.data(),
                               is_kept_near ? From::near : from, is_direct ? to.behind : nullptr);
    }
  }
  if (!decoder) {  // into host memory, as a device without memory to spare has it, too
    const bool is_in_buffer = is_direct && to.device == gpu::host;
    if (!is_in_buffer) packed = messaging.pool.take(cut.bytes());
    if (!is_in_buffer && !packed) return nullptr;
    decoder = host_decoder(messaging, cut, is_in_buffer ? to.buffer : packed.data());
  }
  incoming->pipeline_ =
      std::make_unique<ReceivePipeline>(messaging, cut, std::move(decoder), to.device);
  if (to.kept_in) incoming->pipeline_->keep_in(to.kept_in, is_left);
  return incoming;
}

}  // namespace mpress::engine
