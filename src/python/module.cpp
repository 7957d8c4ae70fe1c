// The extension module mpress._core: what Python needs of the C++ side, one thin function each.
// python/mpress/ turns it into the public interface and checks arguments there.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "codec/isa.hpp"
#include "codec/szp/format.hpp"
#include "config/config.hpp"
#include "config/knobs.hpp"
#include "python/arguments.hpp"
#include "schedule/algorithms.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {

Spec parse(const std::string& text) {
  Spec spec;
  std::string error;
  if (!parse_spec(text, spec, error)) throw nb::value_error(error.c_str());
  return spec;
}

ElementType element_type(const std::string& name) {
  if (name == "f32") return ElementType::f32;
  if (name == "f64") return ElementType::f64;
  throw nb::value_error(("unknown element type '" + name + "': expected f32 or f64").c_str());
}

Spec codec_spec(const std::string& text, ElementType type) {
  const Spec spec = parse(text);
  std::string error;
  if (!validate_spec(spec, type, error)) throw nb::value_error(error.c_str());
  if (spec.codec == Codec::none || spec.codec == Codec::automatic) {
    throw nb::value_error(("'" + text + "' names no codec").c_str());
  }
  return spec;
}

codec::Combine combine_of(const std::string& name) {
  using enum codec::Combine;
  if (name == "replace") return replace;
  if (name == "sum") return sum;
  if (name == "min") return min;
  if (name == "max") return max;
  if (name == "prod") return prod;
  throw nb::value_error(
      ("unknown operation '" + name + "': expected replace, sum, min, max or prod").c_str());
}

Spec sum_spec(const std::string& text, ElementType type) {
  const Spec spec = codec_spec(text, type);
  if (spec.codec != Codec::szp) throw nb::value_error(("'" + text + "' has no sums").c_str());
  return spec;
}

std::string sum_problem(codec::Status status) {
  switch (status) {
    case codec::Status::ok: return "";
    case codec::Status::mismatched: return "mismatched";
    case codec::Status::inexact: return "inexact";
    default: return status_text(status);
  }
}

namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
using BytesIn = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using BytesOut = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::size_t element_count(std::size_t bytes, ElementType type) {
  if (bytes % element_size(type) != 0) {
    throw nb::value_error(("a buffer of " + std::to_string(bytes) + " bytes does not hold whole " +
                           element_name(type) + " elements")
                              .c_str());
  }
  return bytes / element_size(type);
}

/// The payload, and the absolute bound that szp kept (None for other codecs).
nb::tuple encode(const std::string& text, const std::string& type_name, const BytesIn& elements) {
  const ElementType type = element_type(type_name);
  Spec spec = codec_spec(text, type);
  const std::size_t count = element_count(elements.size(), type);
  const std::size_t room = std::max<std::size_t>(codec::max_payload_bytes(spec, type, count), 1);
  auto* payload = static_cast<std::uint8_t*>(std::malloc(room));
  if (!payload) throw std::bad_alloc();
  std::size_t bytes = 0;
  {
    nb::gil_scoped_release release;
    spec = codec::resolve(spec, type, elements.data(), count);
    bytes = codec::encode(spec, type, elements.data(), count, payload);
    // Give back what the worst case reserved.
    if (void* fitted = std::realloc(payload, std::max<std::size_t>(bytes, 1))) {
      payload = static_cast<std::uint8_t*>(fitted);
    }
  }
  nb::capsule owner(payload, [](void* p) noexcept { std::free(p); });
  nb::object bound = spec.bound == Bound::none ? nb::none() : nb::cast(spec.value);
  return nb::make_tuple(Bytes(payload, {bytes}, owner), bound);
}

/// What sum_problem() says; without one the payload and its bound.
nb::tuple add(const std::string& text, const std::string& type_name,
              const std::vector<BytesIn>& payloads, std::size_t count) {
  const ElementType type = element_type(type_name);
  sum_spec(text, type);
  std::vector<codec::Summand> summands;
  for (const BytesIn& one : payloads) summands.push_back({one.data(), one.size()});
  auto* payload = static_cast<std::uint8_t*>(std::malloc(codec::szp::max_bytes(type, count)));
  if (!payload) throw std::bad_alloc();
  std::size_t bytes = 0;
  codec::Status status;
  {
    nb::gil_scoped_release release;
    status = codec::szp::add(type, summands, count, payload, bytes);
    if (void* fitted = std::realloc(payload, std::max<std::size_t>(bytes, 1))) {
      payload = static_cast<std::uint8_t*>(fitted);
    }
  }
  nb::capsule owner(payload, [](void* p) noexcept { std::free(p); });
  if (status != codec::Status::ok)
    return nb::make_tuple(sum_problem(status), nb::none(), nb::none());
  codec::szp::Header header;
  std::memcpy(&header, payload, sizeof header);
  return nb::make_tuple("", Bytes(payload, {bytes}, owner), header.bound);
}

std::size_t encode_into(const std::string& text, const std::string& type_name,
                        const BytesIn& elements, const BytesOut& payload) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  const std::size_t count = element_count(elements.size(), type);
  if (payload.size() < codec::max_payload_bytes(spec, type, count)) {
    throw nb::value_error("the payload buffer is smaller than max_payload_bytes");
  }
  nb::gil_scoped_release release;
  return codec::encode(spec, type, elements.data(), count, payload.data());
}

/// Empty, or what is wrong with the payload.
std::string decode(const std::string& text, const std::string& type_name, const BytesIn& payload,
                   const BytesOut& elements, const std::string& combine_name) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  const std::size_t count = element_count(elements.size(), type);
  const codec::Combine combine = combine_of(combine_name);
  nb::gil_scoped_release release;
  const codec::Status status =
      codec::decode(spec, type, payload.data(), payload.size(), elements.data(), count, combine);
  return status == codec::Status::ok ? std::string() : std::string(status_text(status));
}

std::size_t max_payload_bytes(const std::string& text, const std::string& type_name,
                              std::size_t count) {
  const ElementType type = element_type(type_name);
  return codec::max_payload_bytes(codec_spec(text, type), type, count);
}

nb::dict describe(const std::string& text) {
  const Spec spec = parse(text);
  const char* const codecs[] = {"none", "mpc", "zfp", "szp"};
  const char* const bounds[] = {"none", "abs", "rel"};
  nb::dict result;
  result["text"] = to_string(spec);
  result["codec"] =
      spec.codec == Codec::automatic ? "auto" : codecs[static_cast<std::size_t>(spec.codec)];
  result["bound"] = bounds[static_cast<std::size_t>(spec.bound)];
  result["value"] = spec.value;
  result["lossy"] = spec.lossy();
  return result;
}

void validate(const std::string& text, const std::string& type_name) {
  std::string error;
  if (!validate_spec(parse(text), element_type(type_name), error)) {
    throw nb::value_error(error.c_str());
  }
}

double effective_rate(double rate, const std::string& type_name) {
  return zfp_effective_rate(rate, element_type(type_name));
}

bool set_isa(const std::string& name) {
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (name == isa_name(isa)) return set_host_isa(isa);
  }
  throw nb::value_error(
      ("unknown instruction set '" + name + "': expected portable, avx2 or avx512").c_str());
}

template <std::size_t count>
nb::list table_of(const Knob (&table)[count]) {
  nb::list result;
  for (const Knob& knob : table) {
    result.append(nb::make_tuple(knob.name, knob.meaning, knob.fallback));
  }
  return result;
}

void check_environment() {
  std::string error;
  Config config;
  if (!load_config(config, error)) throw nb::value_error(error.c_str());
}

std::size_t bytes_of(const std::string& text) {
  std::size_t bytes = 0;
  if (!parse_bytes(text, bytes)) {
    throw nb::value_error(("'" + text + "': expected bytes, such as 65536, 64K or 1M").c_str());
  }
  return bytes;
}

double rate_of(const std::string& text) {
  double rate = 0;
  if (!parse_rate(text, rate)) {
    throw nb::value_error(
        ("'" + text + "': expected a positive rate, such as 1Gbit, 100Mbit or bytes a second")
            .c_str());
  }
  return rate;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ side of mpress; use the functions of the package mpress instead.";
  m.def("describe", &describe, "spec"_a, "Parse a spec; ValueError says what is wrong with it.");
  m.def("validate", &validate, "spec"_a, "type"_a, "Check what depends on the element type.");
  m.def("effective_rate", &effective_rate, "rate"_a, "type"_a,
        "Bits a value that zfp really spends.");
  m.def("max_payload_bytes", &max_payload_bytes, "spec"_a, "type"_a, "count"_a);
  m.def("encode", &encode, "spec"_a, "type"_a, "elements"_a,
        "Encode the bytes of elements; returns the payload and szp's absolute bound.");
  m.def("encode_into", &encode_into, "spec"_a, "type"_a, "elements"_a, "payload"_a,
        "Encode into a buffer of max_payload_bytes; returns the bytes written.");
  m.def("decode", &decode, "spec"_a, "type"_a, "payload"_a, "elements"_a, "combine"_a = "replace",
        "Decode; returns an empty string, or what is wrong with the payload.");
  m.def("add", &add, "spec"_a, "type"_a, "payloads"_a, "count"_a,
        "Add payloads of szp, 2 to most_summands; returns an empty string, the payload and its "
        "bound, "
        "or 'inexact', 'mismatched', or what is wrong with a payload.");
  m.attr("most_summands") = codec::most_summands;
  m.def("isa", [] { return isa_name(host_isa()); }, "The instruction set in use.");
  m.def("set_isa", &set_isa, "name"_a,
        "Use another instruction set, for tests; False where the CPU lacks it.");
  m.def(
      "algorithms",
      [] {
        nb::list names;
        for (const char* name : schedule::algorithm_names) names.append(name);
        return names;
      },
      "Names of the algorithms of collective calls, by their numbers in a rank's statistics.");
  m.def(
      "knobs", [] { return table_of(knobs); },
      "Every environment variable: (name, meaning, default).");
  m.def(
      "info_keys", [] { return table_of(info_keys); },
      "Every MPI_Info key of a communicator: (name, meaning, the variable that else holds).");
  m.def("nearest_knob", &nearest_knob, "name"_a);
  m.def("check_environment", &check_environment,
        "Check names and values of all MPRESS_* variables; ValueError names the culprit.");
  m.def("parse_bytes", &bytes_of, "text"_a);
  m.def("parse_rate", &rate_of, "text"_a, "Bytes a second.");
  m.def("build_info", &build_info);
  define_policy(m);
  define_calls(m);
  define_schedules(m);
  define_neighbours(m);
  define_cuda(m);
}

}  // namespace mpress::python
