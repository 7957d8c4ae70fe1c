#include "pipeline/own_block.hpp"

#include "core/runtime.hpp"

namespace mpress::engine {

bool OwnBlock::encode(const Chunking& cut, const Region& region, memory::Buffer packed,
                      const StagingSlots& staging, LaunchBatch* batch) {
  packed_ = std::move(packed);
  Chunking resolved = cut;
  if (region.device == gpu::host && !resolve(runtime_, region, resolved.spec)) return false;
  return make(resolved, region.device, staging, [&](const Chunking& all, Slots& slots) {
    return make_encoder(runtime_, all, region, slots, staging.link ? batch : nullptr);
  });
}

/// A device finds a relative bound itself, and payloads tell it.
bool OwnBlock::make(const Chunking& cut, int device, const StagingSlots& staging,
                    const MakeEncoder& made_by) {
  cut_ = cut;
  staging_ = staging;
  device_ = device;
  make_chunks();
  for (std::uint64_t chunk = 0; chunk < cut_.chunks(); ++chunk) {
    if (!make_room(chunk, cut_.room())) return false;
  }
  encoder_ = made_by(cut_, *this);
  if (!encoder_) return false;
  is_published_by_device_ = encoder_->is_published_by_device();
  cut_.may_be_elements = !is_published_by_device_;  // what it publishes no host has looked at
  if (cut_.spec.bound == Bound::rel) {
    cut_.spec.bound = Bound::abs;
    cut_.spec.value = 0;
  }
  is_made_.store(false, std::memory_order_release);
  return true;
}

void OwnBlock::hold(const Chunking& cut, const Region& region) {
  cut_ = cut;
  device_ = region.device;
  held_ = region.data;
  make_chunks();
  for (std::uint64_t chunk = 0; chunk < cut_.chunks(); ++chunk) {
    add(chunk, cut_.raw_bytes(chunk), true);
  }
}

bool OwnBlock::advance() {
  if (!is_made_.load(std::memory_order_acquire) && !encode_next()) return false;
  if (!status().is_ok() && is_announced_) fail_staging();
  return true;
}

/// Readers learn of it now.
void OwnBlock::fail_staging() {
  const std::lock_guard making(making_);
  if (!std::exchange(is_staging_over_, true)) staging_.link->fail(staging_.transfer);
}

bool OwnBlock::encode_next() {
  std::unique_lock making(making_, std::try_to_lock);
  if (!making) return false;
  while (encoder_) {
    Made made;
    const gpu::State state = encoder_->next(made);
    if (state == gpu::State::pending) return false;
    if (state == gpu::State::failed) {
      status_.store(encoder_->status());
      end();
      break;
    }
    add(made.first, made.bytes, !made.is_encoded);
    const bool encodes_here = encoder_->encodes_here();
    if (is_whole()) end();
    if (encodes_here) break;  // other operations have their turn between chunks
  }
  return is_made_.load(std::memory_order_acquire);
}

void OwnBlock::end() {
  const std::uint64_t took_ns = encoder_->took_ns();
  encoder_.reset();
  packed_.reset();
  took_ns_.store(took_ns, std::memory_order_relaxed);
  if (status().is_ok() && when_encoded_) when_encoded_(bytes(), took_ns);
  is_made_.store(true, std::memory_order_release);
}

}  // namespace mpress::engine
