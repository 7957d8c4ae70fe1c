// Datatypes of blocks whose lengths and distances change evenly.

#include <mpress/iso.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "api/entries.hpp"
#include "api/iso/cartesian.hpp"

namespace mpress::api {
namespace {

/// Blocks in items of another type. Sums and products that leave 64 bits set `overflows`.
struct Triangle {
  std::int64_t count;
  std::int64_t first;
  std::int64_t increment;
  std::int64_t stride;
  std::int64_t stride_increment;
  bool is_literal;
  bool overflows = false;

  std::int64_t add(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    overflows |= __builtin_add_overflow(a, b, &sum);
    return sum;
  }
  std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    overflows |= __builtin_mul_overflow(a, b, &product);
    return product;
  }

  std::int64_t length(std::int64_t i) { return add(first, times(i, increment)); }

  /// Of block `i`. The distance from each block to the next grows by `stride_increment`; the
  /// paper's formula as it is printed, where `is_literal`, has the same distance everywhere.
  std::int64_t offset(std::int64_t i) {
    if (is_literal) return times(i, add(stride, stride_increment));
    const std::int64_t pairs = i % 2 == 0 ? times(i / 2, i - 1) : times(i, (i - 1) / 2);
    return add(times(i, stride), times(stride_increment, pairs));
  }
};

Wrong create(Triangle triangle, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  set_error_text({});
  if (!is_running()) return {MPI_ERR_OTHER, "MPI does not run"};
  if (!newtype) return is_null("newtype");
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const std::int64_t count = triangle.count;
  if (count < 0 || count > most) {
    return {MPI_ERR_COUNT,
            "count is " + std::to_string(count) + "; expected 0 to " + std::to_string(most)};
  }
  // Lengths change evenly: none is beyond both that of the first block and that of the last.
  for (const std::int64_t i : {std::int64_t{0}, count - 1}) {
    if (count == 0) break;
    const std::int64_t length = triangle.length(i);
    if (!triangle.overflows && length >= 0 && length <= most) continue;
    return {MPI_ERR_COUNT,
            "block " + std::to_string(i) + " has " +
                (triangle.overflows ? "2^63 items or more" : std::to_string(length) + " items") +
                "; expected 0 to " + std::to_string(most)};
  }
  constexpr MPI_Count untold = std::numeric_limits<MPI_Count>::min();
  MPI_Count lower = 0, extent = untold;
  Wrong wrong = asked(
      "datatype", [&] { return mpi::calls().Type_get_extent_x(oldtype, &lower, &extent); },
      [&] { return extent != untold; });
  if (wrong) return wrong;
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  std::int64_t first = 0, end = 0;  // of all bytes
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = triangle.length(i);
    const std::int64_t place = triangle.times(triangle.offset(i), extent);
    lengths.push_back(static_cast<int>(length));
    places.push_back(static_cast<MPI_Aint>(place));
    // An item may lie in front of its place, and end in front of it.
    for (const std::int64_t k : {std::int64_t{0}, length}) {
      const std::int64_t edge = triangle.add(place, triangle.times(k, extent));
      first = std::min(first, triangle.add(edge, std::min<std::int64_t>(lower, 0)));
      end = std::max(end, triangle.add(edge, std::max<std::int64_t>(lower, 0)));
    }
  }
  triangle.add(end, -first);
  if (triangle.overflows) return {MPI_ERR_COUNT, "the blocks lie 2^63 bytes or more apart"};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  wrong = asked(
      "datatype",
      [&] {
        return mpi::calls().Type_create_hindexed(static_cast<int>(count), lengths.data(),
                                                 places.data(), oldtype, &made);
      },
      [&] { return made != MPI_DATATYPE_NULL; });
  if (!wrong) *newtype = made;
  return wrong;
}

int create_or_raise(const Triangle& triangle, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return guarded(MPI_COMM_NULL,
                 [&] { return raise(MPI_COMM_NULL, create(triangle, oldtype, newtype)); });
}

}  // namespace
}  // namespace mpress::api

using namespace mpress;

extern "C" int mpress_type_create_triangular(MPI_Count count, MPI_Count firstblock,
                                             MPI_Count blockincrement, MPI_Count stride,
                                             MPI_Count strideincrement, MPI_Datatype oldtype,
                                             MPI_Datatype* newtype) {
  return api::create_or_raise({count, firstblock, blockincrement, stride, strideincrement, false},
                              oldtype, newtype);
}

extern "C" int mpress_type_create_triangular_literal(MPI_Count count, MPI_Count firstblock,
                                                     MPI_Count blockincrement, MPI_Count stride,
                                                     MPI_Count strideincrement,
                                                     MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return api::create_or_raise({count, firstblock, blockincrement, stride, strideincrement, true},
                              oldtype, newtype);
}
