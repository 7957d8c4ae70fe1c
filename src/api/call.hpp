// What the functions of include/mpress/mpress.h have in common: what a call asks for, and errors.
#pragma once

#include <mpress/mpress.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/start.hpp"
#include "core/asked.hpp"

namespace mpress::api {

/// Why this thread's last call failed; see mpress_error_text().
void set_error_text(std::string text);
const char* error_text();

/// Has MPI begun, and not ended?
bool is_running();

/// Raises MPI's error `code` on a communicator, or on MPI_COMM_SELF where it is none, for the
/// reason given. Returns `code`.
int raise(MPI_Comm comm, int code, std::string text);

/// What becomes of a call's stream.
enum class Streams : unsigned char {
  awaited,   ///< before the call begins
  followed,  ///< by the call, which begins behind what the stream holds: engine::Asked::order
  implied,   ///< the same of a stream that the program has not named
};

/// A call of the program's: what it asks for holds for the calls of MPI's that are made in its
/// scope. Those ask for nothing where the call is not mpress's (api/start.hpp), and are MPI's.
class Call {
 public:
  /// `buffers`: the call's own, one of which tells the device of its stream. Raises what is wrong
  /// with `call`.
  Call(Kind kind, MPI_Comm comm, const mpress_call* call,
       std::initializer_list<const void*> buffers, Streams streams = Streams::awaited);

  /// MPI_SUCCESS, or the error that was raised: then nothing may be sent.
  int code() const { return code_; }

  /// For what the call has begun and leaves under way.
  std::unique_ptr<EarlyCall> take_early() { return std::move(admission_.early); }

 private:
  int open(Kind kind, MPI_Comm comm, const mpress_call* call,
           std::initializer_list<const void*> buffers, Streams streams);
  int open_stream(MPI_Comm comm, const mpress_call& call,
                  std::initializer_list<const void*> buffers, Streams streams);

  Admission admission_{false};
  engine::Asked asked_;
  int code_;
  std::optional<engine::Asking> asking_;
};

}  // namespace mpress::api
