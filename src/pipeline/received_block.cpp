#include "pipeline/received_block.hpp"

namespace mpress::engine {

void ReceivedBlock::begin(const Chunking& cut, int device, bool is_homeless) {
  cut_ = cut;
  device_ = device;
  if (find_home_ && !is_homeless) home_ = find_home_(cut_, device_);
  if (home_.link) {
    is_published_by_device_ = true;
    is_made_.store(false, std::memory_order_relaxed);
  } else {
    cut_.may_be_elements = true;
  }
  make_chunks();
}

std::byte* ReceivedBlock::place_for(std::uint64_t chunk, std::size_t bytes) {
  return make_room(chunk, bytes) ? room_of(chunk) : nullptr;
}

std::uint32_t* ReceivedBlock::flag_for(std::uint64_t chunk, std::size_t bytes) {
  gpu::Report* const published = report_of(chunk);
  if (!published) return nullptr;
  published->bytes = bytes;
  return &published->sequence;
}

void ReceivedBlock::note(std::uint64_t chunk, std::size_t bytes, bool is_elements) {
  add(chunk, bytes, is_elements);
  if (is_whole()) is_made_.store(true, std::memory_order_release);
}

void ReceivedBlock::give_up(Status status) {
  status_.store(status);
  is_made_.store(true, std::memory_order_release);
}

}  // namespace mpress::engine
