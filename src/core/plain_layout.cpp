#include "core/plain_layout.hpp"

#include <cstring>

namespace mpress::engine {
namespace {

struct PlainLayout final : Layout {
  explicit PlainLayout(std::optional<ElementType> type) {
    size = type ? element_size(*type) : 1;
    contiguous = true;
    element = type;
    leading_floats = type ? size : 0;
  }

  std::shared_ptr<const gpu::Runs> runs_of(std::int64_t, std::size_t) const override {
    return nullptr;
  }
  const gpu::RunList& first_runs() const override {
    static const gpu::RunList none;
    return none;
  }

  bool pack(const void* from, std::int64_t, bool is_readable, std::byte* to,
            std::size_t bytes) const override {
    if (!is_readable) return false;
    std::memcpy(to, from, bytes);
    return true;
  }
  Status unpack(const std::byte* packed, std::size_t bytes, void* buffer, std::int64_t,
                bool is_readable) const override {
    if (!is_readable) return Status::copy_failed;
    std::memcpy(buffer, packed, bytes);
    return Status::ok;
  }
  Status fetch(const void*, std::byte*, std::size_t) const override { return Status::copy_failed; }
};

// Never destroyed: threads may still look at them when the process ends.
const auto* const of_bytes = new PlainLayout(std::nullopt);
const auto* const of_f32 = new PlainLayout(ElementType::f32);
const auto* const of_f64 = new PlainLayout(ElementType::f64);

// Without a count of owners, which each copy would change.
const std::shared_ptr<const Layout> none;
const std::shared_ptr<const Layout> bytes(none, of_bytes), f32(none, of_f32), f64(none, of_f64);

}  // namespace

const std::shared_ptr<const Layout>& plain_layout(std::optional<ElementType> type) {
  return !type ? bytes : *type == ElementType::f32 ? f32 : f64;
}

}  // namespace mpress::engine
