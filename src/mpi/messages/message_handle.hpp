// Handles of matched messages that mpress holds itself. MPI gives out none of their values, neither
// as a handle of C nor as the integer that other languages know it by.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi/calls/calls.hpp"

namespace mpress::engine {

/// The integer form: no kind of handle in MPICH begins so, and Open MPI counts from zero.
inline constexpr std::uint32_t message_handle_base = 0x50000000;
inline constexpr std::uint32_t message_handle_serials = 0x01000000;

inline bool is_own_message(int number) {
  return static_cast<std::uint32_t>(number) - message_handle_base < message_handle_serials;
}

/// The handle of an integer form. Where handles are pointers it is an odd address.
inline MPI_Message own_message(int number) {
  const auto value = static_cast<std::uint32_t>(number);
  const std::uintptr_t bits =
      sizeof(MPI_Message) == sizeof(int) ? value : (std::uintptr_t{value} << 1) | 1;
  MPI_Message handle;
  std::memcpy(&handle, &bits, sizeof handle);  // little-endian: the low bytes
  return handle;
}

/// The integer form of a handle that own_message() made; 0 for MPI's own handles.
inline int own_message_number(MPI_Message handle) {
  const std::uintptr_t bits = mpi::handle_bits(handle);
  const std::uintptr_t value = sizeof(MPI_Message) == sizeof(int) ? bits : bits >> 1;
  const bool own = sizeof(MPI_Message) == sizeof(int) || (bits & 1);
  const int number = static_cast<int>(value);
  return own && value <= INT32_MAX && is_own_message(number) ? number : 0;
}

}  // namespace mpress::engine
