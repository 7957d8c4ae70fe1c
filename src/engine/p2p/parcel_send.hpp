// A block that several ranks get: encoded once, by the sender or by whoever it has it from, and
// sent to each as one message of the context's communicator.
//
// Readers that one link reaches share its slots; each has a header of its own. By MPI the memory of
// the parcel is sent from as it is.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/p2p/receive.hpp"
#include "engine/p2p/send.hpp"
#include "engine/pipeline/parcel.hpp"
#include "mpi/calls.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;

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

/// Sends a parcel, whole or under way, and counts it: a message to each of `readers`. Adds the
/// requests that are left to be completed. `arguments`: the block where this process has it, for
/// reports. Returns an MPI error code, which is raised on the communicator.
int send_parcel(Job& job, const SendCall& call, const SendArguments& arguments,
                const std::shared_ptr<Parcel>& parcel, std::span<const int> readers, int tag,
                std::vector<MPI_Request>& requests);

/// Decodes a whole parcel to a buffer of this process's with its signature. Waits. Returns an MPI
/// error code, and raises nothing.
int decode_parcel(Job& job, const Parcel& parcel, const ReceiveArguments& to);

}  // namespace mpress::engine
