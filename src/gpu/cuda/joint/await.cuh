// How kernels wait for what another member's kernel is to bring, and for how long.
#pragma once

#include <cstdint>

namespace mpress::gpu {

/// Hosts give work again to kernels that found nothing, so this need only be much more than that
/// costs.
constexpr std::uint64_t timeout_ns = 10'000'000;

__device__ inline std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

/// Time is asked for now and then only.
class Timeout {
 public:
  /// `stop`: null; or without end, until that is not 0, in memory of the host, looked at as often.
  __device__ explicit Timeout(const std::uint32_t* stop = nullptr) : stop_(stop) {}

  __device__ bool is_over() {
    if (++looks_ % looks_a_time != 0) return false;
    const std::uint64_t now = now_ns();
    if (begin_ == 0) begin_ = now;
    if (now - begin_ <= timeout_ns) return false;
    begin_ = now;
    return stop_ == nullptr || *static_cast<const volatile std::uint32_t*>(stop_) != 0;
  }

 private:
  static constexpr unsigned looks_a_time = 64;
  const std::uint32_t* const stop_;
  unsigned looks_ = 0;
  std::uint64_t begin_ = 0;
};

/// Flags that kernels of other devices write behind what they have written.
__device__ inline std::uint32_t load_flag(const void* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ inline void store_flag(void* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
/// Behind a fence of the system's.
__device__ inline void set_flag(void* flag, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

/// Has a flag come that holds `number`, before time is over? `stop` as Timeout's.
__device__ __forceinline__ bool await_flag(const void* flag, std::uint32_t number,
                                           const std::uint32_t* stop = nullptr) {
  for (Timeout timeout(stop); load_flag(flag) != number;) {
    if (timeout.is_over()) return false;
  }
  return true;
}

/// Says once that something did not come in time; `undone` is of the host's memory.
__device__ inline void leave_undone(std::uint32_t* undone) {
  *static_cast<volatile std::uint32_t*>(undone) = 1;
  __threadfence_system();
}

}  // namespace mpress::gpu
