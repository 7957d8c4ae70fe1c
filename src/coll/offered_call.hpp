// A call that members offer each other: each tells whether it can take part, and where its memory
// is. Where one refuses, the call goes by another algorithm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "coll/algorithm.hpp"
#include "coll/answer.hpp"
#include "coll/blocks/contribution.hpp"
#include "coll/collective_operation.hpp"

namespace mpress::engine {

class StreamOrder;
class Team;
struct Messaging;

class OfferedCall : public CollectiveOperation {
 public:
  /// A member's offer; all zero: it refuses.
  static constexpr std::size_t words = offer_words;
  using Offer = engine::Offer;

  /// This member's offer, before anything else; all members tell each other theirs.
  virtual Offer offer() = 0;

  /// `told`: all members' offers, by rank.
  virtual Answer accept(std::span<const std::uint64_t> told) = 0;

  /// In the place of offer(), by a member that would rather encode its contribution: then the call
  /// goes as blocks, on all members.
  static constexpr Offer offer_to_encode() { return {encodes_bit}; }
  static bool is_to_be_encoded(std::span<const std::uint64_t> told) {
    for (std::size_t i = 0; i < told.size(); i += words) {
      if (told[i] & encodes_bit) return true;
    }
    return false;
  }

  /// This member's contribution, where it is long enough for codecs, to a call for which members
  /// agreed on `spec`; else empty.
  virtual std::optional<Contribution> contribution(const Spec& /*spec*/) const {
    return std::nullopt;
  }

  /// Before it is offered: its place in a stream, which outlives accept(). False where its work
  /// does not begin behind what that holds by itself, which has to be done first.
  virtual bool follow(StreamOrder*) { return false; }

  Status status() const override { return status_; }
  void start(FloatModes) override {}
  bool needs_host() const override { return false; }
  void await(bool) override {}
  bool wait() override { return false; }
  double bound() const override { return 0; }

 protected:
  /// `messaging` and `team` outlive it.
  OfferedCall(Messaging& messaging, const Collective& call, Team& team)
      : messaging_(messaging), call_(call), team_(team) {}

  Messaging& messaging_;
  const Collective call_;
  Team& team_;
  Status status_;

 private:
  /// Of the first word, beside those of JointMemory.
  static constexpr std::uint64_t encodes_bit = std::uint64_t{1} << 63;
};

}  // namespace mpress::engine
