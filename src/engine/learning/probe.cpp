#include "engine/learning/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "codec/codec.hpp"
#include "codec/float_environment.hpp"
#include "engine/job/job.hpp"
#include "engine/learning/learned.hpp"
#include "engine/learning/tuning.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t shortest = 64 << 10;
constexpr std::size_t longest = 4 << 20;
/// What measuring one kind of link takes at the most, but for the message that is under way then.
constexpr double most_seconds = 0.1;

constexpr int repetitions = 3;  ///< the best counts: others may have been disturbed
/// A link takes this much longer, of how much longer messages are.
constexpr double grows = 0.75;
/// A message that takes so long tells the rate of a link.
constexpr double long_enough = 2e-3;

double seconds_since(std::uint64_t begin_ns) {
  return compute([=] { return static_cast<double>(trace::now_ns() - begin_ns) * 1e-9; });
}

/// Whom a rank sends to, and who sends to it, while all do so at once.
struct Partners {
  int to = MPI_PROC_NULL;
  std::vector<int> from;
};

/// The ranks of a host in a ring.
Partners within_host(const Hosts& hosts, int rank, int size) {
  std::vector<int> here;
  for (int other = 0; other < size; ++other) {
    if (hosts.leader(other) == hosts.leader(rank)) here.push_back(other);
  }
  if (here.size() < 2) return {};
  const auto own =
      static_cast<std::size_t>(std::find(here.begin(), here.end(), rank) - here.begin());
  return {here[(own + 1) % here.size()], {here[(own + here.size() - 1) % here.size()]}};
}

/// The hosts in a ring: each rank sends to the one of its number on the next host, modulo how many
/// that has.
Partners between_hosts(const Hosts& hosts, int rank, int size) {
  std::vector<std::vector<int>> ranks;  // by host, hosts by their leaders
  std::vector<std::size_t> host_of(static_cast<std::size_t>(size));
  for (int other = 0; other < size; ++other) {
    const auto leader = static_cast<std::size_t>(hosts.leader(other));
    if (leader == static_cast<std::size_t>(other)) {
      host_of[leader] = ranks.size();
      ranks.emplace_back();
    }
    host_of[static_cast<std::size_t>(other)] = host_of[leader];
    ranks[host_of[leader]].push_back(other);
  }
  if (ranks.size() < 2) return {};
  const auto target = [&](std::size_t host, std::size_t number) {
    const std::vector<int>& next = ranks[(host + 1) % ranks.size()];
    return next[number % next.size()];
  };
  Partners partners;
  const std::size_t host = host_of[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < ranks[host].size(); ++i) {
    if (ranks[host][i] == rank) partners.to = target(host, i);
  }
  const std::size_t before = (host + ranks.size() - 1) % ranks.size();
  for (std::size_t i = 0; i < ranks[before].size(); ++i) {
    if (target(before, i) == rank) partners.from.push_back(ranks[before][i]);
  }
  return partners;
}

/// Messages of one kind of peer: all ranks of `comm` call these together.
class Exchange {
 public:
  Exchange(Job& job, MPI_Comm comm, const Partners& partners)
      : job_(job), comm_(comm), partners_(partners) {}

  /// Makes the connections and touches the memory for messages of so many bytes, which takes as
  /// long as it takes.
  void warm_up(std::size_t bytes) {
    const double before = spent_;
    double unused = 0;
    run(bytes, unused);
    spent_ = before;
  }

  /// Seconds until this rank's message is over, and, in `all`, until all ranks' are.
  double run(std::size_t bytes, double& all) {
    const mpi::Calls& mpi = mpi::calls();
    grow(bytes);
    std::vector<MPI_Request> requests(partners_.from.size(), MPI_REQUEST_NULL);
    const std::uint64_t begin = trace::now_ns();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      mpi.Irecv(in_.data() + i * bytes, static_cast<int>(bytes), MPI_BYTE, partners_.from[i], 0,
                comm_, &requests[i]);
    }
    if (has_partner())
      mpi.Send(out_.data(), static_cast<int>(bytes), MPI_BYTE, partners_.to, 0, comm_);
    double own = seconds_since(begin);
    mpi.Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (job_.pacer.active()) {
      for (std::size_t i = 0; i < requests.size(); ++i) job_.pacer.arrive(bytes, begin);
    }
    // What was sent may still lie in a buffer; where as many come as go, they take as long.
    if (requests.size() == 1) own = seconds_since(begin);
    all = greatest(seconds_since(begin));
    compute([&] { spent_ += all; });
    return own;
  }

  /// Has all of it taken too long? The same on all ranks.
  bool is_late() const {
    return compute([this] { return spent_ > most_seconds; });
  }

  bool has_partner() const { return partners_.to != MPI_PROC_NULL; }

  /// Of all ranks.
  double greatest(double value) const {
    mpi::calls().Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return value;
  }

 private:
  /// The pages are there before the time is taken.
  void grow(std::size_t bytes) {
    if (out_.size() >= bytes) return;
    out_.assign(bytes, std::byte{1});
    in_.assign(bytes * partners_.from.size(), std::byte{0});
  }

  Job& job_;
  const MPI_Comm comm_;
  const Partners partners_;
  std::vector<std::byte> out_, in_;
  double spent_ = 0;  ///< seconds
};

/// The least time of messages of some size.
struct Fastest {
  double own = INFINITY;  ///< of this rank's
  double all = INFINITY;  ///< until all ranks' are over

  bool is_long() const {
    return compute([this] { return all > long_enough; });
  }
};

/// Once is enough where that does not take long.
Fastest time_exchange(Exchange& exchange, std::size_t bytes) {
  Fastest fastest;
  for (int i = 0; i < repetitions && fastest.is_long() && (i == 0 || !exchange.is_late()); ++i) {
    double all = 0;
    const double own = exchange.run(bytes, all);
    compute([&] { fastest = {std::min(fastest.own, own), std::min(fastest.all, all)}; });
  }
  return fastest;
}

struct Found {
  double rate;      ///< bytes a second
  bool is_certain;  ///< it is the link's, or higher than any codec's: the same on all ranks
};

/// Messages grow until they take long, and longer the longer they are, or no codec is as fast:
/// `least_codec` seconds a byte. What takes long whatever its size tells of a busy machine, and not
/// of a link; that a single size took long tells of either.
Found rate_of(Exchange& exchange, double least_codec) {
  exchange.warm_up(shortest);
  std::size_t bytes = shortest;
  Fastest last = time_exchange(exchange, bytes);
  const auto outruns_codecs = [&] { return last.all < least_codec * static_cast<double>(bytes); };
  bool is_certain = compute(outruns_codecs);
  while (bytes < longest && !exchange.is_late()) {
    const std::size_t before = bytes;
    const Fastest shorter = last;
    bytes *= shorter.is_long() ? 2 : 4;
    last = time_exchange(exchange, bytes);
    is_certain = compute([&] {
      const double growth = static_cast<double>(bytes) / static_cast<double>(before);
      return outruns_codecs() || (shorter.is_long() && last.all > grows * growth * shorter.all);
    });
    if (is_certain) break;
  }
  return {compute([&] { return static_cast<double>(bytes) / last.own; }), is_certain};
}

/// Do all ranks' messages still have about the rate `known`, from an earlier run? No, where it is
/// not known to all. The same on all ranks.
bool confirms(Exchange& exchange, double known) {
  constexpr double near = 2;
  const double highest = exchange.greatest(known);
  if (highest == 0) return false;
  std::size_t bytes = shortest;
  compute([&] {
    while (bytes < longest && static_cast<double>(bytes) < 2 * long_enough * highest) bytes *= 2;
  });
  double own = INFINITY, unused = 0;
  exchange.warm_up(bytes);
  for (int i = 0; i < repetitions; ++i) {
    const double took = exchange.run(bytes, unused);
    const bool is_near = compute([&] {
      own = std::min(own, took);
      const double rate = static_cast<double>(bytes) / own;
      return !exchange.has_partner() || (rate < near * known && known < near * rate);
    });
    if (exchange.greatest(is_near ? 0 : 1) == 0) return true;
  }
  return false;
}

/// Are there more ranks than processors? Then what a message takes tells when its ranks had one.
bool is_crowded(std::size_t ranks) {
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  return processors > 0 && ranks > static_cast<std::size_t>(processors);
}

/// The least that a codec takes to encode and decode a byte in host memory.
std::array<double, policy::codec_count> time_codecs() {
  constexpr std::size_t count = 16 << 10;
  std::vector<float> values(count), back(count);
  compute([&] {
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(i) / 1024;
      values[i] = x * (3 - x) + 1;
    }
  });
  std::array<double, policy::codec_count> seconds{};
  for (const char* text : {"mpc", "zfp:8", "szp:abs=1e-3"}) {
    Spec spec;
    std::string error;
    if (!parse_spec(text, spec, error)) continue;
    std::vector<std::byte> payload(codec::max_payload_bytes(spec, ElementType::f32, count));
    double best = INFINITY;
    for (int i = 0; i < repetitions; ++i) {
      const std::uint64_t begin = trace::now_ns();
      const std::size_t bytes =
          codec::encode(spec, ElementType::f32, values.data(), count, payload.data());
      codec::decode(spec, ElementType::f32, payload.data(), bytes, back.data(), count);
      const double took = seconds_since(begin);
      compute([&] { best = std::min(best, took); });
    }
    const auto a_byte = [&] { return best / (count * sizeof(float)); };
    seconds[static_cast<std::size_t>(spec.codec)] = compute(a_byte);
  }
  return seconds;
}

bool learns_about(const Job& job, policy::Peer peer) {
  if (!measures_links(job) || !job.policy.lacks_host_costs(peer)) return false;
  return peer != policy::Peer::same_host || job.config.learn == "all" ||
         !is_crowded(job.endpoints.ranks_here());
}

}  // namespace

Probed probe_links(Job& job, const Context& world) {
  if (job.size == 1) return {job.policy.may_compress_host(), {}};
  const auto codecs = time_codecs();
  job.policy.learn_codecs(codecs);
  double fastest = INFINITY;
  compute([&] {
    for (const double one : codecs) fastest = one > 0 ? std::min(fastest, one) : fastest;
  });
  mpi::calls().Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MIN, world.comm());
  const Rates learned = read_learned(job);
  const Hosts& hosts = job.contexts.hosts();
  std::vector<Partners> measured;
  if (world.is_true_for_any(Fact::learns)) {
    measured.push_back(within_host(hosts, job.rank, job.size));
  }
  if (world.hosts().count() > 1) measured.push_back(between_hosts(hosts, job.rank, job.size));
  for (const Partners& partners : measured) {
    Exchange exchange(job, world.comm(), partners);
    const bool has_partner = exchange.has_partner();
    const policy::Peer peer =
        has_partner ? job.endpoints.peer_of(partners.to) : policy::Peer::other_host;
    const double known = has_partner ? learned[static_cast<std::size_t>(peer)] : 0;
    const bool is_confirmed = confirms(exchange, known);
    const Found found = is_confirmed ? Found{known, true} : rate_of(exchange, fastest);
    // The memory of a host is seldom slow, and that of a busy one often seems to be.
    const bool is_surprising = peer == policy::Peer::same_host && job.config.learn != "all";
    const bool is_noise = is_surprising && !found.is_certain;
    const auto at_least = [&] { return std::max(found.rate, 1 / fastest); };
    const double rate = is_noise ? compute(at_least) : found.rate;
    const policy::Belief belief = is_confirmed    ? policy::Belief::full
                                  : is_surprising ? policy::Belief::little
                                                  : policy::Belief::some;
    if (has_partner && learns_about(job, peer)) job.policy.learn(peer, rate, belief);
  }
  constexpr double chunk = 1 << 20;
  job.links.channel.outbox.be_patient(compute([&] {
    double slowest = INFINITY;
    for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
      if (job.policy.rate(peer) > 0) slowest = std::min(slowest, job.policy.rate(peer));
    }
    return static_cast<std::uint64_t>(3e9 * chunk / slowest);
  }));
  std::array<int, 1 + 2 * policy::codec_count> found{job.policy.may_compress_host()};
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    found[1 + 2 * codec] = job.may_pay(policy::Peer::same_host, static_cast<Codec>(codec));
    found[2 + 2 * codec] = job.may_pay(policy::Peer::other_host, static_cast<Codec>(codec));
  }
  mpi::calls().Allreduce(MPI_IN_PLACE, found.data(), found.size(), MPI_INT, MPI_MAX, world.comm());
  Probed probed{found[0] != 0, {}};
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    probed.gains[codec] = {found[1 + 2 * codec] != 0, found[2 + 2 * codec] != 0};
  }
  return probed;
}

}  // namespace mpress::engine
