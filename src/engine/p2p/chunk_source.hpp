// Where the chunks of a message come from that goes by MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"
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

  /// The next chunk, if it is there: host memory is encoded by this very call, devices work by
  /// themselves. Never waits. Not called again once it failed.
  virtual gpu::State take(Job& job, Chunk& chunk) = 0;

  /// Does take() encode in the calling thread?
  virtual bool encodes_here() const { return false; }

  /// Once it failed: an MPI error code.
  int code() const { return code_; }

  /// Takes along what the elements lie in.
  void keep(memory::Buffer packed) { packed_ = std::move(packed); }

 protected:
  int code_ = MPI_SUCCESS;

 private:
  memory::Buffer packed_;
};

struct Elements;

/// Waits for the first chunk. False where it failed.
bool take_first(Job& job, ChunkSource& source, Chunk& chunk);

/// Chunks of elements in host memory; the header names a codec. Takes room for all at once, so that
/// no later one lacks it. Null where memory is short.
std::unique_ptr<ChunkSource> host_chunks(Job& job, const wire::Header& header, int peer,
                                         const Elements& elements);

/// Chunks of elements on a device; with codec none, as they are. Later chunks are encoded and
/// copied while earlier ones are sent. Null where the device has no memory or no queue.
std::unique_ptr<ChunkSource> device_chunks(Job& job, const wire::Header& header, int peer,
                                           const Elements& elements);

}  // namespace mpress::engine
