#include "message/block_decode.hpp"

#include <utility>

#include "message/messaging.hpp"

namespace mpress::engine {

BlockDecode::BlockDecode(Messaging& messaging, const OpaqueBlock& opaque, void* data,
                         std::int64_t count, std::shared_ptr<const Layout> layout)
    : messaging_(messaging), layout_(std::move(layout)), buffer_(messaging) {
  if (!layout_) {
    status_ = Status::copy_failed;
    return;
  }
  buffer_.describe(data, count, layout_.get(), true);
  buffer_.locate();
  status_ = open(opaque);
}

Status BlockDecode::open(const OpaqueBlock& opaque) {
  const Chunking& cut = opaque.cut();
  const int device = buffer_.device();
  const bool is_on_device = device != gpu::host;
  std::byte* elements = buffer_.data();
  if (!buffer_.destination(false).takes_elements || !is_aligned(elements, device, cut.type)) {
    packed_ = is_on_device ? messaging_.devices.take(device, cut.bytes())
                           : messaging_.pool.take(cut.bytes());
    if (!packed_) return Status::no_memory;
    elements = packed_.data();
  }
  const From from = opaque.device() == device ? From::near : From::host;
  auto decoder = is_on_device ? device_decoder(messaging_, cut, device, elements, from)
                              : host_decoder(messaging_, cut, elements);
  if (!decoder) return is_on_device ? refused(messaging_, device) : Status::no_memory;
  pipeline_.emplace(messaging_, cut, std::move(decoder), device);
  pipeline_->open(opaque);
  return Status::ok;
}

bool BlockDecode::advance() {
  if (!pipeline_) return true;
  if (!pipeline_->advance()) return false;
  status_ = pipeline_->status();
  if (status_.is_ok() && packed_) {
    status_ = buffer_.lay_out(packed_.data(), pipeline_->cut().bytes());
  }
  pipeline_.reset();
  return true;
}

}  // namespace mpress::engine
