// How mpress was built, and what it was built for: the one file of the module that is compiled anew
// where only that changes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "codec/isa.hpp"
#include "config/version.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;

namespace mpress::python {
namespace {

/// The MPIs that there are backends for: (family, version of the headers, launcher).
nb::list built_mpis() {
  nb::list result;
#define MPRESS_BUILT_MPI(family, name, launcher) \
  result.append(nb::make_tuple(family, name, launcher));
#include "built_mpis.inc"
#undef MPRESS_BUILT_MPI
  return result;
}

}  // namespace

nb::dict build_info() {
  nb::dict result;
  result["version"] = version;
  result["frame_version"] = frame_version;
  result["mpis"] = built_mpis();
  result["cuda"] = static_cast<bool>(MPRESS_BUILT_CUDA);
  result["compiler"] = MPRESS_BUILT_COMPILER;
  result["isa"] = isa_name(host_isa());
  return result;
}

#if !MPRESS_BUILT_CUDA
void define_cuda(nb::module_&) {}
#endif

}  // namespace mpress::python
