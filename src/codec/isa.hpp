// Run-time choice among the instruction sets that host codecs are compiled for.
//
// Sources NAME/avx2.cpp and NAME/avx512.cpp are compiled with the flags of their instruction
// set. They must not instantiate templates or inline functions that other translation units
// share (the linker may keep their copy, which a baseline CPU cannot run): whatever they use
// from a header lives in namespace MPRESS_ISA, which the build sets a file, or is constexpr and
// always inlined.
#pragma once

namespace mpress {

enum class Isa : unsigned char { portable = 0, avx2 = 1, avx512 = 2 };

/// The best instruction set of this CPU, or a lesser one asked for by MPRESS_ISA
/// (portable|avx2|avx512). avx512 means F, BW, DQ, VL, CD; avx2 includes BMI1, BMI2, LZCNT,
/// POPCNT. Constant after the first call.
Isa host_isa();

const char* isa_name(Isa isa);

/// Tests and benchmarks: use `isa` from now on. Not thread-safe. Returns false, and changes
/// nothing, where the CPU lacks it.
bool set_host_isa(Isa isa);

}  // namespace mpress
