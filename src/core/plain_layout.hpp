// Elements, or bytes, without gaps.
#pragma once

#include <memory>
#include <optional>

#include "codec/element.hpp"
#include "core/layout.hpp"

namespace mpress::engine {

/// Of elements of `type`, or of bytes; the same object each time.
const std::shared_ptr<const Layout>& plain_layout(std::optional<ElementType> type);

}  // namespace mpress::engine
