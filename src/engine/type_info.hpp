// What mpress knows about a datatype: is it a run of f32 or f64, and does it lie without gaps?
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "codec/element.hpp"
#include "link/mpi.hpp"

namespace mpress::engine {

struct TypeInfo {
  std::size_t size = 0;     ///< bytes of data in one
  bool contiguous = false;  ///< n of them are n * size bytes from the buffer's address on
  std::optional<ElementType> element;  ///< set where every leaf is the same float type

  /// The type of its elements once they are packed.
  MPI_Datatype packed_type() const {
    if (!element) return MPI_PACKED;
    return *element == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE;
  }
};

/// The entry of a committed datatype; null where MPI refuses to tell about it.
std::shared_ptr<TypeInfo> type_info(MPI_Datatype type);

}  // namespace mpress::engine
