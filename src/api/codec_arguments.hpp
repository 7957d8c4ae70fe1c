// What the calls of include/mpress/codec.h have in common: their arguments, and errors.
#pragma once

#include <mpress/codec.h>

#include <cstddef>
#include <string>

#include "codec/codec.hpp"

#define MPRESS_PUBLIC extern "C" __attribute__((visibility("default")))

namespace mpress::api {

/// Keeps the words of a failure for mpress_codec_error_text(); returns `status`.
mpress_codec_status fail(mpress_codec_status status, std::string text);
mpress_codec_status wrong(std::string text);

/// What is wrong with these arguments; empty where nothing is.
std::string read(const char* text, mpress_element type, Spec& spec);

/// Does an array of so many elements fit memory?
bool is_countable(mpress_element type, std::size_t count);

/// The most bytes of a payload.
std::size_t room_for(const Spec& spec, mpress_element type, std::size_t count);

mpress_codec_status too_little_room(std::size_t room, std::size_t needed);

mpress_codec_status status_of(codec::Status status);

}  // namespace mpress::api
