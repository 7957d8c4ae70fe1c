// Hints of a team's communicator that decide its collective calls, as members have given them.
#pragma once

#include <optional>

#include "codec/spec.hpp"

namespace mpress::engine {

/// Hints may change from call to call, but not while a call of the team is being decided.
class TeamHints {
 public:
  explicit TeamHints(bool is_reproducible) : is_reproducible_(is_reproducible) {}

  /// The codec that all members have given the communicator.
  const std::optional<Spec>& spec() const { return spec_; }

  /// Did members give it different codecs? Then its reductions are errors.
  bool has_different_codecs() const { return has_different_codecs_; }

  /// Do its reductions have the same bits in any order of the contributions? By a hint or by the
  /// environment; also known before the team is ready.
  bool is_reproducible() const { return is_reproducible_; }

  void set_codec(const std::optional<Spec>& spec, bool are_different) {
    spec_ = spec;
    has_different_codecs_ = are_different;
  }
  void set_reproducible(bool is_set) { is_reproducible_ = is_set; }

 private:
  std::optional<Spec> spec_;
  bool has_different_codecs_ = false;
  bool is_reproducible_;
};

}  // namespace mpress::engine
