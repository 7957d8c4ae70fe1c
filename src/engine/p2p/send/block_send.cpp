#include "engine/p2p/send/block_send.hpp"

#include <utility>

#include "core/staging.hpp"
#include "engine/job/job.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {
namespace {

/// A block as a message to nobody yet, and those of its readers' ranks in MPI_COMM_WORLD. Keeps its
/// handles.
struct Block {
  Block(Job& job, const SendCall& call, const SendArguments& arguments,
        std::span<const int> readers, std::optional<Location> place = std::nullopt)
      : type(mpi::type_info(arguments.type)), comm(mpi::comm_info(arguments.comm)) {
    if (!type || !comm) return;
    if (!place) place = locate(job, arguments.buffer, *type);
    const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
    message.emplace(message_of(call, arguments, *type, *comm, trace::any_peer, bytes, *place));
    for (const int reader : readers) ranks.push_back(comm->world_rank(reader));
  }

  const std::shared_ptr<mpi::TypeInfo> type;
  const std::shared_ptr<mpi::CommInfo> comm;
  std::optional<Message> message;
  std::vector<int> ranks;
};

}  // namespace

BlockChoice encode_block(Job& job, const SendCall& call, const SendArguments& arguments,
                         std::span<const int> readers, bool at_once) {
  const Block block(job, call, arguments, readers);
  if (!block.message || readers.empty()) return {};
  return encode_block(job, *block.message, block.ranks, at_once);
}

std::shared_ptr<OpaqueBlock> hold_block(Job& job, const SendCall& call,
                                        const SendArguments& arguments,
                                        std::span<const int> readers) {
  const Block block(job, call, arguments, readers);
  return block.message ? hold_block(job, *block.message, block.ranks) : nullptr;
}

BlockSend::BlockSend(Job& job, const SendCall& call, const SendArguments& arguments,
                     std::shared_ptr<OpaqueBlock> opaque, std::span<const int> readers, int tag)
    : job_(job) {
  const ElementType element = opaque->cut().type;
  const Block block(job, call, arguments, readers, Location{opaque->device(), true});
  if (!block.message) mpi::fatal("a block has no type, or no communicator");
  send_.emplace(job, *block.message, std::move(opaque), block.ranks);
  note(job.code_of(send_->status()));
  for (const auto& [reader, data, bytes] : send_->beginnings()) {
    MPI_Request request = MPI_REQUEST_NULL;
    note(mpi::counted::Isend(data, static_cast<MPI_Count>(bytes / element_size(element)),
                             element == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE, readers[reader],
                             tag, arguments.comm, &request));
    if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  }
}

/// While the data waits for its readers they may wait for headers that MPI has not sent yet.
bool BlockSend::advance() {
  if (!send_) return true;
  const bool is_sent = send_->advance();
  std::erase_if(requests_, [this](MPI_Request& request) {
    int sent = 0;
    const int code = mpi::test(&request, &sent, MPI_STATUS_IGNORE);
    note(code);
    return code != MPI_SUCCESS || sent != 0;
  });
  if (!is_sent || !requests_.empty()) return false;
  note(job_.code_of(send_->status()));
  send_.reset();
  return true;
}

}  // namespace mpress::engine
