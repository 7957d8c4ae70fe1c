// What libmpress_cuda.so asks of the CUDA driver itself. It links no driver: the runtime finds it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "memory/device.hpp"

namespace mpress::gpu {

struct Driver {
  decltype(&::cuCtxGetCurrent) get_current;
  decltype(&::cuCtxSetCurrent) set_current;
  decltype(&::cuDevicePrimaryCtxRetain) retain_primary;
  decltype(&::cuDeviceGetName) get_name;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&::cuStreamIsCapturing) is_capturing;
  decltype(&::cuStreamQuery) query_stream;
  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuStreamWaitEvent) wait_event;
  decltype(&::cuEventCreate) create_event;
  decltype(&::cuEventRecord) record_event;
  decltype(&::cuEventQuery) query_event;
  // These may be null.
  CUresult (*get_context_id)(CUcontext, unsigned long long*);  ///< of CUDA 12
  decltype(&::cuStreamWriteValue32) write_value;
  decltype(&::cuStreamWaitValue32) wait_value;
  decltype(&::cuMemGetAddressRange) get_range;
  decltype(&::cuPointerGetAttribute) get_attribute;
#if CUDART_VERSION >= 12050
  decltype(&::cuFuncGetModule) get_module;
  decltype(&::cuModuleGetFunctionCount) count_functions;
  decltype(&::cuModuleEnumerateFunctions) list_functions;
  decltype(&::cuFuncLoad) load_function;
#endif
};

/// Throws CudaError where the driver is missing or too old.
const Driver& driver();

/// Loads all kernels of this library to a device, the first time that it is asked for. What cannot
/// be loaded is left to its first launch.
void load_kernels(int device);

/// Makes the primary context of a device current while it lives, and lets this thread make calls
/// that would spoil another's capture of a graph in global mode. Not memory::DeviceScope: that
/// cannot give a thread without a context its state back, nor one that uses a context of its own.
class ContextScope {
 public:
  explicit ContextScope(int device);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  /// The context that was current before, if that is another; else null.
  CUcontext replaced() const { return changed_ ? before_ : nullptr; }

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace mpress::gpu
