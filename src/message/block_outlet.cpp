#include "message/block_outlet.hpp"

#include "message/messaging.hpp"

namespace mpress::engine {

BlockOutlet::~BlockOutlet() {
  if (!copies_.empty()) queue_->drain();
  if (!is_over_) link_.fail(transfer_);  // readers may have heard of it
}

bool BlockOutlet::advance() {
  if (is_over_) return true;
  const bool is_made = opaque_->advance();
  publish_copied();
  while (status_.is_ok() && copied_ < opaque_->ready() && may_copy() && copy_next()) {
  }
  if (status_.is_ok()) publish_copied();
  if (published_ == opaque_->cut().chunks()) {
    link_.release(transfer_);
    is_over_ = true;
  } else if (!status_.is_ok() || (is_made && !opaque_->is_whole() && copies_.empty())) {
    fail();
  }
  return is_over_;
}

bool BlockOutlet::may_copy() const {
  if (!link_.is_free(transfer_, copied_)) return false;
  return !is_driven_ || !transfer_.is_on_host ||
         copies_.size() <
             copies_ahead(opaque_->chunk(copied_).bytes, messaging_.chunks.chunk_bytes());
}

/// False where there is no memory for it, or no queue.
bool BlockOutlet::copy_next() {
  const OpaqueBlock::Chunk chunk = opaque_->chunk(copied_);
  if (is_zero_copy_) {
    messaging_.links.channel.publish_from(transfer_, copied_++, chunk.data, chunk.bytes, opaque_);
    published_ = copied_;
    return true;
  }
  std::byte* const place = link_.place(transfer_, copied_, chunk.bytes);
  if (!place) status_ = Status::no_memory;
  if (place && !queue_) {
    queue_ = messaging_.devices.queue(opaque_->device());
    if (!queue_) status_ = refused(messaging_, opaque_->device());
  }
  if (!status_.is_ok()) return false;
  link::Report* const report = link_.devices_publish() ? link_.report(transfer_, copied_) : nullptr;
  std::uint32_t* const flag = report ? &report->sequence : nullptr;
  if (report) report->bytes = chunk.bytes;
  if (transfer_.is_on_host || !transfer_.memory) {
    const bool is_last = copied_ + 1 == opaque_->cut().chunks();
    copies_.push_back(is_last ? queue_->copy(place, chunk.data, chunk.bytes, flag)
                              : queue_->copy_ahead(place, chunk.data, chunk.bytes, flag));
  } else {
    copies_.push_back(queue_->copy_near(place, chunk.data, chunk.bytes, flag));
  }
  ++copied_;
  return true;
}

void BlockOutlet::publish_copied() {
  for (; !copies_.empty(); copies_.pop_front()) {
    const gpu::State state = queue_->query(copies_.front());
    if (state == gpu::State::pending) return;
    if (state == gpu::State::failed) {
      status_ = refused(messaging_, opaque_->device());
      return;
    }
    if (!link_.devices_publish()) {
      link_.publish(transfer_, published_, opaque_->chunk(published_).bytes);
    }
    ++published_;
  }
}

void BlockOutlet::fail() {
  if (!copies_.empty()) queue_->drain();
  copies_.clear();
  link_.fail(transfer_);
  is_over_ = true;
}

}  // namespace mpress::engine
