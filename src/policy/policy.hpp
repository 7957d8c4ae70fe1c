// Whether to compress a message: the cost model T = Tc + S / (CR B) + Td against S / B
// (IPDPS'21, section IV), fed with what this process has seen. Pure: it knows no MPI, no buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "codec/spec.hpp"

namespace mpress::policy {

/// Decides for one path. Thread-safe; its counters may lag, its decisions never wait.
class Policy {
 public:
  /// `link_rate`: bytes a second of the path, 0 where it was never measured: then compression is
  /// not known to pay, and nothing is compressed.
  void configure(bool force, double link_rate);

  /// Should a message of `bytes` be encoded with `codec`? Now and then yes although it does not
  /// pay, to see whether that has changed; such probes cost at most about 1 % of the wire time.
  bool worth_it(Codec codec, std::size_t bytes);

  /// What an encode took and gave; `wire_bytes` is the size of the frame.
  void encoded(Codec codec, std::size_t raw_bytes, std::size_t wire_bytes, std::uint64_t ns);
  void decoded(Codec codec, std::size_t raw_bytes, std::uint64_t ns);

 private:
  struct Seen {
    std::atomic<float> wire_per_raw{0};  ///< running averages; 0: never seen
    std::atomic<float> encode_ns_per_byte{0};
    std::atomic<float> decode_ns_per_byte{0};
    std::atomic<std::uint32_t> samples{0};
    std::atomic<std::uint32_t> skipped{0};  ///< messages since the last probe
  };
  static constexpr std::size_t size_classes = 48;
  Seen& seen(Codec codec, std::size_t bytes);

  bool force_ = false;
  double ns_per_wire_byte_ = 0;
  std::array<std::array<Seen, size_classes>, 4> seen_;
};

}  // namespace mpress::policy
