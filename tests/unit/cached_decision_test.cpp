// A cached decision holds for the sizes that would be decided about alike, and for no others.

#include "message/cached_decision.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include "check.hpp"
#include "loopback/messages.hpp"
#include "message/decision.hpp"

using namespace mpress;
using engine::CachedDecision;

namespace {

struct Rank final : engine::Messaging {
  Rank() : Messaging(engine::Progress::Rounds{}) { record.open({}); }
};

/// A communicator, a type and settings, to which random messages belong.
class Game {
 public:
  /// `device`: memory of a device, where the process uses one; else null.
  Game(unsigned seed, const std::byte* device) : random_(seed), device_(device) {
    rank_.config.threshold = any(1 << 16);
    rank_.config.is_threshold_set = any(2) == 0;
    rank_.links.least_bytes_between_devices = 1 + any(1 << 15);
    if (any(3) == 0) rank_.config.spec.codec = Codec::none;
    if (any(3) == 0) rank_.config.threshold = any(1 << 20);
    engine::Hints hints;
    if (any(3) == 0) hints.threshold = {"", any(1 << 20)};
    comm_.hints.update(hints);
    const double rate = any(2) == 0 ? 1e7 : 1e10;
    if (any(2) == 0)
      rank_.policy.links().begin(policy::Peer::other_host, rate,
                                 any(2) == 0 ? policy::Confidence::full : policy::Confidence::low);
    rank_.gpu_aware = any(2) == 0;
    if (any(3) == 0) rank_.least_framed_bytes = engine::Messaging::never;
    const std::size_t item = any(2) == 0 ? 4 : any(2) == 0 ? 8 : 1 + any(40);
    layout_ = std::make_unique<loopback::Strided>(ElementType::f32, item, item);
    if (any(3) == 0 || item % 4 != 0) layout_->element.reset();
  }

  /// Decides about one message, and about others that the decision may hold for. Returns how many
  /// it held for.
  int play() {
    engine::note_change();
    const std::int64_t count = any_count();
    const std::uint64_t changes = CachedDecision::now();
    engine::Message message = message_of(count);
    const engine::Decision decision = engine::decide(rank_, message);
    if (!decision.is_plain) return 0;
    trace::Row& row = rank_.record.row({trace::Direction::send, trace::Op::send, 0});
    engine::keep_decision(rank_, key_of(count), message, decision, row, changes);
    int held = 0;
    for (int i = 0; i < 15; ++i) {
      const std::int64_t other = i % 3 == 0 ? any_count() : near(i % 3 == 1 ? count : edge());
      if (!CachedDecision::find(key_of(other))) continue;
      ++held;
      engine::Message like = message_of(other);
      const engine::Decision again = engine::decide(rank_, like);
      CHECK(again.is_plain);
      CHECK(again.choice.reason == decision.choice.reason);
    }
    return held;
  }

 private:
  std::size_t any(std::size_t below) { return random_() % below; }
  std::int64_t any_count() { return static_cast<std::int64_t>(any(std::size_t{1} << any(22))); }
  std::int64_t near(std::int64_t count) {
    return std::max<std::int64_t>(0, count + static_cast<std::int64_t>(any(5)) - 2);
  }
  /// The count at which some rule changes.
  std::int64_t edge() {
    const std::size_t edges[] = {rank_.config.threshold, comm_.hints.threshold(0),
                                 wire::min_frame_bytes, rank_.links.least_bytes_between_devices,
                                 policy::LinkModel::least_timed_bytes};
    return static_cast<std::int64_t>(edges[any(std::size(edges))] / layout_->size);
  }
  engine::Message message_of(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count) * layout_->size;
    const std::byte* const buffer = device_ && any(2) == 0 ? device_ : buffer_;
    return {call_, buffer, count, *layout_, comm_, 1, bytes, gpu::host, true};
  }
  CachedDecision::Key key_of(std::int64_t count) const { return {call_.op.op, 1, 1, 1, count}; }

  std::mt19937 random_;
  const std::byte* const device_;
  Rank rank_;
  engine::CommSettings comm_;
  std::unique_ptr<loopback::Strided> layout_;
  const engine::SendCall call_{trace::Op::send, Family::p2p, true};
  alignas(8) std::byte buffer_[8] = {};
};

int play(unsigned seeds, const std::byte* device) {
  int held = 0;
  for (unsigned seed = 0; seed < seeds && check::failures == 0; ++seed) {
    Game game(seed, device);
    for (int i = 0; i < 20; ++i) held += game.play();
    if (check::failures > 0) std::fprintf(stderr, "seed %u, device %d\n", seed, device != nullptr);
  }
  return held;
}

}  // namespace

int main() {
  CHECK(play(300, nullptr) > 10'000);
  links::choose_simulated_gpu();
  auto* const device = static_cast<std::byte*>(sim_malloc(0, 4096));
  CHECK(play(300, device) > 1000);
  sim_free(device);
  return check::failures != 0;
}
