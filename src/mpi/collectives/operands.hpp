// What calls read from and write to their buffers: each function here takes the arguments of the
// MPI call that it is named after, in either form of counts, and knows which of them count in this
// process. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "coll/numbers.hpp"
#include "core/asked.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/topology.hpp"

namespace mpress::engine {

/// `count` items, the first `offset` bytes from the buffer's address.
struct Block {
  std::int64_t offset;
  MPI_Count count;
  MPI_Datatype type;
};

/// The blocks of a buffer, as a call's arguments tell them.
class Blocks {
 public:
  Blocks() = default;

  /// `number` blocks of `count` items each, one behind the other.
  Blocks(int number, MPI_Count count, MPI_Datatype type)
      : number_(number), count_(count), type_(type) {}

  /// Blocks at displacements in items.
  Blocks(int number, Numbers counts, Numbers displacements, MPI_Datatype type)
      : number_(number), counts_(counts), displacements_(displacements), type_(type) {}

  /// Blocks at displacements in bytes.
  Blocks(int number, Numbers counts, Numbers displacements, const MPI_Datatype* types)
      : number_(number), counts_(counts), displacements_(displacements), types_(types) {}

  static Blocks bytes(std::int64_t offset, std::int64_t bytes) {
    Blocks one(1, bytes, MPI_BYTE);
    one.shift_ = offset;
    return one;
  }

  /// Block `i` alone.
  Blocks only(int i) const {
    Blocks one = *this;
    one.first_ += i;
    one.number_ = 1;
    return one;
  }

  int number() const { return number_; }

  /// Have all blocks as many items, of one type?
  bool is_even() const { return !counts_ && !types_; }

  /// Of block `i`; see Block.
  MPI_Count count(int i) const { return counts_ ? counts_[first_ + i] : count_; }
  MPI_Datatype type(int i) const { return types_ ? types_[first_ + i] : type_; }

  /// Asks MPI where there are displacements in items.
  Block operator[](int i) const;

 private:
  int number_ = 0;
  int first_ = 0;
  MPI_Count count_ = 0;  ///< of each block, without `counts_`
  Numbers counts_;
  Numbers displacements_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  const MPI_Datatype* types_ = nullptr;
  std::int64_t shift_ = 0;
};

/// One buffer of a call in this process; without blocks where the buffer does not count.
struct Operand {
  const void* buffer = nullptr;
  Blocks reads;
  Blocks writes;
};

/// The buffers of a call: `send` is its parameter of type const void*, `receive` that of type
/// void*.
struct Operands {
  bool known = true;  ///< false: the arguments are wrong, and MPI may say so
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0;             ///< processes of this one's group
  int root = 0;             ///< of calls that have one
  MPI_Op op = MPI_OP_NULL;  ///< of reductions
  Operand send;
  Operand receive;
  /// Entries of the arrays that tell about either buffer; 0 where these do not count.
  int send_entries = 0;
  int receive_entries = 0;
  Numbers result_counts = {};  ///< of MPI_Reduce_scatter: the items that each rank gets
  /// Of a neighbourhood's call: whose the blocks are. Lives as long as the communicator.
  const mpi::Topology* topology = nullptr;
  std::optional<Asked> asked = {};  ///< of a call of mpress's own interface

  /// Of a call that names no stream: its place behind the default streams.
  std::shared_ptr<StreamOrder> defaults = nullptr;

  /// Its place behind streams of the program's that it has still to wait for; null: it has none.
  StreamOrder* order() const { return asked && asked->order ? asked->order.get() : defaults.get(); }
};

/// Does MPI take its counts and types? Those of a buffer without data, and of neighbours that are
/// missing, are not looked at.
bool is_sound(const Operands& operands);

Operands bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
Operands gather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm);
Operands gatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                 Numbers in_counts, Numbers in_places, MPI_Datatype in_type, int root,
                 MPI_Comm comm);
Operands scatter(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                 MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm);
Operands scatterv(const void* out, Numbers out_counts, Numbers out_places, MPI_Datatype out_type,
                  void* in, MPI_Count in_count, MPI_Datatype in_type, int root, MPI_Comm comm);
Operands allgather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                   MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm);
Operands allgatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                    Numbers in_counts, Numbers in_places, MPI_Datatype in_type, MPI_Comm comm);
Operands alltoall(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                  MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm);
Operands alltoallv(const void* out, Numbers out_counts, Numbers out_places, MPI_Datatype out_type,
                   void* in, Numbers in_counts, Numbers in_places, MPI_Datatype in_type,
                   MPI_Comm comm);
Operands alltoallw(const void* out, Numbers out_counts, Numbers out_places,
                   const MPI_Datatype* out_types, void* in, Numbers in_counts, Numbers in_places,
                   const MPI_Datatype* in_types, MPI_Comm comm);
Operands neighbor_allgather(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                            MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm);
Operands neighbor_allgatherv(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                             Numbers in_counts, Numbers in_places, MPI_Datatype in_type,
                             MPI_Comm comm);
Operands neighbor_alltoall(const void* out, MPI_Count out_count, MPI_Datatype out_type, void* in,
                           MPI_Count in_count, MPI_Datatype in_type, MPI_Comm comm);
Operands neighbor_alltoallv(const void* out, Numbers out_counts, Numbers out_places,
                            MPI_Datatype out_type, void* in, Numbers in_counts, Numbers in_places,
                            MPI_Datatype in_type, MPI_Comm comm);
Operands neighbor_alltoallw(const void* out, Numbers out_counts, Numbers out_places,
                            const MPI_Datatype* out_types, void* in, Numbers in_counts,
                            Numbers in_places, const MPI_Datatype* in_types, MPI_Comm comm);

Operands reduce(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm);
Operands allreduce(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm);
Operands scan(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm);
Operands exscan(const void* out, void* in, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm);
Operands reduce_scatter(const void* out, void* in, Numbers counts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm);
Operands reduce_scatter_block(const void* out, void* in, MPI_Count count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm);

Operands reduce_local(const void* in, void* in_out, MPI_Count count, MPI_Datatype type, MPI_Op op);
Operands pack(const void* in, MPI_Count in_count, MPI_Datatype type, void* out, MPI_Count out_bytes,
              Numbers position, MPI_Comm comm);
Operands unpack(const void* in, MPI_Count in_bytes, Numbers position, void* out,
                MPI_Count out_count, MPI_Datatype type, MPI_Comm comm);
Operands pack_external(const char* format, const void* in, MPI_Count in_count, MPI_Datatype type,
                       void* out, MPI_Count out_bytes, Numbers position);
Operands unpack_external(const char* format, const void* in, MPI_Count in_bytes, Numbers position,
                         void* out, MPI_Count out_count, MPI_Datatype type);

}  // namespace mpress::engine
