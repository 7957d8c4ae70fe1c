#include "core/learning/probe.hpp"

#include <algorithm>
#include <cmath>

#include "codec/codec.hpp"
#include "codec/float_environment.hpp"
#include "core/learning/learned.hpp"
#include "core/learning/tuning.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t shortest = 64 << 10;
constexpr std::size_t longest = 4 << 20;
/// Measuring one kind of link takes no longer, but for the message that is in flight then.
constexpr std::uint64_t most_ns = 100'000'000;

constexpr int repetitions = 3;  ///< the best counts: others may have been disturbed
/// The rate of a message that takes longer is a link's.
constexpr std::uint64_t long_ns = 2'000'000;

/// Of a message's bytes and time.
std::uint64_t rate_of(std::size_t bytes, std::uint64_t ns) {
  return bytes * 1'000'000'000 / std::max<std::uint64_t>(ns, 1);
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
    std::uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < repetitions; ++i) {
      const std::uint64_t begin = trace::now_ns();
      const std::size_t bytes =
          codec::encode(spec, ElementType::f32, values.data(), count, payload.data());
      codec::decode(spec, ElementType::f32, payload.data(), bytes, back.data(), count);
      best_ns = std::min(best_ns, trace::now_ns() - begin);
    }
    seconds[static_cast<std::size_t>(spec.codec)] =
        compute([=] { return static_cast<double>(best_ns) * 1e-9 / (count * sizeof(float)); });
  }
  return seconds;
}

/// Measures one kind of link. `learned`: by an earlier run. `codec_rate`: of the fastest codec of
/// all ranks, in bytes a second.
void probe_link(Runtime& runtime, RateProbe probe, const Rates& learned, std::uint64_t codec_rate) {
  const policy::Peer peer =
      probe.has_partner() ? runtime.endpoints.peer_of(probe.partner()) : policy::Peer::other_host;
  const std::uint64_t known = probe.has_partner() ? learned[policy::index(peer)] : 0;
  const bool is_confirmed = probe.confirms(known);
  RateProbe::Found found{known, true};
  if (!is_confirmed) found = probe.measure(codec_rate);
  // The memory of a host is seldom slow, and that of a busy one often seems to be.
  const bool is_surprising = peer == policy::Peer::same_host && runtime.config.learn != "all";
  if (is_surprising && !found.is_certain) found.rate = std::max(found.rate, codec_rate);
  policy::LinkModel& links = runtime.policy.links();
  // On an oversubscribed host messages wait for their ranks to have a processor.
  if (!probe.has_partner() || !measures_links(runtime) ||
      links.is_configured({policy::Place::host, peer}) ||
      (is_surprising && runtime.endpoints.are_oversubscribed())) {
    return;
  }
  links.begin(peer, compute([&] { return static_cast<double>(found.rate); }),
              is_confirmed    ? policy::Confidence::full
              : is_surprising ? policy::Confidence::low
                              : policy::Confidence::medium);
}

/// For how long a chunk that does not move is waited for.
std::uint64_t patience_ns(const policy::LinkModel& links) {
  constexpr double chunk = 1 << 20;
  return compute([&] {
    double slowest = INFINITY;
    for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
      if (links.rate(peer) > 0) slowest = std::min(slowest, links.rate(peer));
    }
    return static_cast<std::uint64_t>(3e9 * chunk / slowest);
  });
}

/// Gains that some rank has.
GainsByCodec agree_on_gains(const policy::Policy& policy, ProbeExchange& exchange) {
  std::array<std::uint64_t, 2 * policy::codec_count> may{};
  for (std::size_t i = 0; i < may.size(); ++i) {
    const policy::Peer peer = i % 2 == 0 ? policy::Peer::same_host : policy::Peer::other_host;
    may[i] = policy.may_compress_host(peer, static_cast<Codec>(i / 2));
  }
  exchange.find_greatest(may);
  GainsByCodec gains;
  for (std::size_t codec = 0; codec < gains.size(); ++codec) {
    gains[codec] = {may[2 * codec] != 0, may[2 * codec + 1] != 0};
  }
  return gains;
}

}  // namespace

Partners ring_within_host(const schedule::Hosts& hosts, int rank) {
  const std::span<const int> here = hosts.members(hosts.host(rank));
  if (here.size() < 2) return {};
  const auto own = static_cast<std::size_t>(hosts.place(rank));
  return {here[(own + 1) % here.size()], {here[(own + here.size() - 1) % here.size()]}};
}

Partners ring_of_hosts(const schedule::Hosts& hosts, int rank) {
  const int count = hosts.count();
  const auto target = [&](int sender) {
    const std::span<const int> next = hosts.members((hosts.host(sender) + 1) % count);
    return next[static_cast<std::size_t>(hosts.place(sender)) % next.size()];
  };
  Partners partners{target(rank), {}};
  for (const int sender : hosts.members((hosts.host(rank) + count - 1) % count)) {
    if (target(sender) == rank) partners.from.push_back(sender);
  }
  return partners;
}

std::uint64_t RateProbe::greatest(std::uint64_t value) {
  exchange_.find_greatest({&value, 1});
  return value;
}

/// Here, until all ranks' messages are over counts.
RateProbe::Took RateProbe::run(std::size_t bytes) {
  const Took took = exchange_.exchange(partners_, bytes);
  return {took.own_ns, greatest(took.all_ns)};
}

/// The least of some. Once is enough where that does not take long.
RateProbe::Took RateProbe::time(std::size_t bytes) {
  Took least{UINT64_MAX, UINT64_MAX};
  for (int i = 0; i < repetitions && least.all_ns > long_ns && (i == 0 || spent_ns_ <= most_ns);
       ++i) {
    const Took took = run(bytes);
    least = {std::min(least.own_ns, took.own_ns), std::min(least.all_ns, took.all_ns)};
    spent_ns_ += took.all_ns;
  }
  return least;
}

RateProbe::Found RateProbe::measure(std::uint64_t codec_rate) {
  std::size_t bytes = shortest;
  run(bytes);  // makes the connections and touches the memory
  Took last = time(bytes);
  const auto outruns_codecs = [&] { return rate_of(bytes, last.all_ns) > codec_rate; };
  bool is_certain = outruns_codecs();
  while (bytes < longest && spent_ns_ <= most_ns && !is_certain) {
    const Took shorter = last;
    const bool was_long = shorter.all_ns > long_ns;
    const std::size_t growth = was_long ? 2 : 4;
    bytes *= growth;
    last = time(bytes);
    // A link takes at least three quarters as much longer as messages are.
    const bool has_grown = 4 * last.all_ns > 3 * growth * shorter.all_ns;
    is_certain = outruns_codecs() || (was_long && has_grown);
  }
  return {rate_of(bytes, last.own_ns), is_certain};
}

bool RateProbe::confirms(std::uint64_t known) {
  const std::uint64_t highest = greatest(known);
  if (highest == 0) return false;
  std::size_t bytes = shortest;
  while (bytes < longest && rate_of(bytes, 2 * long_ns) < highest) bytes *= 2;
  run(bytes);
  std::uint64_t own_ns = UINT64_MAX;
  for (int i = 0; i < repetitions; ++i) {
    const Took took = run(bytes);
    spent_ns_ += took.all_ns;
    own_ns = std::min(own_ns, took.own_ns);
    const std::uint64_t rate = rate_of(bytes, own_ns);
    const bool is_near = !has_partner() || (rate < 2 * known && known < 2 * rate);
    if (greatest(is_near ? 0 : 1) == 0) return true;
  }
  return false;
}

GainsByCodec probe_links(Runtime& runtime, ProbeExchange& exchange, const schedule::Hosts& hosts,
                         bool within_hosts) {
  if (runtime.size == 1) return {};
  policy::LinkModel& links = runtime.policy.links();
  const auto codecs = time_codecs();
  links.learn_codecs(codecs);
  std::uint64_t codec_rate = 1;
  compute([&] {
    for (const double one : codecs) {
      if (one > 0) codec_rate = std::max(codec_rate, static_cast<std::uint64_t>(1 / one));
    }
  });
  exchange.find_greatest({&codec_rate, 1});
  const Rates learned = read_learned(runtime);
  const auto probe = [&](Partners partners) {
    probe_link(runtime, {exchange, std::move(partners)}, learned, codec_rate);
  };
  if (within_hosts) probe(ring_within_host(hosts, runtime.rank));
  if (hosts.count() > 1) probe(ring_of_hosts(hosts, runtime.rank));
  runtime.links.channel.outbox.be_patient(patience_ns(links));
  return agree_on_gains(runtime.policy, exchange);
}

}  // namespace mpress::engine
