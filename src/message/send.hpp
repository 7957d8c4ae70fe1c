// A message to one reader or to several whose data travels apart from what MPI matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

/// Whoever has one hands its beginnings to MPI, and calls advance() until that returns true.
class Send {
 public:
  explicit Send(std::uint64_t operation) : operation_(operation) {}
  Send(const Send&) = delete;
  Send& operator=(const Send&) = delete;
  virtual ~Send() = default;

  /// Bytes that MPI carries to a reader, from memory that is here as long as this: a header, or a
  /// frame with all of the data. Without bytes where nothing of the message will come.
  struct Beginning {
    std::size_t reader = 0;  ///< its number among the readers
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  std::span<const Beginning> beginnings() const { return beginnings_; }

  /// The serial number of the message, for Links::cancel() and the outbox.
  std::uint64_t operation() const { return operation_; }

  /// Lets the data proceed; the beginnings are on their way, or will be. Never waits, neither for a
  /// device nor for a reader. True once the program's buffer is free and all has been handed over
  /// or published, or will not come: see status(), and the readers learn of it, too. Raises
  /// nothing. Not called again once it returned true. `waits_for_more`: the caller waits for
  /// something else as well, so an offer to the reader may stand for longer.
  virtual bool advance(bool waits_for_more) = 0;

  /// Must somebody call advance() for the readers to get all of the data? No, where a device
  /// publishes it by itself, or where it is offered, and the reader can take it alone.
  virtual bool needs_host() const = 0;

  /// Is the data offered to the reader where the program has it?
  virtual bool is_offered() const { return false; }

  /// The first failure so far.
  virtual Status status() const = 0;

  /// Once advance() has returned true: the header of a message to one reader, for whoever keeps it
  /// until MPI is done with it.
  memory::Buffer release_header() { return std::move(header_memory_); }

 protected:
  std::vector<Beginning> beginnings_;
  memory::Buffer header_memory_;

 private:
  const std::uint64_t operation_;
};

}  // namespace mpress::engine
