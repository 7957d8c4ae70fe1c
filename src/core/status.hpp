// The status of a piece of work, in the layers that know no MPI.
#pragma once

#include <cstdint>

namespace mpress {

/// A failure travels as a value: nothing throws it, and whoever owns the operation reports it. The
/// binding maps it to an error code of MPI's (mpi/job/job.hpp, code_of()). Trivially copyable,
/// so that threads may share one in a std::atomic.
class [[nodiscard]] Status {
 public:
  enum Code : std::uint8_t {
    ok,
    no_memory,         ///< memory of the host, or of a device, ran out
    device_failed,     ///< a device refuses to work
    corrupt,           ///< what came cannot be decoded
    unfit_spec,        ///< a codec spec does not fit the element type
    truncated,         ///< a message is longer than the buffer that receives it
    copy_failed,       ///< a Layout did not copy data
    transport_failed,  ///< MPI, or who matches messages in its place, reported an error of its own
  };

  constexpr Status(Code code = ok) : code_(code) {}  // NOLINT: functions return a code
  /// transport_failed, with the error code of who reported it.
  static constexpr Status of_transport(int own_code) {
    Status status(transport_failed);
    status.own_code_ = own_code;
    return status;
  }

  constexpr bool is_ok() const { return code_ == ok; }
  constexpr Code code() const { return code_; }
  constexpr int own_code() const { return own_code_; }
  constexpr bool operator==(const Status&) const = default;

 private:
  Code code_;
  int own_code_ = 0;  ///< of transport_failed
};

}  // namespace mpress
