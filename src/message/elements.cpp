// The elements of a message, without gaps.

#include "message/message.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

Status gather_elements(Messaging& messaging, const Message& message,
                       std::optional<Elements>& elements) {
  const ElementType type = message.layout.element.value_or(ElementType::f32);
  Elements found{{type, static_cast<const std::byte*>(message.buffer),
                  message.bytes / element_size(type), message.device, message.behind}};
  if (!message.layout.contiguous && message.device == gpu::host) {
    found.packed = messaging.pool.take(message.bytes);
    if (!found.packed || !message.layout.pack(message.buffer, message.count, message.is_readable,
                                              found.packed.data(), message.bytes)) {
      return Status::ok;
    }
    found.region.data = found.packed.data();
  } else if (!message.layout.contiguous) {
    found.packed = messaging.devices.take(message.device, message.bytes);
    if (!found.packed) return Status::ok;
    if (const Status status = await(messaging, message.device, message.behind); !status.is_ok())
      return status;
    const QueueLease queue = messaging.devices.queue(message.device);
    if (!queue) return refused(messaging, message.device);
    const auto runs = message.layout.runs_of(message.count);
    const Status status =
        messaging.devices.wait(*queue, queue->gather(found.packed.data(), message.buffer, *runs));
    if (!status.is_ok()) return status;
    found.region.data = found.packed.data();
    found.region.behind = nullptr;
  }
  elements = std::move(found);
  return Status::ok;
}

}  // namespace mpress::engine
