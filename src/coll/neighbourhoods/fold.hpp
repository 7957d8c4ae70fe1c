// Combining what neighbours sent, by the program's operator.
#pragma once

#include <cstddef>

#include "codec/float_environment.hpp"
#include "coll/blocks/block_map.hpp"
#include "core/status.hpp"

namespace mpress::engine {

/// Vectors without gaps, of one length. One thread at a time.
class Fold {
 public:
  Fold() = default;
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;
  virtual ~Fold() = default;

  /// Bytes of a vector.
  std::size_t bytes() const { return bytes_; }

  /// The vector at an address; null: there is no memory for one.
  BlockData vector(void* at) const { return {at, at ? count_ : 0, layout_, bytes_}; }

  /// Operators of MPI's own round and flush so from now on, whichever thread combines.
  void round_as(FloatModes modes) { modes_ = modes; }

  /// into = from op into.
  virtual Status combine(const void* from, void* into) = 0;

 protected:
  std::size_t bytes_ = 0;
  std::int64_t count_ = 0;  ///< of items of the layout
  std::shared_ptr<const Layout> layout_;
  FloatModes modes_ = FloatModes::of_thread();
};

}  // namespace mpress::engine
