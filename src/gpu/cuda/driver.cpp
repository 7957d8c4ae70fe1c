#include "gpu/cuda/driver.hpp"

#include <mutex>
#include <vector>

#include "codec/cuda/unit.hpp"

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
  find("cuThreadExchangeStreamCaptureMode", 10010, driver.exchange_capture_mode);
  find("cuStreamIsCapturing", 10000, driver.is_capturing);
  find("cuStreamQuery", 2000, driver.query_stream);
  find("cuStreamCreate", 2000, driver.create_stream);
  find("cuStreamWaitEvent", 3020, driver.wait_event);
  find("cuEventCreate", 2000, driver.create_event);
  find("cuEventRecord", 2000, driver.record_event);
  find("cuEventQuery", 2000, driver.query_event);
  find("cuCtxGetId", 12000, driver.get_context_id);
  find("cuStreamWriteValue32", 11070, driver.write_value);
  find("cuStreamWaitValue32", 11070, driver.wait_value);
  find("cuMemGetAddressRange", 3020, driver.get_range);
  find("cuPointerGetAttribute", 4000, driver.get_attribute);
#if CUDART_VERSION >= 12050
  find("cuFuncGetModule", 11000, driver.get_module);
  find("cuModuleGetFunctionCount", 12040, driver.count_functions);
  find("cuModuleEnumerateFunctions", 12040, driver.list_functions);
  find("cuFuncLoad", 12040, driver.load_function);
#endif
  if (!driver.get_current || !driver.set_current || !driver.retain_primary || !driver.get_name ||
      !driver.exchange_capture_mode || !driver.is_capturing || !driver.query_stream ||
      !driver.create_stream || !driver.wait_event || !driver.create_event || !driver.record_event ||
      !driver.query_event) {
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

/// To the current device: those of the module that has this one.
void load_unit([[maybe_unused]] const void* kernel) {
#if CUDART_VERSION >= 12050
  const Driver& cuda = driver();
  if (!cuda.get_module || !cuda.count_functions || !cuda.list_functions || !cuda.load_function) {
    return;
  }
  cudaFunction_t function = nullptr;
  CUmodule module = nullptr;
  unsigned count = 0;
  if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess ||
      cuda.get_module(&module, function) != CUDA_SUCCESS ||
      cuda.count_functions(&count, module) != CUDA_SUCCESS) {
    return;
  }
  std::vector<CUfunction> functions(count);
  if (cuda.list_functions(functions.data(), count, module) != CUDA_SUCCESS) return;
  for (CUfunction each : functions) cuda.load_function(each);
#endif
}

}  // namespace

void load_kernels(int device) {
  static std::mutex mutex;
  static auto* const loaded = new std::vector<bool>;
  std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device);
  if (index >= loaded->size()) loaded->resize(index + 1);
  if ((*loaded)[index]) return;
  (*loaded)[index] = true;
  const ContextScope scope(device);
  for (auto* unit = codec::cuda::CudaUnit::first; unit; unit = unit->next) load_unit(unit->kernel);
  cudaGetLastError();
}

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
  driver().exchange_capture_mode(&mode_);
}

ContextScope::~ContextScope() {
  driver().exchange_capture_mode(&mode_);
  if (changed_) driver().set_current(before_);
}

}  // namespace mpress::gpu
