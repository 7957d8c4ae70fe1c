#include "codec/isa.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace mpress {
namespace {

Isa best_isa() {
#if defined(__x86_64__) && defined(MPRESS_X86_KERNELS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::portable;
#else
  return Isa::portable;
#endif
}

Isa initial_isa() {
  const Isa best = best_isa();
  const char* wanted = std::getenv("MPRESS_ISA");
  if (!wanted) return best;
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (std::strcmp(wanted, isa_name(isa)) == 0) return isa < best ? isa : best;
  }
  return best;  // the configuration layer reports a value that is none of the three
}

Isa& current_isa() {
  static Isa isa = initial_isa();
  return isa;
}

}  // namespace

Isa host_isa() { return current_isa(); }

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

bool set_host_isa(Isa isa) {
  if (isa > best_isa()) return false;
  current_isa() = isa;
  return true;
}

}  // namespace mpress
