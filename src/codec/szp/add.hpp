// Adding units in quanta, for the instruction set MPRESS_ISA: the decoder's quanta, the encoder's
// packing, and a sum between them.
#pragma once

#include <algorithm>
#include <new>
#include <span>

#include "codec/szp/unit.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

/// Sums of quanta, modulo 2^32 or 2^64. Those of most_summands are exact where no bit of `reach` is
/// as high as the type's sum_limit.
template <class T>
struct QuantumSums {
  using Bits = typename Traits<T>::Bits;

  alignas(64) Bits sums[unit_bytes / sizeof(T)] = {};
  Bits reach = 0;  ///< or of folded() of all summands
};

/// Memory of a sum: its quanta, and one of what works with them.
template <class T>
struct AddingUnit {
  using Bits = typename Traits<T>::Bits;
  static constexpr std::size_t elements = unit_bytes / sizeof(T);

  struct Summand {
    alignas(64) T elements[AddingUnit::elements];
    alignas(64) Bits quanta[AddingUnit::elements];
  };

  QuantumSums<T> sums;
  union {
    Summand summand;
    alignas(64) T decoded[elements];
    alignas(64) unsigned char packing[sizeof(EncodingUnit<T, typename Traits<T>::Quantum>)];
  };

  AddingUnit() {}
};

/// x of two's complement where it is not negative, else -x - 1: below 2^n for x in [-2^n, 2^n).
template <class Bits>
Bits folded(Bits x) {
  return x ^ (Bits{0} - (x >> (8 * sizeof(Bits) - 1)));
}

template <class T, class U>
bool add_blocks(QuantumSums<T>& s, std::uint32_t head, Reader reader, std::uint32_t blocks) {
  using Bits = typename Traits<T>::Bits;
  const unsigned char* maps;
  Bits reach = s.reach;
  Bits* sums = s.sums;
  const bool read = read_blocks<T, U>(head, reader, blocks, maps, [&](const U* q) {
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      Bits quantum = q[i];
      if constexpr (sizeof(U) < sizeof(Bits)) {
        quantum = static_cast<Bits>(std::int64_t{static_cast<std::int32_t>(q[i])});
      }
      sums[i] += quantum;
      reach |= folded(quantum);
    }
    sums += block_elements;
  });
  s.reach = reach;
  return read && reader.words == 0;
}

/// Adds the quanta of one unit.
template <class T>
Status accumulate(QuantumSums<T>& s, CodedUnit unit, std::uint32_t blocks) {
  if (unit.words == 0) return Status::ok;
  const std::uint32_t head = get_word(unit.at);
  const Reader reader{unit.at + 4, unit.words - 1};
  if ((head & ~known_head) != 0) return Status::corrupt;
  if ((head & has_exceptions) != 0) return Status::inexact;
  bool read;
  if constexpr (sizeof(T) == 8) {
    read = (head & is_wide) != 0 ? add_blocks<T, std::uint64_t>(s, head, reader, blocks)
                                 : add_blocks<T, std::uint32_t>(s, head, reader, blocks);
  } else {
    read = (head & is_wide) == 0 && add_blocks<T, std::uint32_t>(s, head, reader, blocks);
  }
  if (!read) return Status::corrupt;
  return s.reach < Traits<T>::sum_limit ? Status::ok : Status::inexact;
}

/// The quanta of elements. False where the encoder would keep one exactly.
template <class T>
bool quantize_elements(const Quantizer<T>& z, const unsigned char* in, std::size_t count,
                       typename AddingUnit<T>::Summand& summand) {
  using Bits = typename Traits<T>::Bits;
  using Quantum = typename Traits<T>::Quantum;
  constexpr T most = Traits<T>::max_quantum;
  T* const x = summand.elements;
  Bits* const quanta = summand.quanta;
  __builtin_memcpy(x, in, count * sizeof(T));
  Bits doubtful = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T scaled = x[i] * z.inverse;
    const T shifted = scaled + Traits<T>::magic;
    const T error = x[i] - (shifted - Traits<T>::magic) * z.step;
    quanta[i] = __builtin_bit_cast(Bits, shifted) - __builtin_bit_cast(Bits, Traits<T>::magic);
    doubtful |= static_cast<Bits>(!(magnitude(scaled) <= most)) |
                static_cast<Bits>(!(magnitude(error) < z.limit));
  }
  if (doubtful == 0) return true;
  for (std::size_t i = 0; i < count; ++i) {
    Quantum quantum;
    if (!quantize(z, x[i], quantum)) return false;
    quanta[i] = static_cast<Bits>(quantum);
  }
  return true;
}

/// Adds the quanta of elements.
template <class T>
Status accumulate_elements(AddingUnit<T>& unit, const Quantizer<T>& z, const unsigned char* in,
                           std::size_t count) {
  using Bits = typename Traits<T>::Bits;
  QuantumSums<T>& s = unit.sums;
  if (!quantize_elements(z, in, count, unit.summand)) return Status::inexact;
  const Bits* const quanta = unit.summand.quanta;
  Bits reach = s.reach;
  for (std::size_t i = 0; i < count; ++i) {
    s.sums[i] += quanta[i];
    reach |= folded(quanta[i]);
  }
  s.reach = reach;
  return s.reach < Traits<T>::sum_limit ? Status::ok : Status::inexact;
}

/// The elements of sums, as the decoder has them.
template <class T>
void decode_sums(AddingUnit<T>& unit, T step, std::size_t count, unsigned char* decoded) {
  using Quantum = typename Traits<T>::Quantum;
  for (std::size_t i = 0; i < count; ++i) {
    unit.decoded[i] = static_cast<T>(static_cast<Quantum>(unit.sums.sums[i])) * step;
  }
  __builtin_memcpy(decoded, unit.decoded, count * sizeof(T));
}

template <class T, class I>
EncodedUnit pack_sums(AddingUnit<T>& unit, std::uint32_t blocks, Mode mode, std::size_t count,
                      unsigned char* out, std::size_t room) {
  static_assert(sizeof(EncodingUnit<T, I>) <= sizeof unit.packing);
  auto& u = *new (unit.packing) EncodingUnit<T, I>;
  u.blocks = blocks;
  I* q = u.quanta();
  I any = 0;
  for (std::size_t i = 0; i < std::size_t{blocks} * block_elements; ++i) {
    q[i] = static_cast<I>(unit.sums.sums[i]);
    any |= q[i];
  }
  u.any = any;
  return pack_unit(u, mode, nullptr, count, out, room);
}

template <class T>
Status add_as(const Quantizer<T>& z, Mode mode, std::span<const CodedUnit> units, std::size_t count,
              unsigned char* out, std::size_t room, unsigned char* decoded, EncodedUnit& sum,
              void* scratch) {
  using Bits = typename Traits<T>::Bits;
  sum = {0, false};
  if (std::ranges::all_of(units, [](const CodedUnit& unit) { return unit.words == 0; })) {
    if (decoded) __builtin_memset(decoded, 0, count * sizeof(T));
    return Status::ok;
  }
  const auto blocks = static_cast<std::uint32_t>(ceil_div(count, block_elements));
  static_assert(sizeof(AddingUnit<T>) <= scratch_bytes);
  auto& adding = *new (scratch) AddingUnit<T>;
  QuantumSums<T>& s = adding.sums;
  for (const CodedUnit& unit : units) {
    const Status status = unit.is_elements ? accumulate_elements(adding, z, unit.at, count)
                                           : accumulate(s, unit, blocks);
    if (status != Status::ok) return status;
  }
  Bits sum_reach = 0;
  for (std::size_t i = 0; i < std::size_t{blocks} * block_elements; ++i) {
    sum_reach |= folded(s.sums[i]);
  }
  if (sum_reach >= Traits<T>::sum_limit) return Status::inexact;
  if (decoded) decode_sums(adding, z.step, count, decoded);
  if (!out) return Status::ok;
  // As the encoder does it, whatever the inputs hold past the end.
  for (std::size_t i = count; i < std::size_t{blocks} * block_elements; ++i) {
    s.sums[i] = s.sums[count - 1];
  }
  if constexpr (sizeof(T) == 8) {
    Bits reach = 0;
    for (std::size_t i = 0; i < count; ++i) reach |= folded(s.sums[i]);
    if (reach >= static_cast<Bits>(narrow_limit)) {
      sum = pack_sums<T, std::int64_t>(adding, blocks, mode, count, out, room);
      return Status::ok;
    }
  }
  sum = pack_sums<T, std::int32_t>(adding, blocks, mode, count, out, room);
  return Status::ok;
}

}  // namespace

Status add_unit(const Quantizer<float>& z, Mode mode, std::span<const CodedUnit> units,
                std::size_t count, unsigned char* out, std::size_t room, unsigned char* decoded,
                EncodedUnit& sum, void* scratch) {
  return add_as<float>(z, mode, units, count, out, room, decoded, sum, scratch);
}

Status add_unit(const Quantizer<double>& z, Mode mode, std::span<const CodedUnit> units,
                std::size_t count, unsigned char* out, std::size_t room, unsigned char* decoded,
                EncodedUnit& sum, void* scratch) {
  return add_as<double>(z, mode, units, count, out, room, decoded, sum, scratch);
}

}  // namespace mpress::codec::szp::MPRESS_ISA
