#include "coll/methods.hpp"

#include <algorithm>

#include "codec/float_environment.hpp"
#include "coll/team.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

/// The ratio that is expected of a codec before any data is known.
double expected_wire_per_raw(const Spec& spec) {
  constexpr double bits = 32;
  switch (spec.codec) {
    case Codec::zfp: return compute([&] { return std::min(spec.value / bits, 1.0); });
    case Codec::szp: return 0.1;
    case Codec::none: return 1;
    default: return 0.7;
  }
}

}  // namespace

schedule::Method method_of(const Messaging& messaging, schedule::Op op, const CallShape& shape,
                           const Team& team, double* seconds) {
  const policy::AgreedCosts& costs = messaging.agreed_costs;
  const bool is_encoded = shape.compresses && shape.spec.codec != Codec::none;
  policy::CollectiveCosts here = costs.host;
  if (shape.on_devices) {
    const std::size_t at = link::position(team.modes().between_devices());
    here = costs.devices[at];
    if (is_encoded && at < link::count_between_devices) {
      if (link::between_devices[at].is_through_host) {
        here.within.crowding = 1;  // payloads find room
      } else {
        here.within = compute([&] { return policy::of_payloads(here.within); });
      }
    }
  }
  const double wire_per_raw = is_encoded ? expected_wire_per_raw(shape.spec) : 1;
  const schedule::Method method =
      team.modes().method_choice()(op, shape.bytes, team.hosts(), here, wire_per_raw,
                                   messaging.config.algorithms[static_cast<std::size_t>(op)]);
  if (seconds) {
    *seconds = compute([&] {
      const double bytes = wire_per_raw * static_cast<double>(shape.bytes);
      return policy::collective_seconds(method, op, bytes, team.hosts(), here);
    });
  }
  return method;
}

}  // namespace mpress::engine
