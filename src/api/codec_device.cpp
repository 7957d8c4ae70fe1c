// The calls of include/mpress/codec.h on GPUs: libmpress_cuda.so, which lies beside, does the work.

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <string>

#include "api/codec_arguments.hpp"
#include "codec/report.hpp"
#include "codec/summand.hpp"
#include "gpu/arrays.hpp"
#include "gpu/gpu.hpp"
#include "memory/kind.hpp"

namespace mpress::api {
namespace {

static_assert(sizeof(mpress_report) == sizeof(Report) &&
              offsetof(mpress_report, status) == offsetof(Report, status) &&
              offsetof(mpress_report, sequence) == offsetof(Report, sequence));

struct Library {
  gpu::Arrays* arrays = nullptr;
  std::string why_not;
};

const Library& library() {
  static const Library found = [] {
    Dl_info info;
    std::string path;
    if (::dladdr(reinterpret_cast<void*>(&library), &info) && info.dli_fname) path = info.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "libmpress_cuda.so";
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return Library{nullptr, "no codecs for GPUs: " + std::string(::dlerror())};
    const auto entry = reinterpret_cast<gpu::ArraysEntry>(::dlsym(handle, gpu::arrays_entry_name));
    gpu::Arrays* const arrays = entry ? entry() : nullptr;
    if (arrays && arrays->version() == gpu::interface_version) return Library{arrays, ""};
    return Library{nullptr, path + " is of another version of mpress"};
  }();
  return found;
}

bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// What a call works on, checked.
struct Work {
  gpu::Arrays* arrays = nullptr;
  int device = 0;
};

/// Of memory that all calls have. `payload` is one that is written, or read.
mpress_codec_status check(const Spec& spec, mpress_element type, std::size_t count,
                          const void* elements, const void* payload, const mpress_report* report,
                          const void* workspace, Work& work) {
  if (spec.codec == Codec::none || spec.codec == Codec::automatic) {
    return wrong("spec: expected a codec, on a device");
  }
  if (!is_countable(type, count)) return wrong("count is too large");
  const std::size_t width = element_size(static_cast<ElementType>(type));
  if (count > 0 && (!elements || !is_aligned(elements, width))) {
    return wrong("elements: expected an array, aligned as its type");
  }
  if (!payload || !is_aligned(payload, 16)) {
    return wrong("payload: expected memory that is aligned on 16 bytes");
  }
  if (!report || !is_aligned(report, 16)) {
    return wrong("report: expected memory that is aligned on 16 bytes");
  }
  if (!workspace || !is_aligned(workspace, 256)) {
    return wrong("workspace: expected device memory that is aligned on 256 bytes");
  }
  work.arrays = library().arrays;
  if (!work.arrays) return fail(MPRESS_CODEC_DEVICE, library().why_not);
  work.device = memory::device_of(workspace);
  if (work.device < 0) return wrong("workspace: expected memory of a device");
  return MPRESS_CODEC_OK;
}

mpress_codec_status outcome(const gpu::Failure& failure) {
  if (failure.kind == gpu::Failure::none) return MPRESS_CODEC_OK;
  return fail(MPRESS_CODEC_DEVICE, failure.text);
}

Report* report_of(mpress_report* report) { return reinterpret_cast<Report*>(report); }

}  // namespace
}  // namespace mpress::api

using namespace mpress;
using namespace mpress::api;

MPRESS_PUBLIC size_t mpress_workspace_bytes(const char* text, mpress_element type, size_t count) {
  Spec spec;
  std::string problem = read(text, type, spec);
  if (problem.empty() && !is_countable(type, count)) problem = "count is too large";
  if (problem.empty() && !library().arrays) problem = library().why_not;
  if (problem.empty() && (spec.codec == Codec::none || spec.codec == Codec::automatic)) {
    problem = "spec: expected a codec, on a device";
  }
  if (problem.empty()) {
    return library().arrays->workspace_bytes(spec, static_cast<ElementType>(type), count);
  }
  wrong(problem);
  return 0;
}

MPRESS_PUBLIC mpress_codec_status mpress_encode_async(const char* text, mpress_element type,
                                                      const void* elements, size_t count,
                                                      void* payload, size_t room,
                                                      mpress_report* report, void* workspace,
                                                      void* stream) {
  Spec spec;
  const std::string problem = read(text, type, spec);
  if (!problem.empty()) return wrong(problem);
  Work work;
  const auto status = check(spec, type, count, elements, payload, report, workspace, work);
  if (status != MPRESS_CODEC_OK) return status;
  const std::size_t needed = room_for(spec, type, count);
  if (room < needed) return too_little_room(room, needed);
  return outcome(work.arrays->encode_async(spec, static_cast<ElementType>(type), elements, count,
                                           payload, report_of(report), workspace, work.device,
                                           stream));
}

MPRESS_PUBLIC mpress_codec_status mpress_decode_async(const char* text, mpress_element type,
                                                      const void* payload, size_t bytes,
                                                      const mpress_report* encoded, void* elements,
                                                      size_t count, mpress_combine how,
                                                      mpress_report* report, void* workspace,
                                                      void* stream) {
  Spec spec;
  const std::string problem = read(text, type, spec);
  if (!problem.empty()) return wrong(problem);
  if (how < MPRESS_REPLACE || how > MPRESS_PROD) {
    return wrong("how is " + std::to_string(how) +
                 "; expected MPRESS_REPLACE, _SUM, _MIN, _MAX or _PROD");
  }
  Work work;
  const auto status = check(spec, type, count, elements, payload, report, workspace, work);
  if (status != MPRESS_CODEC_OK) return status;
  return outcome(work.arrays->decode_async(spec, static_cast<ElementType>(type), payload, bytes,
                                           reinterpret_cast<const Report*>(encoded), elements,
                                           count, static_cast<codec::Combine>(how),
                                           report_of(report), workspace, work.device, stream));
}

MPRESS_PUBLIC mpress_codec_status mpress_add_async(mpress_element type,
                                                   const mpress_payload* payloads, int number,
                                                   size_t count, void* sum, size_t room,
                                                   mpress_report* report, void* workspace,
                                                   void* stream) {
  Spec spec;
  const std::string problem = read("szp:abs=1", type, spec);
  if (!problem.empty()) return wrong(problem);
  std::array<codec::Summand, codec::most_summands> summands;
  if (number < 2 || number > static_cast<int>(summands.size())) {
    return wrong("number is " + std::to_string(number) + "; expected 2 to " +
                 std::to_string(summands.size()) + " payloads");
  }
  if (!payloads) return wrong("payloads is null; expected an array of them");
  for (int i = 0; i < number; ++i) {
    if (!payloads[i].data || !is_aligned(payloads[i].data, 16)) {
      return wrong("payloads[" + std::to_string(i) +
                   "].data: expected memory that is aligned on 16 bytes");
    }
    summands[static_cast<std::size_t>(i)] = {payloads[i].data, payloads[i].bytes};
  }
  Work work;
  const auto status = check(spec, type, count, sum, sum, report, workspace, work);
  if (status != MPRESS_CODEC_OK) return status;
  const std::size_t needed = room_for(spec, type, count);
  if (room < needed) return too_little_room(room, needed);
  return outcome(work.arrays->add_async(spec, static_cast<ElementType>(type),
                                        {summands.data(), static_cast<std::size_t>(number)}, count,
                                        sum, report_of(report), workspace, work.device, stream));
}

MPRESS_PUBLIC mpress_codec_status mpress_report_status(const mpress_report* report) {
  if (!report) return wrong("report is null; expected one");
  if (__atomic_load_n(&report->sequence, __ATOMIC_ACQUIRE) == 0) return MPRESS_CODEC_PENDING;
  return status_of(static_cast<codec::Status>(report->status));
}
