// How the data of a message lies in its buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "codec/element.hpp"
#include "core/status.hpp"
#include "gpu/runs.hpp"

namespace mpress::engine {

/// Of items of one datatype, one behind the other.
struct Layout {
  Layout() = default;
  Layout(const Layout&) = default;
  Layout& operator=(const Layout&) = default;
  virtual ~Layout() = default;

  std::size_t size = 0;                ///< bytes of data in one item
  bool contiguous = false;             ///< n items are n * size bytes from the buffer's address on
  std::optional<ElementType> element;  ///< set where all data is of one float type
  std::ptrdiff_t first_byte = 0;       ///< the least offset of its data
  std::size_t leading_floats = 0;      ///< bytes of one float type that an item begins with

  /// Bytes of what packed data is made of.
  std::size_t packed_unit() const { return element ? element_size(*element) : 1; }

  // Of a layout with gaps:

  /// The runs of `count` items, offsets relative to the buffer's address; of the last run, no more
  /// than makes `bytes` in all.
  virtual std::shared_ptr<const gpu::Runs> runs_of(std::int64_t count, std::size_t bytes) const = 0;
  std::shared_ptr<const gpu::Runs> runs_of(std::int64_t count) const {
    return runs_of(count, SIZE_MAX);
  }

  /// The runs of `count` items, where they are regular (gpu/runs.hpp); else null.
  virtual std::shared_ptr<const gpu::Runs> regular_runs_of(std::int64_t count) const {
    auto runs = runs_of(count);
    return runs->are_regular() ? std::move(runs) : nullptr;
  }

  /// Copies the data of `count` items at `from`, `bytes` bytes, without gaps to `to` in memory of
  /// the host. `is_readable`: the CPU reads what is there. False where that failed.
  virtual bool pack(const void* from, std::int64_t count, bool is_readable, std::byte* to,
                    std::size_t bytes) const = 0;

  /// The runs of the first wire::min_frame_bytes bytes of many items.
  virtual const gpu::RunList& first_runs() const = 0;

  // Of any layout:

  /// The opposite of pack(): lays `bytes` bytes of packed data, which may be fewer than fit, out in
  /// a buffer of `count` items.
  virtual Status unpack(const std::byte* packed, std::size_t bytes, void* buffer,
                        std::int64_t count, bool is_readable) const = 0;

  /// Copies `bytes` bytes to memory of the host from memory that the CPU need not reach, and that
  /// is no device's that mpress works with.
  virtual Status fetch(const void* from, std::byte* to, std::size_t bytes) const = 0;
};

}  // namespace mpress::engine
