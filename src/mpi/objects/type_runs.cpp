#include "mpi/objects/type_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/regular_copy.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/objects/construction.hpp"
#include "mpi/objects/relayout.hpp"
#include "mpi/objects/self_comm.hpp"
#include "wire/frame.hpp"

namespace mpress::mpi {
namespace {

using gpu::RunList;

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Count lb = 0, extent = 0;
  calls().Type_get_extent_x(type, &lb, &extent);
  return extent;
}

/// Items of a part, and what is known of it.
class Part {
 public:
  explicit Part(MPI_Datatype type);

  /// `length` items, the first `offset` bytes from the buffer's address; `rows` times that, at a
  /// distance of `stride` bytes.
  void append_to(RunList& runs, std::int64_t offset, MPI_Count length, std::int64_t stride = 0,
                 MPI_Count rows = 1) const {
    if (is_solid()) {
      const gpu::Run run = runs_.first();
      runs.add(offset + run.offset, run.bytes * static_cast<std::uint64_t>(length), stride,
               static_cast<std::uint64_t>(rows));
      return;
    }
    for (MPI_Count row = 0; row < rows; ++row) append_row(runs, offset + row * stride, length);
  }
  std::int64_t extent() const { return extent_; }

 private:
  /// Do items follow each other without gaps?
  bool is_solid() const {
    return runs_.is_one() && runs_.first().bytes == static_cast<std::uint64_t>(extent_);
  }

  void append_row(RunList& runs, std::int64_t offset, MPI_Count length) const {
    if (runs_.is_one()) {
      const gpu::Run run = runs_.first();
      runs.add(offset + run.offset, run.bytes, extent_, static_cast<std::uint64_t>(length));
      return;
    }
    for (MPI_Count i = 0; i < length; ++i) runs.add(runs_, offset + i * extent_);
  }

  RunList runs_;
  std::int64_t extent_;
};

/// A rectangle of an array, `dims` sizes each. Rows of the dimension that varies fastest are runs;
/// those of the next one lie at one distance.
void append_subarray(RunList& runs, const Part& part, const MPI_Count* sizes,
                     const MPI_Count* subsizes, const MPI_Count* starts, MPI_Count dims,
                     bool fortran) {
  const auto axis = [&](MPI_Count i) { return fortran ? i : dims - 1 - i; };  // fastest first
  const std::int64_t row = sizes[axis(0)] * part.extent();
  std::vector<MPI_Count> at(static_cast<std::size_t>(dims), 0);
  for (;;) {
    std::int64_t place = 0, stride = 1;
    for (MPI_Count i = 0; i < dims; ++i) {
      const MPI_Count a = axis(i);
      if (subsizes[a] == 0) return;
      place += (starts[a] + at[static_cast<std::size_t>(i)]) * stride;
      stride *= sizes[a];
    }
    part.append_to(runs, place * part.extent(), subsizes[axis(0)], row,
                   dims > 1 ? subsizes[axis(1)] : 1);
    MPI_Count i = 2;
    while (i < dims && ++at[static_cast<std::size_t>(i)] == subsizes[axis(i)]) {
      at[static_cast<std::size_t>(i++)] = 0;
    }
    if (i >= dims) return;
  }
}

/// Any type, asked of MPI itself: packs buffers whose bytes tell their own places, eight bits at a
/// time. For constructors that nothing here takes apart.
RunList ask_for_runs(MPI_Datatype type) {
  const Calls& mpi = calls();
  MPI_Count lb = 0, extent = 0, size = 0;
  mpi.Type_get_true_extent_x(type, &lb, &extent);
  mpi.Type_size_x(type, &size);
  std::vector<std::uint8_t> places(static_cast<std::size_t>(extent));
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(size));
  std::vector<std::uint64_t> found(static_cast<std::size_t>(size), 0);
  for (unsigned bit = 0; bit < 64 && extent >> bit != 0; bit += 8) {
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i >> bit);
    int position = 0;
    if (size > INT32_MAX ||
        mpi.Pack(places.data() - lb, 1, type, packed.data(), static_cast<int>(size), &position,
                 MPI_COMM_SELF) != MPI_SUCCESS) {
      fatal("a datatype of MPI_Type_create_darray is too large for device memory");
    }
    for (std::size_t i = 0; i < packed.size(); ++i) found[i] |= std::uint64_t{packed[i]} << bit;
  }
  RunList runs;
  for (const std::uint64_t place : found) runs.add(static_cast<std::int64_t>(place) + lb, 1);
  return runs;
}

/// The runs of one item.
RunList runs_of_one(MPI_Datatype type) {
  const Construction made(type);
  RunList runs;
  if (made.predefined() || made.parts.empty()) {
    MPI_Count size = 0;
    calls().Type_size_x(type, &size);
    if (type == MPI_SHORT_INT) {  // the one predefined type with a gap inside
      struct Pair {
        short first;
        int second;
      };
      runs.add(0, sizeof(short));
      runs.add(offsetof(Pair, second), sizeof(int));
      return runs;
    }
    runs.add(0, static_cast<std::uint64_t>(size));
    return runs;
  }
  const std::vector<MPI_Count>& n = made.numbers;
  const Part part(made.parts[0]);
  switch (made.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: part.append_to(runs, 0, 1); break;
    case MPI_COMBINER_CONTIGUOUS: part.append_to(runs, 0, n[0]); break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
      const std::int64_t unit = made.combiner == MPI_COMBINER_VECTOR ? part.extent() : 1;
      part.append_to(runs, 0, n[1], n[2] * unit, n[0]);
      break;
    }
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: {
      const std::int64_t unit = made.combiner == MPI_COMBINER_INDEXED ? part.extent() : 1;
      const auto count = static_cast<std::size_t>(n[0]);
      for (std::size_t i = 0; i < count; ++i) {
        part.append_to(runs, n[1 + count + i] * unit, n[1 + i]);
      }
      break;
    }
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const std::int64_t unit = made.combiner == MPI_COMBINER_INDEXED_BLOCK ? part.extent() : 1;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n[0]); ++i) {
        part.append_to(runs, n[2 + i] * unit, n[1]);
      }
      break;
    }
    case MPI_COMBINER_STRUCT: {
      const auto count = static_cast<std::size_t>(n[0]);
      for (std::size_t i = 0; i < count; ++i) {
        Part(made.parts[i]).append_to(runs, n[1 + count + i], n[1 + i]);
      }
      break;
    }
    case MPI_COMBINER_SUBARRAY: {
      const MPI_Count dims = n[0];
      const MPI_Count* sizes = n.data() + (made.large ? 2 : 1);
      const MPI_Count order = made.large ? n[1] : n.back();
      append_subarray(runs, part, sizes, sizes + dims, sizes + 2 * dims, dims,
                      order == MPI_ORDER_FORTRAN);
      break;
    }
    default: return ask_for_runs(type);
  }
  return runs;
}

Part::Part(MPI_Datatype type) : runs_(runs_of_one(type)), extent_(extent_of(type)) {}

}  // namespace

RunList list_runs(MPI_Datatype type, MPI_Count count, std::size_t bytes) {
  RunList all;
  Part(type).append_to(all, 0, count);
  if (bytes == SIZE_MAX) return all;
  RunList first;
  std::size_t left = bytes;
  all.for_each([&](const gpu::Run& run) {
    const std::size_t taken = std::min<std::size_t>(run.bytes, left);
    first.add(run.offset, taken);
    left -= taken;
  });
  return first;
}

/// Those of all data are found once for as many items as were asked about last, if they are few, or
/// regular.
std::shared_ptr<const gpu::Runs> TypeInfo::runs_of(std::int64_t count, std::size_t bytes) const {
  if (bytes < static_cast<std::size_t>(count) * size) {
    return std::make_shared<const gpu::Runs>(list_runs(handle, count, bytes));
  }
  KnownRuns& known = *runs;
  {
    const std::lock_guard lock(known.mutex);
    if (known.all && known.count == count) return known.all;
  }
  constexpr std::size_t most_kept = 64 * 1024;
  auto found = std::make_shared<const gpu::Runs>(list_runs(handle, count));
  if (found->listed().size() <= most_kept) {
    const std::lock_guard lock(known.mutex);
    known.all = found;
    known.count = count;
  }
  return found;
}

std::shared_ptr<const gpu::Runs> TypeInfo::regular_runs_of(std::int64_t count) const {
  if (runs->are_irregular.load(std::memory_order_relaxed)) return nullptr;
  auto found = runs_of(count);
  if (found->are_regular()) return found;
  runs->are_irregular.store(true, std::memory_order_relaxed);
  return nullptr;
}

const RunList& TypeInfo::first_runs() const {
  KnownRuns& known = *runs;
  std::call_once(known.first_made, [&] {
    const auto items = static_cast<MPI_Count>(wire::min_frame_bytes / size + 1);
    known.first = list_runs(handle, items, wire::min_frame_bytes);
  });
  return known.first;
}

bool TypeInfo::pack(const void* from, std::int64_t count, bool is_readable, std::byte* to,
                    std::size_t bytes) const {
  if (is_readable) {
    const engine::ItemSpan data{const_cast<void*>(from), this, count};
    if (copy_regular(data, {to, nullptr, static_cast<std::int64_t>(bytes)})) return true;
  }
  if (from == MPI_BOTTOM) {
    const auto packed = static_cast<MPI_Count>(bytes / packed_unit());
    return relayout(from, {count, handle}, to, {packed, packed_type()}) == MPI_SUCCESS;
  }
  return counted::Pack(from, count, handle, to, static_cast<MPI_Count>(bytes), self_comm()) ==
         MPI_SUCCESS;
}

Status TypeInfo::unpack(const std::byte* packed, std::size_t bytes, void* buffer,
                        std::int64_t count, bool is_readable) const {
  const engine::ItemSpan bare{const_cast<std::byte*>(packed), nullptr,
                              static_cast<std::int64_t>(bytes)};
  if (is_readable && bytes > 0 && copy_regular(bare, {buffer, this, count})) return Status::ok;
  const TypedCount from{static_cast<MPI_Count>(bytes / packed_unit()), packed_type()};
  const int code = relayout(packed, from, buffer, contiguous ? from : TypedCount{count, handle});
  return code == MPI_SUCCESS ? Status::ok : Status::copy_failed;
}

Status TypeInfo::fetch(const void* from, std::byte* to, std::size_t bytes) const {
  const TypedCount all{static_cast<MPI_Count>(bytes), MPI_BYTE};
  return relayout(from, all, to, all) == MPI_SUCCESS ? Status::ok : Status::copy_failed;
}

}  // namespace mpress::mpi
