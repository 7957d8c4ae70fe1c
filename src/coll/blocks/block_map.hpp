// Where the blocks of a collective call lie in this process. A schedule knows their numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/layout.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

/// The data of a block in this process: `count` items of a layout; without bytes where there are
/// none. Then it need have no layout. Without `data`, and with a `count` of 0, there was no memory
/// for it.
struct BlockData {
  void* data = nullptr;
  std::int64_t count = 0;
  std::shared_ptr<const Layout> layout = nullptr;
  std::size_t bytes = 0;
};

class BlockMap {
 public:
  explicit BlockMap(const schedule::Task& task) : task_(task) {}
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;
  virtual ~BlockMap() = default;

  const schedule::Task& task() const { return task_; }

  /// Of a block that this process sends; of one that it receives.
  virtual BlockData outgoing(schedule::Block block) const = 0;
  virtual BlockData incoming(schedule::Block block) const = 0;

 private:
  const schedule::Task task_;
};

}  // namespace mpress::engine
