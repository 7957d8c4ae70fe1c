#include "link/peer/opened.hpp"

#include "gpu/loaded_gpu.hpp"

namespace mpress::link {

void* Opened::open_new(std::uint32_t number, const SharedBlock& block, int& device,
                       int first_device) {
  if (device == gpu::host) device = first_device;
  const auto row = static_cast<std::size_t>(device);
  if (row >= all_.size()) all_.resize(row + 1);
  std::vector<Mapping>& opened = all_[row];
  if (opened.size() <= number) opened.resize(number + 1);
  Mapping& mapping = opened[number];
  if (!mapping.is_tried) mapping = {gpu::gpu()->open(device, block.handle), true};
  if (mapping.memory || device == first_device) return mapping.memory;
  device = first_device;
  return open_new(number, block, device, first_device);
}

void Opened::close() {
  for (std::size_t device = 0; device < all_.size(); ++device) {
    for (const Mapping& mapping : all_[device]) {
      if (mapping.memory) gpu::gpu()->close(static_cast<int>(device), mapping.memory);
    }
  }
  all_.clear();
}

}  // namespace mpress::link
