#include "api/call.hpp"

#include <cstddef>
#include <utility>

#include "core/stream_order.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "trace/message.hpp"

namespace mpress::api {
namespace {

using engine::Job;

// The program's struct is what the engine writes to.
static_assert(sizeof(mpress_outcome) == sizeof(engine::Outcome) &&
              offsetof(mpress_outcome, served) == offsetof(engine::Outcome, is_served) &&
              offsetof(mpress_outcome, bound) == offsetof(engine::Outcome, bound));

thread_local std::string last_error;

/// Empty where `text` is none. Programs ask for the same again and again.
std::optional<Spec> read_spec(const char* text, std::string& error) {
  struct Last {
    std::string text;
    Spec spec;
  };
  static thread_local Last last;
  if (last.text != text || last.text.empty()) {
    Spec spec;
    if (!parse_spec(text, spec, error)) return std::nullopt;
    last = {text, spec};
  }
  return last.spec;
}

/// The device that one of the buffers is on.
int device_of(std::initializer_list<const void*> buffers) {
  int device = gpu::host;
  for (const void* buffer : buffers) {
    if (device == gpu::host && buffer) device = gpu::locate(buffer);
  }
  return device;
}

}  // namespace

bool is_running() {
  int is_initialized = 0, is_finalized = 0;
  mpi::calls().Initialized(&is_initialized);
  mpi::calls().Finalized(&is_finalized);
  return is_initialized && !is_finalized;
}

void set_error_text(std::string text) { last_error = std::move(text); }
const char* error_text() { return last_error.c_str(); }

int raise(MPI_Comm comm, int code, std::string text) {
  set_error_text("mpress: " + text);
  if (!is_running()) return code;
  const auto known = comm == MPI_COMM_NULL ? nullptr : mpi::comm_info(comm);
  // Handlers that end the job do not return, and MPI's own words are few.
  trace::say(text);
  mpi::calls().Comm_call_errhandler(known ? comm : MPI_COMM_SELF, code);
  return code;
}

Call::Call(Kind kind, MPI_Comm comm, const mpress_call* call,
           std::initializer_list<const void*> buffers, Streams streams)
    : code_(open(kind, comm, call, buffers, streams)) {
  if (code_ == MPI_SUCCESS && admission_.is_own) asking_.emplace(asked_);
}

int Call::open(Kind kind, MPI_Comm comm, const mpress_call* call,
               std::initializer_list<const void*> buffers, Streams streams) {
  last_error.clear();
  if (!is_running()) return raise(comm, MPI_ERR_OTHER, "MPI does not run");
  admission_ = admit(kind, comm);
  const bool names_stream = call && (call->mask & MPRESS_CALL_STREAM);
  if (!admission_.is_own && device_of(buffers) != gpu::host &&
      (names_stream || !may_have_device_memory())) {
    return raise(comm, MPI_ERR_OTHER,
                 "memory of a device: mpress_init() was not called, by all ranks after MPI_Init");
  }
  if (!call) return MPI_SUCCESS;
  constexpr unsigned known =
      MPRESS_CALL_SPEC | MPRESS_CALL_STREAM | MPRESS_CALL_SAME_BITS | MPRESS_CALL_OUTCOME;
  if (call->mask & ~known) {
    return raise(comm, MPI_ERR_ARG,
                 "call.mask is " + std::to_string(call->mask) +
                     ", and has bits that this version does not know; expected some of "
                     "MPRESS_CALL_SPEC, _STREAM, _SAME_BITS and _OUTCOME");
  }
  if (call->mask & MPRESS_CALL_SPEC) {
    if (!call->spec) return raise(comm, MPI_ERR_ARG, "call.spec is null; expected a codec");
    std::string error;
    asked_.spec = read_spec(call->spec, error);
    if (!asked_.spec) return raise(comm, MPI_ERR_ARG, "call.spec: " + error);
  }
  asked_.same_bits = (call->mask & MPRESS_CALL_SAME_BITS) && call->same_bits;
  if (call->mask & MPRESS_CALL_OUTCOME) {
    if (!call->outcome) {
      return raise(comm, MPI_ERR_ARG, "call.outcome is null; expected where to tell the outcome");
    }
    *call->outcome = {0, 0};
    asked_.outcome = reinterpret_cast<engine::Outcome*>(call->outcome);
  }
  return names_stream ? open_stream(comm, *call, buffers, streams) : MPI_SUCCESS;
}

int Call::open_stream(MPI_Comm comm, const mpress_call& call,
                      std::initializer_list<const void*> buffers, Streams streams) {
  Job* const job = engine::active_job();
  const int device = device_of(buffers);
  if (!job || device == gpu::host) return MPI_SUCCESS;
  if (job->devices.usable()) {
    asked_.order = engine::StreamOrder::behind(*job, call.stream, device);
    asked_.stream = {call.stream, device};
  }
  // A stream orders the work of its own device: a buffer of another comes behind the default
  // streams.
  for (const void* buffer : buffers) {
    const int other = buffer ? gpu::locate(buffer) : gpu::host;
    if (other == gpu::host || other == device || !asked_.order) continue;
    const Status status = engine::await(*job, other, gpu::gpu()->default_work(other));
    if (status.is_ok()) continue;
    return raise(comm, job->code_of(status), "a device failed before a buffer was read");
  }
  asked_.names_stream = streams != Streams::implied;
  const bool is_behind = asked_.order && (streams != Streams::awaited || asked_.order->await());
  if (streams == Streams::awaited) asked_.order.reset();
  if (is_behind) return MPI_SUCCESS;
  return raise(comm, job->device_code,
               "call.stream: the device refuses it, or it is being captured into a graph");
}

}  // namespace mpress::api
