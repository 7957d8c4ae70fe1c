// What streams of the program's hold at a moment: events recorded behind it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>

#include "gpu/gpu.hpp"

namespace mpress::gpu {

class Marks;

class CudaPriorWork final : public PriorWork {
 public:
  explicit CudaPriorWork(int device) : device_(device) {}
  CudaPriorWork(const CudaPriorWork&) = delete;
  CudaPriorWork& operator=(const CudaPriorWork&) = delete;
  ~CudaPriorWork() override;

  State query() const override;

  /// Lets `stream` wait for it. Throws memory::CudaError.
  void hold_up(cudaStream_t stream) const;

  /// Adds what `stream` holds, one of the current context, of which `marks` are. Throws
  /// memory::CudaError.
  void add(Marks& marks, CUstream stream);

 private:
  struct Mark {
    Marks* from = nullptr;
    CUevent event = nullptr;
  };
  const int device_;  ///< whose context questions are asked in
  std::array<Mark, 4> marks_;
  std::size_t number_ = 0;
};

/// Is this stream, of the current context, being captured into a graph? Throws memory::CudaError.
bool is_captured(cudaStream_t stream);

/// Makes what default_work() needs of a device: kernels of the program's may run later, for which
/// the making of a stream may wait.
void prepare_default_work(int device);

// As Gpu has them. No error is left behind.
std::shared_ptr<const PriorWork> work_of(int device, void* stream);
std::shared_ptr<const PriorWork> default_work(int device);

}  // namespace mpress::gpu
