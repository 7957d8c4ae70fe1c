// Where the chunks of a message come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "memory/buffer_pool.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// A chunk in memory that MPI can send: encoded, or as it is where that is no larger.
struct Chunk {
  memory::Buffer data;
  std::size_t bytes = 0;
};

/// The chunks of one message, taken in order, each once.
class ChunkSource {
 public:
  ChunkSource() = default;
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;
  virtual ~ChunkSource() = default;

  /// Waits until chunk `chunk` is there. No data where it cannot be had.
  virtual Chunk take(Job& job, std::uint64_t chunk) = 0;

  /// Takes along what the elements lie in.
  void keep(memory::Buffer packed) { packed_ = std::move(packed); }

 private:
  memory::Buffer packed_;
};

struct Elements;

/// Chunks of elements on a device; with codec none, as they are. Later chunks are encoded and
/// copied while earlier ones are sent. Null where the device has no memory or no queue.
std::unique_ptr<ChunkSource> device_chunks(Job& job, const wire::Header& header, int peer,
                                           const Elements& elements);

}  // namespace mpress::engine
