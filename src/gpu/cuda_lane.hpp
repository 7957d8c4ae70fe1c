// A lane of a CUDA device: a stream of its own, whose work reports into mapped host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <vector>

#include "gpu/gather.hpp"
#include "gpu/gpu.hpp"
#include "memory/device.hpp"

namespace mpress::gpu {

class CudaLane final : public Lane {
 public:
  /// Throws memory::CudaError where the device refuses. No other call throws.
  CudaLane(int device, Priority priority);
  ~CudaLane() override;

  using Lane::copy;
  Ticket copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) override;
  Ticket copy_near(void* to, const void* from, std::size_t bytes) override;
  Ticket gather(void* packed, const void* buffer, std::span<const Run> runs) override;
  Ticket scatter(void* buffer, const void* packed, std::span<const Run> runs) override;
  Spec resolve(const Spec& spec, ElementType type, const void* elements,
               std::size_t count) override;
  using Lane::encode;
  Ticket encode(const Spec& spec, ElementType type, std::span<const Piece> pieces) override;
  Ticket decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                void* elements, std::size_t count) override;
  State look(Ticket ticket, Outcome* outcome) override;
  void drain() override;
  int device() const override { return device_; }
  Priority priority() const override { return priority_; }

 private:
  /// Written by the device, read by the host.
  struct Mapped {
    std::uint32_t done;  ///< low bits of the last ticket whose work was no codec's
    double width;        ///< what resolve() asked for
  };

  /// Pinned memory from which a list of runs is uploaded.
  struct Upload {
    PlacedRun* runs;
    std::size_t capacity;
    Ticket last_use;
  };

  template <class Enqueue>
  Ticket give(Enqueue enqueue, std::size_t pieces = 1);
  codec::cuda::Result* report_of(Ticket ticket);
  void write(std::uint32_t* flag, std::uint32_t value);
  void mark(Ticket ticket);
  void move_runs(Direction direction, void* buffer, void* packed, std::span<const Run> runs);
  PlacedRun* upload_room(std::size_t count);
  void* workspace(std::size_t bytes);
  void fail(Ticket ticket);
  bool is_failed(Ticket ticket) const;
  void observe(Ticket ticket);

  const int device_;
  const Priority priority_;
  cudaStream_t stream_ = nullptr;
  Mapped* mapped_ = nullptr;
  Mapped* mapped_device_ = nullptr;                 ///< as the device sees it
  memory::DeviceBuffer counter_;                    ///< zero; of copy_near()
  memory::DeviceBuffer workspace_;                  ///< zero between calls
  std::map<Ticket, memory::PinnedResult> reports_;  ///< of codecs, until they are asked for
  std::vector<Upload> uploads_;

  Ticket given_ = 0;
  Ticket done_ = 0;
  Ticket failed_from_ = 0;  ///< the first that failed; 0: none
  Ticket failed_to_ = 0;    ///< the last, once the lane works again
  std::uint32_t looks_ = 0;
};

}  // namespace mpress::gpu
