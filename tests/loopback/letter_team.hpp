// Teams of ranks that are threads, for one collective call.
#pragma once

#include <algorithm>
#include <cstdio>
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

/// Plays random calls between `members` threads: `any_call(members, seed)` makes a call, as all
/// members know it, and `play(rank, member, call, letters, shared)` makes it in each, where
/// `Shared` is what the members of a call share beside their letters. `link`: as Rank has it.
template <typename Shared, typename AnyCall, typename Play>
void play_calls(int members, int calls, unsigned seed, const char* link, std::size_t limit,
                AnyCall any_call, Play play) {
  Group group(members, seed, 1 << 20);
  std::vector<decltype(any_call(members, seed))> all;
  std::vector<std::unique_ptr<Letters>> letters;
  std::vector<std::unique_ptr<Shared>> shared;
  for (int i = 0; i < calls; ++i) {
    all.push_back(any_call(members, seed * 1000 + static_cast<unsigned>(i)));
    letters.push_back(std::make_unique<Letters>(members));
    shared.push_back(std::make_unique<Shared>());
  }
  run(members, seed, [&](ThreadMember& member) {
    sim_be_member(member.rank);
    const auto rank = std::make_unique<Rank>(member, group.channel(member.rank), limit, link);
    for (std::size_t i = 0; i < all.size(); ++i) {
      play(*rank, member, all[i], *letters[i], *shared[i]);
    }
    member.barrier();
    rank->close();
    CHECK(rank->links.held_for_channel.held() == 0);
  });
  CHECK(group.unclaimed() == 0);
  if (check::failures > 0) {
    std::fprintf(stderr, "%d members, seed %u, link %s\n", members, seed, link);
  }
}

}  // namespace mpress::loopback
