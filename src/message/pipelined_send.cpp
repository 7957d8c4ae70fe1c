// Chunks in slots of a link: encoded there, or copied.

#include <algorithm>

#include "gpu/codec_queue.hpp"
#include "message/chunk_send.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "pipeline/send_pipeline.hpp"
#include "policy/chunks.hpp"

namespace mpress::engine {
namespace {

class PipelinedSend final : public ChunkSend {
 public:
  using ChunkSend::ChunkSend;

  bool plan_by_channel(Elements& elements, const SendCall& call);
  bool plan_by_link(const link::Attributes& about, const Spec& spec, Elements& elements,
                    const SendCall& call);

  trace::Way way() const override { return link::way_by(link::Route(header_.route).kind); }
  bool needs_host() const override { return pipeline_->needs_host(); }
  Status status() const override { return pipeline_->status(); }

 private:
  std::size_t sent_bytes() const override { return pipeline_->sent_bytes(); }
  bool proceed(bool) override { return pipeline_->advance(); }
  bool fill_slots(link::Link& link, link::Transfer& transfer, const Spec& spec, Elements& elements,
                  const SendCall& call);
  Chunking leave_bound_to_payloads(const Spec& spec);
  std::uint64_t took_ns() const override { return resolving_ns_ + pipeline_->took_ns(); }

  std::uint64_t resolving_ns_ = 0;
  memory::Buffer packed_;
  std::optional<SendPipeline> pipeline_;
};

/// How a device encodes it that finds the range of the elements itself: the header does not wait
/// for that, and payloads tell the bound.
Chunking PipelinedSend::leave_bound_to_payloads(const Spec& spec) {
  Chunking all = cut();
  all.spec = spec;
  if (spec.bound == Bound::rel) {
    header_.spec.bound = Bound::abs;
    header_.spec.value = 0;
  }
  return all;
}

bool PipelinedSend::plan_by_channel(Elements& elements, const SendCall& call) {
  const Region& region = elements.region;
  link::Link& link = messaging_.links.channel;
  link::Transfer transfer;
  if (!link.reserve(reservation(region.device, cut().room(), &messaging_.links.held_for_channel),
                    transfer)) {
    return false;
  }
  if (transfer.is_near) {
    // The header is on its way while the device encodes.
    return fill_slots(link, transfer, header_.spec, elements, call);
  }
  const std::uint64_t begin = trace::now_ns();
  const bool is_resolved = resolve(messaging_, region, header_.spec);
  resolving_ns_ = trace::now_ns() - begin;
  pipeline_.emplace(messaging_, link, transfer, cut());
  // What a device refuses is an error of the call while nothing is announced.
  std::size_t first_bytes = 0;
  if (!is_resolved || !pipeline_->open(region) || !pipeline_->make_first(first_bytes)) return false;
  // The header must not make the message larger than it was.
  if (cut().encodes() && region.device == gpu::host &&
      first_bytes + wire::min_frame_bytes > header_.chunk_bytes) {
    return false;
  }
  route(link::Kind::channel, transfer.first);
  packed_ = std::move(elements.packed);
  return true;
}

bool PipelinedSend::plan_by_link(const link::Attributes& about, const Spec& spec,
                                 Elements& elements, const SendCall& call) {
  const bool encodes = cut().encodes();
  if (header_.chunks() > gpu::CodecQueue::most_pieces && encodes) return false;
  link::Link& link = messaging_.links.of(about.kind);
  link::Transfer transfer;
  link::Reservation wanted = reservation(elements.region.device, cut().room(), nullptr);
  wanted.may_be_at_reader = encodes;
  if (about.is_through_host && !encodes) {
    wanted.window = window_chunks(messaging_, cut().chunk_bytes, call.driven);
  }
  return link.reserve(wanted, transfer) && fill_slots(link, transfer, spec, elements, call);
}

/// Gives the device, or the call's batch, its work, in slots that its queues write to.
bool PipelinedSend::fill_slots(link::Link& link, link::Transfer& transfer, const Spec& spec,
                               Elements& elements, const SendCall& call) {
  route(link.kind(), transfer.first);
  const Chunking all = leave_bound_to_payloads(spec);
  if (!all.encodes()) transfer.raw_bytes = all.bytes();
  link.lay_out(transfer);
  pipeline_.emplace(messaging_, link, transfer, all);
  if (!pipeline_->open(elements.region, call.batch, bool(call.driven))) return false;
  // A host that publishes looks at payloads first, and readers by MPI expect that.
  header_.may_be_elements =
      all.encodes() && link.kind() != link::Kind::channel && pipeline_->needs_host();
  packed_ = std::move(elements.packed);
  return true;
}

}  // namespace

std::size_t whole_chunk(std::size_t bytes) {
  return std::min((bytes + 7) / 8 * 8, wire::max_chunk_bytes);
}

namespace {

/// A long message in device memory takes longer chunks: a device works on a short one alone no
/// faster.
std::size_t lengthened(std::size_t base, const Message& message) {
  if (message.device == gpu::host) return base;
  const std::size_t bases = message.bytes / base;
  const std::size_t factor = bases >= 32 ? 4 : bases >= 8 ? 2 : 1;
  return std::min(factor * base, wire::max_chunk_bytes);
}

/// A raw message that is timed: chunks are few, and MPI moves several at once.
std::size_t timed_chunk_bytes(std::size_t bytes) {
  constexpr std::size_t most = 16;
  constexpr std::size_t least = policy::LinkModel::least_timed_bytes / 2;
  return std::clamp((bytes / most + 4095) / 4096 * 4096, least, wire::max_chunk_bytes);
}

}  // namespace

std::size_t channel_chunk_bytes(const Messaging& messaging, const Message& message) {
  if (!messaging.chunks.is_open()) return 0;
  const std::size_t usual =
      message.device == gpu::host
          ? messaging.chunks.chunk_bytes()
          : messaging.chunks.device_chunk_bytes(messaging.endpoints.peer_of(message.peer));
  const std::size_t bytes = message.comm.hints.chunk(usual);
  // The receiver must not take it for one that comes in one piece.
  return bytes == 0 ? 0 : std::max(bytes, messaging.chunks.least_chunk_bytes());
}

bool leaves_device(const Messaging& messaging, const Message& message) {
  return message.device != gpu::host && messaging.hands_devices_to_mpi() &&
         message.bytes >= messaging.links.least_bytes_between_devices &&
         channel_chunk_bytes(messaging, message) > 0;
}

namespace {

/// Of a raw message through memory of the host, so many bytes are on their way at a time; 0: all.
std::size_t window_bytes(const Messaging& messaging, Driven driven) {
  return driven ? messaging.host_window / driven.of_host : 0;
}

}  // namespace

std::size_t chunk_bytes_by(const link::Attributes& link, const Messaging& messaging,
                           const Message& message, bool encodes) {
  const std::size_t base = messaging.chunks.chunk_bytes();
  const std::size_t whole = whole_chunk(message.bytes);
  if (!messaging.chunks.is_open()) return whole;
  if (!encodes) {
    const std::size_t window = window_bytes(messaging, message.call.driven);
    return std::min(policy::raw_chunk(link, message.bytes, base, window), whole);
  }
  if (!messaging.chunks.cuts(message.bytes)) return whole;
  return std::min(policy::encoded_chunk(link, message.bytes, base), whole);
}

std::size_t window_chunks(const Messaging& messaging, std::size_t chunk_bytes, Driven driven) {
  if (!driven) return 0;
  // One is read while the next is copied, which may be another message's.
  const std::size_t least = driven.of_rank > 1 ? 1 : 2;
  return std::max(window_bytes(messaging, driven) / chunk_bytes, least);
}

std::size_t block_chunk_bytes(const Messaging& messaging, const Message& message, link::Kind kind,
                              bool encodes) {
  const link::Attributes* const link = link::attributes_of(kind);
  if (!link && !is_cut(messaging, message)) return message.bytes;
  const std::size_t chunk_bytes =
      link ? chunk_bytes_by(*link, messaging, message, encodes)
           : lengthened(channel_chunk_bytes(messaging, message), message);
  // A device takes all of them in one launch.
  const std::size_t least =
      (message.bytes + gpu::CodecQueue::most_pieces - 1) / gpu::CodecQueue::most_pieces;
  return std::min(std::max(chunk_bytes, whole_chunk(least)), message.bytes);
}

std::unique_ptr<ChunkSend> send_by_channel(Messaging& messaging, const Message& message,
                                           const Choice& choice, Elements& elements) {
  const bool is_raw = choice.timing == policy::Timing::raw;
  const std::size_t base = channel_chunk_bytes(messaging, message);
  std::size_t chunk_bytes = is_raw ? timed_chunk_bytes(message.bytes) : lengthened(base, message);
  if (choice.spec.codec != Codec::none && leaves_device(messaging, message)) {
    chunk_bytes = std::min(policy::device_chunk(message.bytes, base), wire::max_chunk_bytes);
  }
  auto send = std::make_unique<PipelinedSend>(messaging, message, choice.spec, elements.region,
                                              chunk_bytes);
  if (choice.timing != policy::Timing::none) send->time(*choice.subject);
  if (!send->plan_by_channel(elements, message.call)) return nullptr;
  return send;
}

std::unique_ptr<ChunkSend> send_by_link(Messaging& messaging, const Message& message,
                                        const Spec& spec, Elements& elements,
                                        const link::Attributes& about) {
  const std::size_t chunk_bytes =
      chunk_bytes_by(about, messaging, message, spec.codec != Codec::none);
  auto send =
      std::make_unique<PipelinedSend>(messaging, message, spec, elements.region, chunk_bytes);
  if (!send->plan_by_link(about, spec, elements, message.call)) return nullptr;
  return send;
}

}  // namespace mpress::engine
