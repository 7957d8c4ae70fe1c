// What messages carry: contents that follow from the message's key, so that whoever knows the key
// can check them bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace stress {

enum class Data : std::uint8_t { smooth, constant, steps, sparse, noise, special, count_ };

const char* name_of(Data data);

/// The elements of a message in order, without gaps. Where there is room the first eight bytes
/// are the key itself.
std::vector<std::byte> make_content(std::uint64_t key, Element element, Data data,
                                    std::size_t elements);

/// The key at the beginning of a message; 0 where it is too short to have one.
std::uint64_t key_in(const std::byte* content, std::size_t bytes);

}  // namespace stress
