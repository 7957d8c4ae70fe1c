#include "gpu/runs.hpp"

#include <algorithm>

namespace mpress::gpu {

std::uint64_t RunList::size() const {
  std::uint64_t size = 0;
  for (const Row& row : rows_) size += row.count;
  return size;
}

void RunList::add_run(std::int64_t offset, std::uint64_t bytes) {
  if (!rows_.empty()) {
    Row& row = rows_.back();
    const std::int64_t last = row.offset + static_cast<std::int64_t>(row.count - 1) * row.stride;
    if (last + static_cast<std::int64_t>(row.bytes) == offset) {
      const std::uint64_t joined = row.bytes + bytes;
      if (--row.count == 0) rows_.pop_back();
      return add_run(last, joined);
    }
    if (row.bytes == bytes && row.count == 1) row.stride = offset - last;
    if (row.bytes == bytes && offset == last + row.stride) {
      ++row.count;
      return;
    }
  }
  rows_.push_back({offset, bytes, 0, 1});
}

void RunList::add(std::int64_t offset, std::uint64_t bytes, std::int64_t stride,
                  std::uint64_t count) {
  if (bytes == 0 || count == 0) return;
  if (stride == static_cast<std::int64_t>(bytes)) {
    add_run(offset, bytes * count);
    return;
  }
  add_run(offset, bytes);
  std::uint64_t added = 1;
  if (Row& row = rows_.back(); row.count == 1 && row.offset == offset && count > 1) {
    row.stride = stride;
    row.count = added = count;
  }
  for (; added < count; ++added) {
    add_run(offset + static_cast<std::int64_t>(added) * stride, bytes);
  }
}

void RunList::add(const RunList& other, std::int64_t offset) {
  for (const Row& row : other.rows_) add(offset + row.offset, row.bytes, row.stride, row.count);
}

Runs::Runs(const RunList& list) {
  const std::vector<RunList::Row>& rows = list.rows_;
  if (rows.empty()) return;
  const RunList::Row& first = rows.front();
  const RunList::Row& last = rows.back();
  const std::int64_t outer = rows.size() > 1 ? rows[1].offset - first.offset : 0;
  std::int64_t at = first.offset;
  const bool are_alike = std::all_of(rows.begin(), rows.end(), [&](const RunList::Row& row) {
    const bool is_in_place = row.offset == at && row.bytes == first.bytes;
    at += outer;
    return is_in_place && (row.count == 1 || row.stride == first.stride) &&
           (row.count == first.count || (&row == &last && row.count < first.count));
  });
  const std::uint64_t count = list.size();
  if (are_alike && count > 1 && count <= UINT32_MAX) {
    regular_ = {first.offset,
                first.stride,
                outer,
                first.bytes,
                static_cast<std::uint32_t>(first.count),
                static_cast<std::uint32_t>(count)};
  } else {
    list.for_each([&](const Run& run) { listed_.push_back(run); });
  }
}

}  // namespace mpress::gpu
