// A block that several ranks get: encoded once, by the sender or by whoever it has it from, and
// sent to each as one message of the context's communicator.
//
// Readers that one link reaches share its slots; each has a header of its own. By MPI the memory of
// the parcel is sent from as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/operation.hpp"
#include "engine/p2p/parcel_outlet.hpp"
#include "engine/p2p/receive.hpp"
#include "engine/p2p/send.hpp"
#include "engine/pipeline/parcel.hpp"
#include "mpi/calls.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;
struct Message;

/// What becomes of a block.
struct Packing {
  std::shared_ptr<Parcel> parcel;              ///< null: it goes to every reader as it is
  trace::Reason reason = trace::Reason::none;  ///< why
  int error = MPI_SUCCESS;                     ///< an MPI error code, which nobody has raised
};

/// Decides, once, how a block goes to `readers`, ranks of the communicator, and begins to encode it
/// where that pays for any of them. `arguments.destination` does not count; the buffer stays as it
/// is until Parcel::advance() returns true. `at_once`: all of them get it by the same
/// send_parcel().
Packing pack_parcel(Job& job, const SendCall& call, const SendArguments& arguments,
                    std::span<const int> readers, bool at_once);

/// A parcel, whole or under way, on its way to several readers: a message to each. It proceeds by
/// advance(), like any operation, and is over when all is published and MPI has done its part.
class ParcelSend final : public Operation {
 public:
  /// Counts the messages. `arguments`: the block where this process has it, for reports; of its
  /// communicator `readers` are ranks. Where a device has to encode or to copy what goes in one
  /// piece, waits for that. Raises nothing: see code().
  ParcelSend(Job& job, const SendCall& call, const SendArguments& arguments,
             std::shared_ptr<Parcel> parcel, std::span<const int> readers, int tag);
  ~ParcelSend() override;

  bool advance() override;
  bool needs_host() const override;

  /// Once it is over, an MPI error code.
  int code() const { return code_; }

 private:
  struct Reader;
  struct Header;

  void plan(std::vector<Reader>& readers, bool all);
  void take_home(std::vector<Reader>& readers);
  bool reserve(link::Link& link, std::span<const Reader> readers);
  void send_headers(const Message& like);
  void send_frames(const Message& like, std::span<const Reader> readers);
  void tell_failure(std::span<const Reader> readers);
  bool advance_data();
  void post(const std::byte* data, std::size_t bytes, const Reader& reader);
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

  Job& job_;
  const std::shared_ptr<Parcel> parcel_;
  const std::uint64_t operation_;
  const MPI_Comm comm_;
  const int tag_;
  const std::uint64_t begin_ns_;
  std::vector<std::unique_ptr<ParcelOutlet>> outlets_;
  std::vector<std::unique_ptr<Header>> headers_;
  std::vector<MPI_Request> requests_;  ///< of MPI's, that are not over
  std::vector<trace::Span> spans_;     ///< of frames
  bool is_sent_ = false;               ///< the data, but for what MPI has
  int code_ = MPI_SUCCESS;
};

/// Decodes a whole parcel to a buffer of this process's with its signature. Waits. Returns an MPI
/// error code, and raises nothing.
int decode_parcel(Job& job, const Parcel& parcel, const ReceiveArguments& to);

}  // namespace mpress::engine
