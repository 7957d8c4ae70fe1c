// Links and codecs, measured in MPI_Init where no profile has their costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "policy/profile.hpp"
#include "schedule/hosts.hpp"

namespace mpress::engine {

struct Runtime;

/// Whom a rank sends to, and who sends to it, while all do so at once.
struct Partners {
  static constexpr int no_rank = -1;
  int to = no_rank;
  std::vector<int> from;
};

/// The ranks of a host in a ring.
Partners ring_within_host(const schedule::Hosts& hosts, int rank);

/// The hosts, two or more, in a ring: each rank sends to the one of its place on the next host,
/// modulo how many that has.
Partners ring_of_hosts(const schedule::Hosts& hosts, int rank);

/// The binding's part of a measurement. All ranks call a function together.
class ProbeExchange {
 public:
  /// Nanoseconds until the rank's own message was over, and until all of its messages were.
  struct Took {
    std::uint64_t own_ns;
    std::uint64_t all_ns;
  };

  /// Sends a message of `bytes` bytes, and receives one from each that sends. The message sent may
  /// still lie in a buffer; where as many messages come as go, `own_ns` is that of all.
  virtual Took exchange(const Partners& partners, std::size_t bytes) = 0;

  /// Each number becomes the greatest that any rank has.
  virtual void find_greatest(std::span<std::uint64_t> numbers) = 0;

 protected:
  ~ProbeExchange() = default;
};

/// Of one kind of link. Rates are in bytes a second. It ends by times that all ranks agree on.
class RateProbe {
 public:
  RateProbe(ProbeExchange& exchange, Partners partners)
      : exchange_(exchange), partners_(std::move(partners)) {}

  int partner() const { return partners_.to; }
  bool has_partner() const { return partner() != Partners::no_rank; }

  struct Found {
    std::uint64_t rate;
    bool is_certain;  ///< it is the link's, or higher than any codec's: the same on all ranks
  };

  /// Messages grow until they take long, and longer the longer they are, or no codec is as fast:
  /// `codec_rate`, positive, is the fastest's. A busy machine makes messages of all sizes take
  /// long, a link the longer ones longer; a single size that took long may be due to either.
  Found measure(std::uint64_t codec_rate);

  /// Do all ranks' messages still have about the rate `known`, from an earlier run? No, where it is
  /// not known to all. All ranks get the same answer.
  bool confirms(std::uint64_t known);

 private:
  using Took = ProbeExchange::Took;
  Took run(std::size_t bytes);
  Took time(std::size_t bytes);
  std::uint64_t greatest(std::uint64_t value);

  ProbeExchange& exchange_;
  const Partners partners_;
  std::uint64_t spent_ns_ = 0;  ///< by all ranks, but for what makes connections
};

/// Where compressing messages in host memory may pay.
struct Gains {
  bool within = false;   ///< hosts
  bool between = false;  ///< them
  bool any() const { return within || between; }
  void add(const Gains& more) {
    within = within || more.within;
    between = between || more.between;
  }
};

using GainsByCodec = std::array<Gains, policy::codec_count>;

/// All ranks call this together, before the channel link carries anything. Teaches the model what
/// it measured: for some milliseconds all ranks exchange messages with one rank of their host,
/// where `within_hosts`, and then with one of another, as a program's exchange would; and they
/// encode and decode a little. Returns the gains that some rank has, on all ranks.
GainsByCodec probe_links(Runtime& runtime, ProbeExchange& exchange, const schedule::Hosts& hosts,
                         bool within_hosts);

}  // namespace mpress::engine
