// Teams of ranks that are threads, for one collective call.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "coll/team.hpp"
#include "core/hints.hpp"
#include "loopback/envelopes.hpp"

namespace mpress::loopback {

/// A member's hosts, before its team.
struct LetterBoards {
  /// `hosts`: a number for each member's, which do not share memory for boards.
  LetterBoards(int rank, const std::vector<int>& hosts) {
    std::vector<int> leaders;
    for (const int host : hosts) {
      leaders.push_back(static_cast<int>(std::ranges::find(hosts, host) - hosts.begin()));
    }
    boards.hosts().open(rank, leaders, {});
  }
  engine::Boards boards;
};

/// All ranks are its members. The blocks of its call are `letters`.
class LetterTeam final : private LetterBoards, public engine::Team {
 public:
  LetterTeam(const Rank& rank, const std::vector<int>& hosts, Letters& letters, unsigned seed)
      : LetterBoards(rank.rank, hosts),
        Team(boards, all_of(rank.size), rank.rank, {}),
        letters_(letters),
        seed_(seed) {}

  std::unique_ptr<engine::Envelopes> envelopes(engine::Messaging& messaging, int) const override {
    return std::make_unique<Envelopes>(messaging, letters_, seed_);
  }
  const engine::CommSettings& settings() const override { return settings_; }
  void take_hints() const override {}

 private:
  static std::vector<int> all_of(int size) {
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  Letters& letters_;
  const unsigned seed_;
  const engine::CommSettings settings_;
};

}  // namespace mpress::loopback
