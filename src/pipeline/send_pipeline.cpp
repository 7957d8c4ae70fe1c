#include "pipeline/send_pipeline.hpp"

#include <algorithm>
#include <utility>

#include "core/runtime.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

SendPipeline::~SendPipeline() {
  encoder_.reset();  // until no device writes there any more
  if (is_over_) return;
  if (is_announced_) {
    link_.fail(transfer_);
  } else {
    link_.abandon(transfer_);
  }
}

bool SendPipeline::open(const Region& region, LaunchBatch* batch, bool is_driven) {
  is_driven_ = is_driven;
  encoder_ = make_encoder(runtime_, cut_, region, *this, batch);
  return encoder_ != nullptr;
}

void SendPipeline::open(std::shared_ptr<const OpaqueBlock> opaque, bool is_zero_copy,
                        bool is_driven) {
  is_driven_ = is_driven;
  is_announced_ = true;
  if (is_zero_copy) zero_copy_of_ = opaque;
  encoder_ = copying_encoder(runtime_, std::move(opaque), *this, is_zero_copy);
}

std::byte* SendPipeline::place(std::uint64_t chunk, std::size_t bytes) {
  return link_.place(transfer_, chunk, bytes);
}

gpu::Report* SendPipeline::report(std::uint64_t chunk) {
  return link_.devices_publish() ? link_.report(transfer_, chunk) : nullptr;
}

bool SendPipeline::make_first(std::size_t& bytes) {
  const std::uint64_t begin = trace::now_ns();
  if (wait_for_next(*encoder_, first_.emplace()) != gpu::State::done) return false;
  const std::uint64_t took = trace::now_ns() - begin;
  waited_ns_ = took - std::min(took, encoder_->took_ns());
  bytes = first_->bytes;
  return true;
}

bool SendPipeline::advance() {
  while (!is_over_) {
    Made made;
    const gpu::State state = first_ ? gpu::State::done : encoder_->next(made);
    if (state == gpu::State::pending) return false;
    if (state == gpu::State::failed) {
      status_ = encoder_->status();
      fail();
      return true;
    }
    if (first_) made = *first_;
    first_.reset();
    publish(made);
    if (made_ == cut_.chunks()) {
      end();
      link_.release(transfer_);
    } else if (encoder_->encodes_here()) {
      return false;  // other operations have their turn between chunks
    }
  }
  return true;
}

void SendPipeline::publish(const Made& made) {
  sent_bytes_ += made.bytes;
  made_ = made.first + made.chunks;
  if (encoder_->is_published_by_device()) return;
  for (std::uint64_t chunk = made.first; chunk < made_; ++chunk) {
    if (zero_copy_of_) {
      const OpaqueBlock::Chunk there = zero_copy_of_->chunk(chunk);
      runtime_.links.channel.publish_from(transfer_, chunk, there.data, there.bytes, zero_copy_of_);
      continue;
    }
    link_.publish(transfer_, chunk, made.chunks > 1 ? cut_.raw_bytes(chunk) : made.bytes);
  }
}

void SendPipeline::fail() {
  end();
  link_.fail(transfer_);
}

void SendPipeline::end() {
  if (encoder_) took_ns_ = encoder_->took_ns() + waited_ns_;
  encoder_.reset();
  is_over_ = true;
}

}  // namespace mpress::engine
