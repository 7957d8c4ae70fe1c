#include "mpi/messages/block_send.hpp"

#include <utility>

#include "core/staging.hpp"
#include "message/shared_send.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"

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

std::shared_ptr<SendOperation> send_block(Job& job, const SendCall& call,
                                          const SendArguments& arguments,
                                          std::shared_ptr<OpaqueBlock> opaque,
                                          std::span<const int> readers, int tag) {
  const ElementType element = opaque->cut().type;
  const Block block(job, call, arguments, readers, Location{opaque->device(), true});
  if (!block.message) mpi::fatal("a block has no type, or no communicator");
  auto send = std::make_unique<SharedSend>(job, *block.message, std::move(opaque), block.ranks);
  auto operation = std::make_shared<SendOperation>(job, std::move(send), nullptr);
  const Items items{element == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE, element_size(element)};
  operation->start(mpi::counted::Isend, items, readers, arguments.comm, tag);
  return operation;
}

}  // namespace mpress::engine
