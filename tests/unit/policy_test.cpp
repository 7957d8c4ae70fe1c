// The cost model: compresses where it pays, leaves alone where it does not, and looks again.

#include "policy/policy.hpp"

#include "check.hpp"

using mpress::Codec;
using mpress::policy::Policy;

namespace {

constexpr std::size_t bytes = 1 << 20;

/// Feeds what a codec of these speeds (bytes a nanosecond) and this ratio would report.
int compressed_of(Policy& policy, int messages, double ratio, double speed) {
  int compressed = 0;
  const auto ns = static_cast<std::uint64_t>(bytes / speed);
  for (int i = 0; i < messages; ++i) {
    if (!policy.worth_it(Codec::mpc, bytes)) continue;
    ++compressed;
    policy.encoded(Codec::mpc, bytes, static_cast<std::size_t>(bytes / ratio), ns);
    policy.decoded(Codec::mpc, bytes, ns);
  }
  return compressed;
}

void force_compresses_always() {
  Policy policy;
  policy.configure(true, 0);
  CHECK(compressed_of(policy, 100, 0.9, 0.001) == 100);
}

void an_unknown_link_is_left_alone() {
  Policy policy;
  policy.configure(false, 0);
  CHECK(compressed_of(policy, 100, 100, 1000) == 0);
}

void the_model_decides() {
  // Break-even: link < (1 - 1/ratio) / (1/encode + 1/decode). Ratio 2 at 2 GB/s: 0.5 GB/s.
  Policy slow_link;
  slow_link.configure(false, 0.4e9);
  CHECK(compressed_of(slow_link, 1000, 2, 2) == 1000);
  Policy fast_link;
  fast_link.configure(false, 0.6e9);
  const int probes = compressed_of(fast_link, 10000, 2, 2);
  CHECK(probes >= 2 && probes < 200);  // probes cost about a hundredth of the wire time
}

void it_looks_again() {
  Policy policy;
  policy.configure(false, 0.4e9);
  CHECK(compressed_of(policy, 2000, 1.0, 2) < 100);   // incompressible at first
  CHECK(compressed_of(policy, 4000, 4.0, 2) > 2000);  // then a better ratio is found
  CHECK(compressed_of(policy, 4000, 1.0, 2) < 200);   // and lost again
}

void sizes_are_told_apart() {
  Policy policy;
  policy.configure(false, 0.4e9);
  CHECK(compressed_of(policy, 1000, 4, 2) == 1000);
  // Another size class has not been seen yet, whatever this one does.
  CHECK(policy.worth_it(Codec::mpc, 1 << 10));
  CHECK(policy.worth_it(Codec::szp, bytes));
}

}  // namespace

int main() {
  force_compresses_always();
  an_unknown_link_is_left_alone();
  the_model_decides();
  it_looks_again();
  sizes_are_told_apart();
  return check::failures != 0;
}
