// How queues pack and unpack the runs of scattered messages.

#include <algorithm>
#include <limits>
#include <utility>

#include "gpu/cuda/queue.hpp"

namespace mpress::gpu {

using memory::check;

/// Room in pinned memory that no upload under way reads.
PlacedRun* CudaQueue::upload_room(std::size_t count) {
  observe(given_);
  Upload* smaller = nullptr;
  for (Upload& upload : uploads_) {
    if (upload.last_use > done_) continue;
    if (upload.capacity >= count) {
      upload.last_use = given_;
      return upload.runs;
    }
    smaller = &upload;
  }
  const std::size_t capacity = std::max<std::size_t>(4096, count + count / 2);
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, capacity * sizeof(PlacedRun), cudaHostAllocPortable),
        "pinned memory");
  const Upload upload{static_cast<PlacedRun*>(memory), capacity, given_};
  if (smaller) {
    cudaFreeHost(std::exchange(*smaller, upload).runs);
  } else {
    uploads_.push_back(upload);
  }
  return upload.runs;
}

void CudaQueue::move_runs(Direction direction, void* buffer, void* packed, const Runs& runs) {
  if (runs.are_regular()) {
    check(copy_runs(direction, buffer, packed, runs.regular(), stream_), "packing");
    return;
  }
  std::span<const Run> listed = runs.listed();
  if (listed.size() == 1) {
    void* const in_buffer = static_cast<std::byte*>(buffer) + listed[0].offset;
    const bool to_packed = direction == Direction::gather;
    check(cudaMemcpyAsync(to_packed ? packed : in_buffer, to_packed ? in_buffer : packed,
                          listed[0].bytes, cudaMemcpyDefault, stream_),
          "packing");
    return;
  }
  // In parts whose number of runs fits the kernel's index.
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  for (; !listed.empty(); listed = listed.subspan(std::min(most, listed.size()))) {
    const auto part = listed.first(std::min(most, listed.size()));
    PlacedRun* const placed = upload_room(part.size() + 1);
    std::uint32_t count = 0;
    std::uint64_t total = 0;
    for (const Run& run : part) {
      if (run.bytes == 0) continue;
      placed[count++] = {run.offset, total};
      total += run.bytes;
    }
    placed[count] = {0, total};
    if (total == 0) continue;
    const std::size_t bytes = (count + 1) * sizeof(PlacedRun);
    const memory::DeviceBuffer uploaded(device_, bytes, stream_);
    check(cudaMemcpyAsync(uploaded.data(), placed, bytes, cudaMemcpyHostToDevice, stream_),
          "a list of runs");
    check(copy_runs(direction, buffer, packed, reinterpret_cast<PlacedRun*>(uploaded.data()), count,
                    total, stream_),
          "packing");
    packed = static_cast<std::byte*>(packed) + total;
  }
}

}  // namespace mpress::gpu
