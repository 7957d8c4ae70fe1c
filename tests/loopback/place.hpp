// Elements of a rank that is a thread, anywhere in its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "coll/blocks/block_map.hpp"
#include "loopback/messages.hpp"

namespace mpress::loopback {

/// They may lie on a device and with gaps, unless they are plain.
struct Place {
  Place(ElementType type, std::size_t bytes_of_elements, std::mt19937& random,
        bool is_plain = false)
      : bytes(bytes_of_elements) {
    const std::size_t unit = element_size(type), run = is_plain ? unit : unit * (1 + random() % 3);
    const bool has_gaps = !is_plain && random() % 3 == 0;
    const std::size_t stride = has_gaps ? run + unit * (random() % 3) : run;
    layout = std::make_shared<Strided>(type, run, stride);
    items = static_cast<std::int64_t>(bytes / run);
    const unsigned where = is_plain ? 0 : random() % 4;
    memory.emplace(where < 2    ? gpu::host
                   : where == 2 ? 1
                                : 0,
                   layout->extent(items), random() % 4 == 0 ? unit : 0);
    memory->fill(layout->extent(items));
  }

  void write(const std::vector<std::byte>& elements) {
    std::vector<std::byte> all(layout->extent(items), Memory::filling);
    CHECK(layout->unpack(elements.data(), elements.size(), all.data(), items, true).is_ok());
    memory->write(all.data(), all.size());
  }
  std::vector<std::byte> read() const {
    const std::vector<std::byte> all = memory->read(layout->extent(items));
    std::vector<std::byte> elements(bytes);
    CHECK(layout->pack(all.data(), items, true, elements.data(), bytes));
    return elements;
  }
  engine::BlockData data() const { return {memory->data(), items, layout, bytes}; }

  std::size_t bytes;
  std::shared_ptr<Strided> layout;
  std::int64_t items;
  std::optional<Memory> memory;
};

}  // namespace mpress::loopback
