#include "mpi/collectives/operands.hpp"

#include <algorithm>
#include <vector>

#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

/// This process among those that take part in a collective call.
struct Members {
  explicit Members(MPI_Comm comm) {
    const mpi::Calls& mpi = mpi::calls();
    int is_inter = MPI_UNDEFINED;  // and so it stays where MPI has no answer; see comm_info.cpp
    if (comm == MPI_COMM_NULL || mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return;
    known = is_inter != MPI_UNDEFINED;
    if (!known) return;
    inter = is_inter != 0;
    mpi.Comm_rank(comm, &rank);
    mpi.Comm_size(comm, &local);
    peers = local;
    if (inter) mpi.Comm_remote_size(comm, &peers);
  }

  /// Is this the root, or, between two groups, the one of its own?
  bool is_root(int root) const { return inter ? root == MPI_ROOT : root == rank; }

  /// Not so beside the root of an inter-communicator.
  bool takes_part(int root) const { return !inter || root != MPI_PROC_NULL; }

  bool known = false;
  bool inter = false;
  int rank = 0;
  int local = 0;  ///< processes of this group
  int peers = 0;  ///< processes that data are exchanged with
};

Operands operands_of(const Members& members, MPI_Comm comm) {
  Operands operands;
  operands.known = members.known;
  operands.size = members.local;
  operands.comm = comm;
  return operands;
}

/// Data of one process go to the root, or from each to all others.
Operands gathered(const Members& members, int root, bool is_receiver, const Operand& send,
                  const Operand& receive, MPI_Comm comm) {
  Operands operands = operands_of(members, comm);
  operands.root = root;
  if (!members.takes_part(root)) return operands;
  if (is_receiver) {
    operands.receive = receive;
    operands.receive_entries = members.peers;
  }
  if (send.buffer == MPI_IN_PLACE) {
    operands.receive.reads = operands.receive.writes.only(members.rank);
  } else if (!(is_receiver && members.inter && root == MPI_ROOT)) {
    operands.send = send;
  }
  return operands;
}

Operands gathered_at(const Members& members, int root, const Operand& send, const Operand& receive,
                     MPI_Comm comm) {
  return gathered(members, root, members.is_root(root), send, receive, comm);
}

Operands gathered_by_all(const Members& members, const Operand& send, const Operand& receive,
                         MPI_Comm comm) {
  return gathered(members, 0, true, send, receive, comm);
}

Operands scattered(const Members& members, int root, const Operand& send, const Operand& receive,
                   MPI_Comm comm) {
  Operands operands = operands_of(members, comm);
  operands.root = root;
  if (!members.takes_part(root)) return operands;
  const bool is_root = members.is_root(root);
  if (is_root) {
    operands.send = send;
    operands.send_entries = members.peers;
  }
  if (!(is_root && members.inter) && receive.buffer != MPI_IN_PLACE) operands.receive = receive;
  return operands;
}

Operands exchanged(const Members& members, const Operand& send, const Operand& receive,
                   MPI_Comm comm) {
  Operands operands = operands_of(members, comm);
  operands.receive = receive;
  operands.receive_entries = members.peers;
  if (send.buffer == MPI_IN_PLACE) {
    operands.receive.reads = receive.writes;
  } else {
    operands.send = send;
    operands.send_entries = members.peers;
  }
  return operands;
}

/// All processes have inputs of one shape.
Operands reduced(const Members& members, const void* out, const Blocks& inputs, void* in,
                 const Blocks& results, MPI_Op op, MPI_Comm comm) {
  Operands operands = operands_of(members, comm);
  operands.op = op;
  operands.receive = {in, {}, results};
  if (out == MPI_IN_PLACE) {
    operands.receive.reads = inputs;
  } else {
    operands.send = {out, inputs, {}};
  }
  return operands;
}

Operand sent(const void* buffer, const Blocks& blocks) { return {buffer, blocks, {}}; }
Operand received(const void* buffer, const Blocks& blocks) { return {buffer, {}, blocks}; }

/// The neighbours in a process topology.
struct Neighbours {
  explicit Neighbours(MPI_Comm comm) {
    const std::shared_ptr<mpi::CommInfo> info = mpi::comm_info(comm);
    if (!info) return;
    size = static_cast<int>(info->world_ranks.size());
    topology = info->topology();
    if (!topology) return;
    sources = static_cast<int>(topology->sources.size());
    destinations = static_cast<int>(topology->destinations.size());
  }

  Operands exchange(const Operand& send, const Operand& receive, MPI_Comm comm) const {
    Operands operands;
    operands.known = topology != nullptr;
    operands.comm = comm;
    operands.size = size;
    operands.topology = topology;
    operands.send = send;
    operands.receive = receive;
    // What would come from beyond a border is not written, so it is brought back as it was.
    if (topology && topology->has_borders) operands.receive.reads = receive.writes;
    operands.send_entries = destinations;
    operands.receive_entries = sources;
    return operands;
  }

  const mpi::Topology* topology = nullptr;
  int size = 0;
  int sources = 0;
  int destinations = 0;
};

}  // namespace

Block Blocks::operator[](int i) const {
  const int at = first_ + i;
  Block block{shift_, count(i), type(i)};
  std::int64_t place = displacements_ ? displacements_[at] : at * count_;
  if (place != 0 && !types_) {
    MPI_Count lb = 0, extent = 0;
    mpi::calls().Type_get_extent_x(block.type, &lb, &extent);
    place *= extent;
  }
  block.offset += place;
  return block;
}

Operands bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  const Members members(comm);
  Operands operands = operands_of(members, comm);
  operands.root = root;
  if (!members.takes_part(root)) return operands;
  const Blocks data(1, count, type);
  operands.receive = members.is_root(root) ? sent(buffer, data) : received(buffer, data);
  return operands;
}

Operands gather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm) {
  const Members members(comm);
  return gathered_at(members, root, sent(out, {1, out_count, out_type}),
                     received(in, {members.peers, in_count, in_type}), comm);
}

Operands gatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                 Numbers in_counts, Numbers in_places, MPI_Datatype in_type, int root,
                 MPI_Comm comm) {
  const Members members(comm);
  return gathered_at(members, root, sent(out, {1, out_count, out_type}),
                     received(in, {members.peers, in_counts, in_places, in_type}), comm);
}

Operands scatter(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                 MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm) {
  const Members members(comm);
  return scattered(members, root, sent(out, {members.peers, out_count, out_type}),
                   received(in, {1, in_count, in_type}), comm);
}

Operands scatterv(const void* out, Numbers out_counts, Numbers out_places, MPI_Datatype out_type,
                  void* in, MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm) {
  const Members members(comm);
  return scattered(members, root, sent(out, {members.peers, out_counts, out_places, out_type}),
                   received(in, {1, in_count, in_type}), comm);
}

Operands allgather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                   MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm) {
  const Members members(comm);
  return gathered_by_all(members, sent(out, {1, out_count, out_type}),
                         received(in, {members.peers, in_count, in_type}), comm);
}

Operands allgatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                    Numbers in_counts, Numbers in_places, MPI_Datatype in_type, MPI_Comm comm) {
  const Members members(comm);
  return gathered_by_all(members, sent(out, {1, out_count, out_type}),
                         received(in, {members.peers, in_counts, in_places, in_type}), comm);
}

Operands alltoall(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                  MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm) {
  const Members members(comm);
  return exchanged(members, sent(out, {members.peers, out_count, out_type}),
                   received(in, {members.peers, in_count, in_type}), comm);
}

Operands alltoallv(const void* out, Numbers out_counts, Numbers out_places, MPI_Datatype out_type,
                   void* in, Numbers in_counts, Numbers in_places, MPI_Datatype in_type,
                   MPI_Comm comm) {
  const Members members(comm);
  return exchanged(members, sent(out, {members.peers, out_counts, out_places, out_type}),
                   received(in, {members.peers, in_counts, in_places, in_type}), comm);
}

Operands alltoallw(const void* out, Numbers out_counts, Numbers out_places,
                   const MPI_Datatype* out_types, void* in, Numbers in_counts, Numbers in_places,
                   const MPI_Datatype* in_types, MPI_Comm comm) {
  const Members members(comm);
  return exchanged(members, sent(out, {members.peers, out_counts, out_places, out_types}),
                   received(in, {members.peers, in_counts, in_places, in_types}), comm);
}

Operands neighbor_allgather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                            MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm) {
  const Neighbours neighbours(comm);
  return neighbours.exchange(sent(out, {1, out_count, out_type}),
                             received(in, {neighbours.sources, in_count, in_type}), comm);
}

Operands neighbor_allgatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                             Numbers in_counts, Numbers in_places, MPI_Datatype in_type,
                             MPI_Comm comm) {
  const Neighbours neighbours(comm);
  return neighbours.exchange(sent(out, {1, out_count, out_type}),
                             received(in, {neighbours.sources, in_counts, in_places, in_type}),
                             comm);
}

Operands neighbor_alltoall(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                           MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm) {
  const Neighbours neighbours(comm);
  return neighbours.exchange(sent(out, {neighbours.destinations, out_count, out_type}),
                             received(in, {neighbours.sources, in_count, in_type}), comm);
}

Operands neighbor_alltoallv(const void* out, Numbers out_counts, Numbers out_places,
                            MPI_Datatype out_type, void* in, Numbers in_counts, Numbers in_places,
                            MPI_Datatype in_type, MPI_Comm comm) {
  const Neighbours neighbours(comm);
  return neighbours.exchange(sent(out, {neighbours.destinations, out_counts, out_places, out_type}),
                             received(in, {neighbours.sources, in_counts, in_places, in_type}),
                             comm);
}

Operands neighbor_alltoallw(const void* out, Numbers out_counts, Numbers out_places,
                            const MPI_Datatype* out_types, void* in, Numbers in_counts,
                            Numbers in_places, const MPI_Datatype* in_types, MPI_Comm comm) {
  const Neighbours neighbours(comm);
  return neighbours.exchange(
      sent(out, {neighbours.destinations, out_counts, out_places, out_types}),
      received(in, {neighbours.sources, in_counts, in_places, in_types}), comm);
}

Operands reduce(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm) {
  const Members members(comm);
  const Blocks data(1, count, type);
  const bool is_root = members.is_root(root);
  Operands operands = operands_of(members, comm);
  if (!members.takes_part(root)) return operands;
  if (is_root && !members.inter) {
    operands = reduced(members, out, data, in, data, op, comm);
  } else if (is_root) {
    operands.receive = received(in, data);
  } else {
    operands.send = sent(out, data);
  }
  operands.op = op;
  operands.root = root;
  return operands;
}

Operands allreduce(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  const Blocks data(1, count, type);
  return reduced(Members(comm), out, data, in, data, op, comm);
}

Operands scan(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm) {
  return allreduce(out, in, count, type, op, comm);
}

Operands exscan(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm) {
  const Members members(comm);
  const Blocks data(1, count, type);
  return reduced(members, out, data, in, members.rank == 0 ? Blocks() : data, op, comm);
}

Operands reduce_scatter(const void* out, void* in, Numbers counts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm) {
  const Members members(comm);
  std::int64_t total = 0;
  for (int i = 0; i < members.local; ++i) total += counts[i];
  const std::int64_t own = members.known ? counts[members.rank] : 0;
  Operands operands = reduced(members, out, {1, total, type}, in, {1, own, type}, op, comm);
  operands.receive_entries = members.local;
  operands.result_counts = counts;
  return operands;
}

Operands reduce_scatter_block(const void* out, void* in, MPI_Count count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm) {
  const Members members(comm);
  return reduced(members, out, {members.local, count, type}, in, {1, count, type}, op, comm);
}

Operands reduce_local(const void* in, void* in_out, MPI_Count count, MPI_Datatype type, MPI_Op) {
  const Blocks data(1, count, type);
  Operands operands;
  operands.comm = MPI_COMM_SELF;
  operands.send = sent(in, data);
  operands.receive = {in_out, data, data};
  return operands;
}

namespace {

/// Packed data in a buffer of `bytes` bytes, of which no more than `data` from `position` on.
Blocks packed(Numbers position, std::int64_t bytes, std::int64_t data) {
  return Blocks::bytes(position[0], std::min(bytes - position[0], data));
}

/// The most bytes that `count` items take once they are packed.
std::int64_t packed_bytes(MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
  int one = 0;
  if (mpi::calls().Pack_size(1, type, comm, &one) != MPI_SUCCESS) return 0;
  if (one >= 0) return one * count;
  MPI_Count large = 0;  // MPI_Pack_size has no answer from 2 GiB on
  mpi::calls().Type_size_x(type, &large);
  return large * count;
}

std::int64_t external_bytes(const char* format, MPI_Count count, MPI_Datatype type) {
  MPI_Aint one = 0;
  const int code = mpi::calls().Pack_external_size(format, 1, type, &one);
  return code == MPI_SUCCESS ? one * count : 0;
}

Operands packing(const void* in, MPI_Count count, MPI_Datatype type, void* out, const Blocks& room,
                 MPI_Comm comm) {
  Operands operands;
  operands.comm = comm;
  operands.send = sent(in, {1, count, type});
  // How much of it MPI writes is known only afterwards: the rest is brought back as it was.
  operands.receive = {out, room, room};
  return operands;
}

Operands unpacking(const void* in, const Blocks& data, void* out, MPI_Count count,
                   MPI_Datatype type, MPI_Comm comm) {
  Operands operands;
  operands.comm = comm;
  operands.send = sent(in, data);
  operands.receive = received(out, {1, count, type});
  return operands;
}

}  // namespace

Operands pack(const void* in, MPI_Count in_count, MPI_Datatype type, void* out, MPI_Count out_bytes,
              Numbers position, MPI_Comm comm) {
  const Blocks room = packed(position, out_bytes, packed_bytes(in_count, type, comm));
  return packing(in, in_count, type, out, room, comm);
}

Operands unpack(const void* in, MPI_Count in_bytes, Numbers position, void* out,
                MPI_Count out_count, MPI_Datatype type, MPI_Comm comm) {
  const Blocks data = packed(position, in_bytes, packed_bytes(out_count, type, comm));
  return unpacking(in, data, out, out_count, type, comm);
}

Operands pack_external(const char* format, const void* in, MPI_Count in_count, MPI_Datatype type,
                       void* out, MPI_Count out_bytes, Numbers position) {
  const Blocks room = packed(position, out_bytes, external_bytes(format, in_count, type));
  return packing(in, in_count, type, out, room, MPI_COMM_SELF);
}

Operands unpack_external(const char* format, const void* in, MPI_Count in_bytes, Numbers position,
                         void* out, MPI_Count out_count, MPI_Datatype type) {
  const Blocks data = packed(position, in_bytes, external_bytes(format, out_count, type));
  return unpacking(in, data, out, out_count, type, MPI_COMM_SELF);
}

namespace {

/// `peers`: of each block; null where none is missing.
bool is_sound(const void* buffer, const Blocks& blocks, const std::vector<int>* peers = nullptr) {
  const int number = blocks.is_even() ? std::min(blocks.number(), 1) : blocks.number();
  MPI_Datatype known = MPI_DATATYPE_NULL;
  for (int i = 0; i < number; ++i) {
    if (peers && !blocks.is_even() &&
        (*peers)[static_cast<std::size_t>(i)] == mpi::Topology::none) {
      continue;
    }
    if (blocks.count(i) < 0) return false;
    if (blocks.count(i) == 0 || (i > 0 && blocks.type(i) == known)) continue;
    known = blocks.type(i);
    const auto type = mpi::glance_at_type(known);
    if (!type || (!buffer && blocks.is_even() && type->contiguous && type->size > 0)) return false;
  }
  return true;
}

}  // namespace

bool is_sound(const Operands& operands) {
  const Operand& send = operands.send;
  const Operand& receive = operands.receive;
  if (const mpi::Topology* const topology = operands.topology) {
    return is_sound(send.buffer, send.reads, &topology->destinations) &&
           is_sound(receive.buffer, receive.writes, &topology->sources);
  }
  return is_sound(send.buffer, send.reads) && is_sound(send.buffer, send.writes) &&
         is_sound(receive.buffer, receive.reads) && is_sound(receive.buffer, receive.writes);
}

}  // namespace mpress::engine
