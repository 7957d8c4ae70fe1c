#include "gpu/cuda_driver.hpp"

#include <mutex>
#include <vector>

namespace mpress::gpu {
namespace {

template <class Function>
void find(const char* name, unsigned version, Function*& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
#else
  static_cast<void>(version);
  const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  memory::check(code, name);
  function = result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(found) : nullptr;
}

Driver find_driver() {
  Driver driver{};
  find("cuCtxGetCurrent", 4000, driver.get_current);
  find("cuCtxSetCurrent", 4000, driver.set_current);
  find("cuDevicePrimaryCtxRetain", 7000, driver.retain_primary);
  find("cuDeviceGetName", 2000, driver.get_name);
  find("cuStreamWriteValue32", 11070, driver.write_value);
  if (!driver.get_current || !driver.set_current || !driver.retain_primary || !driver.get_name) {
    throw memory::CudaError("the CUDA driver", cudaErrorInsufficientDriver);
  }
  return driver;
}

/// Kept until the process ends, as the runtime does.
CUcontext primary_context(int device) {
  static std::mutex mutex;
  static auto* const contexts = new std::vector<CUcontext>;
  std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device);
  if (index >= contexts->size()) contexts->resize(index + 1);
  CUcontext& context = (*contexts)[index];
  if (!context && driver().retain_primary(&context, device) != CUDA_SUCCESS) {
    context = nullptr;
    throw memory::CudaError("the context of a device", cudaErrorDevicesUnavailable);
  }
  return context;
}

}  // namespace

const Driver& driver() {
  static const Driver found = find_driver();
  return found;
}

ContextScope::ContextScope(int device) {
  const CUcontext wanted = primary_context(device);
  if (driver().get_current(&before_) != CUDA_SUCCESS) before_ = nullptr;
  if (before_ != wanted) {
    if (driver().set_current(wanted) != CUDA_SUCCESS) {
      throw memory::CudaError("making a device current", cudaErrorDevicesUnavailable);
    }
    changed_ = true;
  }
  cudaThreadExchangeStreamCaptureMode(&mode_);
}

ContextScope::~ContextScope() {
  cudaThreadExchangeStreamCaptureMode(&mode_);
  if (changed_) driver().set_current(before_);
}

}  // namespace mpress::gpu
