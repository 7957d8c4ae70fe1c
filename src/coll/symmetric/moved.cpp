#include "coll/symmetric/moved.hpp"

#include "core/runtime.hpp"

namespace mpress::engine {

void count_by_kernel(Runtime& runtime, trace::Called called, trace::Way way, int rank,
                     const Moved& sent, const Moved& received) {
  const auto count = [&](trace::Direction direction, const Moved& moved) {
    if (moved.raw_bytes == 0) return;
    trace::Key key{direction, called, rank, moved.codec};
    key.way = way;
    key.is_on_device = true;
    trace::Row& row = runtime.record.row(key);
    trace::add(row.messages, 1);
    trace::add(row.raw_bytes, moved.raw_bytes);
    trace::add(row.wire_bytes, moved.wire_bytes);
  };
  count(trace::Direction::send, sent);
  count(trace::Direction::receive, received);
}

}  // namespace mpress::engine
