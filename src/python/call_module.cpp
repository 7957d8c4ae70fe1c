// The scope of a call of mpress's own interface, for mpress.Communicator: functions of libmpress.so
// (include/mpress/mpress.h), called without the detours of a foreign function interface.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "python/arguments.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

using Begin = int (*)(std::uintptr_t, const void*, const void*);
using End = int (*)();
Begin begin_call = nullptr;
End end_call = nullptr;

template <typename T>
T at(std::uintptr_t address) {
  return reinterpret_cast<T>(address);
}

}  // namespace

void define_calls(nb::module_& m) {
  m.def(
      "set_call_functions",
      [](std::uintptr_t begin, std::uintptr_t end) {
        begin_call = at<Begin>(begin);
        end_call = at<End>(end);
      },
      "begin"_a, "end"_a, "The addresses of mpress_call_begin and mpress_call_end.");
  m.def(
      "call_begin",
      [](std::uintptr_t comm, std::uintptr_t call) {
        return begin_call(comm, at<const void*>(call), nullptr);
      },
      "comm"_a, "call"_a,
      "mpress_call_begin() of a call that has no stream, which waits for nothing.");
  m.def("call_end", [] { end_call(); }, "mpress_call_end().");
}

}  // namespace mpress::python
