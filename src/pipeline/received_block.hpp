// An opaque block whose chunks come, to be passed on, decoded from here, or added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

class ReceivedBlock final : public OpaqueBlock {
 public:
  explicit ReceivedBlock(Runtime& runtime) : OpaqueBlock(runtime) {}

  /// Before begin(): what finds it a home, in which those that it is passed on to find each chunk
  /// as soon as it is there; of a link whose slots devices publish.
  using FindHome = std::function<Home(const Chunking& cut, int device)>;
  void pass_on_from(FindHome find_home) { find_home_ = std::move(find_home); }

  /// Chunks follow, for a buffer of `device` or the host. `cut.may_be_elements`: of those that
  /// come. `is_homeless`: they go to no home.
  void begin(const Chunking& cut, int device, bool is_homeless);

  /// Where a chunk is brought, of at most cut().room() bytes; null: there is no memory.
  std::byte* place_for(std::uint64_t chunk, std::size_t bytes);

  /// For who brings a chunk of `bytes` bytes there: what its device publishes it by, in stream
  /// order; null: nothing.
  std::uint32_t* flag_for(std::uint64_t chunk, std::size_t bytes);

  /// The next chunk is there.
  void note(std::uint64_t chunk, std::size_t bytes, bool is_elements);

  /// It will not be whole, and no more is brought. `status`: which status() gives.
  void give_up(Status status);

  /// Can it be sent: is it whole, or in a home where what is left to come will be found?
  bool may_leave() const {
    // It may become whole in between.
    const bool comes = has_begun() && home_.link && !is_made_.load(std::memory_order_acquire);
    return comes || is_whole();
  }

  /// A home that fails goes with the block: this rank may still decode what is there.
  bool advance() override { return is_made_.load(std::memory_order_acquire); }

 private:
  FindHome find_home_;
};

}  // namespace mpress::engine
