#include "mpi/collectives/neighbours/mpi_fold.hpp"

#include <algorithm>
#include <array>

#include "core/plain_layout.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/relayout.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

MpiFold::MpiFold(Job& job, MPI_Count count, MPI_Datatype type, MPI_Datatype programs, MPI_Op op)
    : job_(job), items_(count), type_(type), programs_(programs), op_(op) {
  const auto info = mpi::type_info(type);
  bytes_ = static_cast<std::size_t>(count) * info->size;
  has_gaps_ = !info->contiguous;
  if (!has_gaps_) {
    layout_ = info;
    count_ = count;
    return;
  }
  packed_type_ = info->packed_type();
  layout_ = plain_layout(info->element);
  count_ = static_cast<std::int64_t>(bytes_ / info->packed_unit());
  MPI_Count lower = 0, extent = 0, first = 0, true_extent = 0;
  mpi::calls().Type_get_extent_x(type, &lower, &extent);
  mpi::calls().Type_get_true_extent_x(type, &first, &true_extent);
  if (count == 0) return;
  // A negative extent has the first item behind the others.
  const MPI_Count span = extent * (count - 1);
  const MPI_Count least = first + (span < 0 ? span : 0);
  // The address of a vector is aligned, as operators expect, wherever its data begin.
  constexpr std::size_t line = 64;
  const auto up = [](MPI_Count bytes) {
    return (static_cast<std::size_t>(bytes) + line - 1) / line * line;
  };
  first_ = least < 0 ? up(-least) : 0;
  room_ = first_ + up((span < 0 ? -span : span) + true_extent + (least > 0 ? least : 0) + 1);
}

/// Operators of the program's are called as it calls MPI. MPI's own call nothing else.
int MpiFold::reduce(const void* from, void* into) const {
  static const std::array own{MPI_SUM,  MPI_PROD, MPI_MAX,  MPI_MIN,  MPI_MAXLOC, MPI_MINLOC,
                              MPI_LAND, MPI_LOR,  MPI_LXOR, MPI_BAND, MPI_BOR,    MPI_BXOR};
  const auto call = [&]() -> int {
    return mpi::buffer_calls().Reduce_local_c
               ? mpi::buffer_calls().Reduce_local_c(from, into, items_, programs_, op_)
               : mpi::buffer_calls().Reduce_local(from, into, static_cast<int>(items_), programs_,
                                                  op_);
  };
  return std::ranges::find(own, op_) != own.end() ? compute(modes_, call) : call();
}

Status MpiFold::combine(const void* from, void* into) {
  if (bytes_ == 0) return Status::ok;
  if (!has_gaps_) return status_of(reduce(from, into));
  if (!laid_out_) laid_out_ = job_.pool.take(2 * room_);
  if (!laid_out_) return Status::no_memory;
  void* const a = laid_out_.data() + first_;
  void* const b = laid_out_.data() + room_ + first_;
  const mpi::TypedCount packed{count_, packed_type_}, own{items_, type_};
  int code = mpi::relayout(from, packed, a, own);
  if (code == MPI_SUCCESS) code = mpi::relayout(into, packed, b, own);
  if (code == MPI_SUCCESS) code = reduce(a, b);
  if (code == MPI_SUCCESS) code = mpi::relayout(b, own, into, packed);
  return status_of(code);
}

}  // namespace mpress::engine
