// How large the chunks of a message between devices are.
#pragma once

#include <algorithm>
#include <cstddef>

#include "link/list.hpp"

namespace mpress::policy {

/// Bytes of elements in a chunk of a message that is not encoded, where those by way of the host
/// have `base`. Both sides copy several chunks at once, more and more: so the first is short, as
/// nothing else happens while it is copied.
constexpr std::size_t linked_raw_chunk(std::size_t bytes, std::size_t base) {
  constexpr std::size_t most = 2048;
  std::size_t chunk = 2 * base;
  while (bytes / chunk >= most) chunk *= 2;
  return chunk;
}

/// The same for one that is encoded. Each of n chunks costs c beyond its bytes, and n + 1 stages
/// (E/n + c) of encoding or decoding take the least time for n = sqrt(E/c), with E the time of all
/// of it: at 1.5 TB/s and 3 us a chunk, sqrt(bytes / 4 MB).
constexpr std::size_t linked_chunk(std::size_t bytes, std::size_t base) {
  constexpr std::size_t most = 64;
  std::size_t chunks = 1;
  while (chunks < most && (chunks + 1) * (chunks + 1) * 4 * base <= bytes) ++chunks;
  return ((bytes + chunks - 1) / chunks + base - 1) / base * base;
}

/// One that is not encoded and goes by memory of the host. Copies out and in overlap, each of
/// another chunk: n chunks take S/B (1 + 1/n) + n c, with c what each takes beyond its bytes, and
/// the least for chunks of sqrt(S B c). B c is 128 KB where the bus carries 50 GB/s. The power of
/// two nearest to that; of short messages it is the host that takes longer for each than its copy,
/// so they are cut in two at most.
///
/// Where only `window` bytes are on their way at a time, a quarter of that at most: one is copied
/// out, one in, and one is waited for on either side.
constexpr std::size_t host_raw_chunk(std::size_t bytes, std::size_t base, std::size_t window = 0) {
  std::size_t chunk = base / 2;
  while (2 * chunk * chunk < bytes * (base / 8)) chunk *= 2;
  while (window > 0 && chunk > base / 4 && 4 * chunk > window) chunk /= 2;
  constexpr std::size_t most = 1024;  // of a message's, as slots are not without number
  while (bytes / chunk >= most) chunk *= 2;
  return chunk;
}

/// Bytes of raw blocks that all GPUs of a host may have on their way by its memory, to stay in the
/// last level of its cache, of `cache` bytes: devices write to a part of that alone (Intel's Data
/// Direct I/O: two ways of eleven to sixteen). Four H100s beside 300 MB carried 42 GB/s each way in
/// 32 MB, and 24 in 64 MB, as in fresh memory.
constexpr std::size_t host_window(std::size_t cache) {
  constexpr std::size_t least = 32u << 20;
  return std::clamp(cache / 9, least, 2 * least);
}

/// The same for one that is encoded: payloads are short, but what is published waits for its copy.
constexpr std::size_t host_chunk(std::size_t bytes, std::size_t base) {
  const std::size_t most = 16 * base;
  const std::size_t chunk = linked_chunk(bytes, base);
  return bytes / most < 128 && chunk > most ? most : chunk;
}

/// Bytes of elements in a chunk of a message by a link of the list; `window`: as host_raw_chunk()
/// has it.
constexpr std::size_t raw_chunk(const link::Attributes& link, std::size_t bytes, std::size_t base,
                                std::size_t window) {
  return link.is_through_host ? host_raw_chunk(bytes, base, window) : linked_raw_chunk(bytes, base);
}
constexpr std::size_t encoded_chunk(const link::Attributes& link, std::size_t bytes,
                                    std::size_t base) {
  return link.is_through_host ? host_chunk(bytes, base) : linked_chunk(bytes, base);
}

/// One that is encoded where payloads, which have `share` of the elements' bytes, take memory that
/// others have just read: few are on their way at a time, and a host gives each copy. Those of 1.5
/// MB take the bus twice as long as the host.
constexpr std::size_t windowed_chunk(std::size_t bytes, std::size_t base, double share) {
  const auto payload = static_cast<double>(base + base / 2);
  const auto chunk = static_cast<std::size_t>(payload / std::max(share, 1e-3)) / base * base;
  constexpr std::size_t most = 256;  // as slots are not without number
  const std::size_t least = std::max(2 * base, (bytes / most + base - 1) / base * base);
  return std::min(std::max(chunk, least), linked_chunk(bytes, base));
}

/// The same by an MPI that takes memory of devices: encoding, MPI and decoding overlap from 8 MB
/// on.
constexpr std::size_t device_chunk(std::size_t bytes, std::size_t base) {
  if (bytes < 8 * base || bytes > 16 * base) return linked_chunk(bytes, base);
  return ((bytes + 1) / 2 + base - 1) / base * base;
}

}  // namespace mpress::policy
