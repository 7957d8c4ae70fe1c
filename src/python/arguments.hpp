// Arguments of the extension module's functions: text to the C++ side's types, or ValueError.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "codec/codec.hpp"
#include "codec/combine.hpp"

namespace mpress::python {

Spec parse(const std::string& text);

ElementType element_type(const std::string& name);

/// A spec that a codec function takes: valid for `type`, neither `none` nor `auto`.
Spec codec_spec(const std::string& text, ElementType type);

/// "replace", "sum", "min" or "max".
codec::Combine combine_of(const std::string& name);

/// A spec of szp, which alone has sums.
Spec sum_spec(const std::string& text, ElementType type);

/// What became of a sum, for Python: empty, "mismatched", "inexact", or what is wrong with a
/// payload.
std::string sum_problem(codec::Status status);

/// Defines what the module has for profiles.
void define_policy(nanobind::module_& m);

/// Defines what mpress.Communicator needs of libmpress.so.
void define_calls(nanobind::module_& m);

/// Defines what the module has of schedules.
void define_schedules(nanobind::module_& m);

/// Defines what the module has of neighbourhoods.
void define_neighbours(nanobind::module_& m);

/// How mpress was built: version, frame_version, mpis, cuda, compiler, isa.
nanobind::dict build_info();

/// Defines what the module has for GPUs: nothing where mpress was built without CUDA.
void define_cuda(nanobind::module_& m);

}  // namespace mpress::python
