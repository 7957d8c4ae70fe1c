// What mpress knows about a datatype: is it a run of f32 or f64, and does it lie without gaps?
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/layout.hpp"
#include "gpu/runs.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

inline MPI_Datatype type_of(ElementType type) {
  return type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE;
}

struct TypeInfo : engine::Layout {
  bool is_predefined = false;
  MPI_Datatype handle = MPI_DATATYPE_NULL;  ///< the type itself, or what lasting() has made of it
  /// Of a type with gaps.
  struct KnownRuns {
    std::once_flag first_made;
    gpu::RunList first;  ///< see first_runs()
    std::mutex mutex;    ///< of the rest; see runs_of()
    MPI_Count count = 0;
    std::shared_ptr<const gpu::Runs> all;
    std::atomic<bool> are_irregular{false};  ///< those of some number of items were
  };
  std::shared_ptr<KnownRuns> runs;

  /// The type of its elements once they are packed.
  MPI_Datatype packed_type() const { return element ? type_of(*element) : MPI_PACKED; }

  using Layout::runs_of;
  std::shared_ptr<const gpu::Runs> runs_of(std::int64_t count, std::size_t bytes) const override;
  std::shared_ptr<const gpu::Runs> regular_runs_of(std::int64_t count) const override;
  bool pack(const void* from, std::int64_t count, bool is_readable, std::byte* to,
            std::size_t bytes) const override;
  /// They are found once a type, which may have more runs than a message should cost.
  const gpu::RunList& first_runs() const override;
  Status unpack(const std::byte* packed, std::size_t bytes, void* buffer, std::int64_t count,
                bool is_readable) const override;
  Status fetch(const void* from, std::byte* to, std::size_t bytes) const override;
};

/// The entry of a datatype; null where it is not committed, or MPI refuses to tell about it. MPI
/// then refuses the program's call too, if it is given the same type.
std::shared_ptr<TypeInfo> type_info(MPI_Datatype type);

/// The same for a quick look: the entry may be gone after the next call of MPI's or for another
/// type.
std::shared_ptr<const TypeInfo> glance_at_type(MPI_Datatype type);

/// The same entry with a handle that lasts as long as it, whatever the program frees: for what goes
/// on after the call. That of a type without gaps, which nobody asks MPI about, is as it was.
std::shared_ptr<TypeInfo> lasting(std::shared_ptr<TypeInfo> info);

/// A datatype that lasts, whatever the program frees: one made of it, or MPI's own as it is. Where
/// MPI has no memory for that, the program's.
///
/// While it lives, MPI keeps the program's type, whose attributes it deletes with it. So one lives
/// no longer than what MPI itself would keep the type for. It is no duplicate, which would have
/// copies of these attributes.
class KeptType {
 public:
  KeptType(MPI_Datatype type, bool is_predefined);
  KeptType(const KeptType&) = delete;
  KeptType& operator=(const KeptType&) = delete;
  ~KeptType();

  MPI_Datatype get() const { return own_ != MPI_DATATYPE_NULL ? own_ : type_; }

 private:
  const MPI_Datatype type_;
  MPI_Datatype own_ = MPI_DATATYPE_NULL;
};

/// Forgets all datatypes, and so frees what mpress keeps of them. Before MPI ends.
void forget_types();

}  // namespace mpress::mpi
