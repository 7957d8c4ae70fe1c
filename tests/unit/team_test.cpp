// Teams whose members are threads of this process: what they know, and what they agree on.

#include "coll/team.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "coll/blocks/envelope.hpp"
#include "link/liveness.hpp"
#include "loopback/loopback.hpp"

namespace mpress {
namespace {

using engine::Agreement;
using engine::Boards;
using engine::Combine;
using engine::Fact;
using engine::Facts;
using engine::Hosts;
using engine::Team;
using engine::Word;
using link::HostMemory;

/// Moves no blocks. The test gives it a channel, and gives its board back.
class OwnTeam : public Team {
 public:
  using Team::give_back_board;
  using Team::meet;
  using Team::refuse;
  using Team::Team;
  std::unique_ptr<engine::Envelopes> envelopes(engine::Messaging&, int) const override {
    return nullptr;
  }
  const engine::CommSettings& settings() const override { return settings_; }
  void take_hints() const override {}

 private:
  const engine::CommSettings settings_;
};

/// Threads on hosts, `ranks_a_host` one after another on each; 0: each on one of its own, which has
/// no memory for boards.
class Members {
 public:
  Members(int size, int ranks_a_host, unsigned seed)
      : size_(size), group_(size, seed, tags), seed_(seed) {
    const HostMemory::Nonce nonce{static_cast<std::uint8_t>(seed)};
    for (int rank = 0; rank < size && ranks_a_host > 0; ++rank) {
      sheets_.push_back(HostMemory::create(nonce, rank, Hosts::sheet_bytes));
    }
    for (int rank = 0; rank < size; ++rank) {
      std::vector<int> leaders;
      std::vector<Hosts::Neighbour> here;
      for (int other = 0; other < size; ++other) {
        leaders.push_back(ranks_a_host > 0 ? other / ranks_a_host * ranks_a_host : other);
        if (ranks_a_host > 0 && other / ranks_a_host == rank / ranks_a_host) {
          const auto& sheet = sheets_[static_cast<std::size_t>(other)];
          here.push_back({other, link::own_process(),
                          HostMemory::open(sheet.address(), nonce, other, Hosts::sheet_bytes)});
          CHECK(static_cast<bool>(here.back().memory));
        }
      }
      boards_.push_back(std::make_unique<Boards>());
      boards_.back()->hosts().open(rank, leaders, std::move(here));
    }
  }

  int size() const { return size_; }
  Boards& boards(int rank) { return *boards_[static_cast<std::size_t>(rank)]; }
  link::Channel& channel(int rank) { return group_.channel(rank); }

  std::shared_ptr<OwnTeam> team(int rank, const Facts& facts) {
    std::vector<int> all;
    for (int other = 0; other < size_; ++other) all.push_back(other);
    return std::make_shared<OwnTeam>(boards(rank), all, rank, facts);
  }

  /// Runs `test(rank, random)` in a thread a member.
  template <typename Test>
  void run(Test&& test) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        std::mt19937 random(seed_ * 1000 + static_cast<unsigned>(rank));
        test(rank, random);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static constexpr std::uint64_t tags = 1 << 20;
  const int size_;
  loopback::Group group_;
  const unsigned seed_;
  std::vector<HostMemory> sheets_;
  std::vector<std::unique_ptr<Boards>> boards_;
};

Facts usual_facts() {
  Facts facts;
  facts[Fact::wants] = 1;
  facts[Fact::settings] = 7;
  return facts;
}

/// Now and then another thread runs.
void tarry(std::mt19937& random) {
  if (random() % 4 == 0) std::this_thread::yield();
}

std::shared_ptr<Team> ready_team(Members& members, int rank, std::mt19937& random) {
  auto team = members.team(rank, usual_facts());
  CHECK(!team->advance());
  team->meet(members.channel(rank));
  while (!team->advance()) tarry(random);
  CHECK(team->is_ready() && team->why_not() == nullptr);
  return team;
}

std::uint64_t value_of(int rank, int number, int word) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank * 1000003 + number * 64 + word));
  return random() >> 8;  // sums of 64 fit
}

/// Of number `number`, which all members start alike.
std::size_t words_of(int number) { return 1 + static_cast<std::size_t>(number) % 8; }

void check_combined(const Agreement& one, int size, int number) {
  CHECK(!one.failed() && one.result().size() == words_of(number));
  for (std::size_t w = 0; w < one.result().size(); ++w) {
    const auto how = static_cast<Combine>((static_cast<std::size_t>(number) + w) % 5);
    std::uint64_t expected = value_of(0, number, static_cast<int>(w));
    for (int rank = 1; rank < size; ++rank) {
      const std::uint64_t other = value_of(rank, number, static_cast<int>(w));
      switch (how) {
        case Combine::bit_and: expected &= other; break;
        case Combine::bit_or: expected |= other; break;
        case Combine::min: expected = std::min(expected, other); break;
        case Combine::max: expected = std::max(expected, other); break;
        case Combine::sum: expected += other; break;
      }
    }
    CHECK(one.result()[w] == expected);
  }
}

/// Members start many at their own pace, more than boards have slots, and look at them in any
/// order.
void agreements(int size, int ranks_a_host, unsigned seed) {
  Members members(size, ranks_a_host, seed);
  members.run([&](int rank, std::mt19937& random) {
    const auto team = ready_team(members, rank, random);
    const int rounds = size > 16 ? 20 : 40;
    std::vector<std::pair<int, std::shared_ptr<Agreement>>> begun;
    const auto look = [&](std::size_t at) {
      const auto [number, one] = begun[at];
      while (!one->advance()) tarry(random);
      check_combined(*one, size, number);
      begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (int number = 0; number < rounds; ++number) {
      std::vector<Word> words;
      for (std::size_t w = 0; w < words_of(number); ++w) {
        words.push_back({static_cast<Combine>((static_cast<std::size_t>(number) + w) % 5),
                         value_of(rank, number, static_cast<int>(w))});
      }
      begun.emplace_back(number, team->agreements().combine(words));
      tarry(random);
      if (random() % 3 == 0) look(random() % begun.size());
    }
    while (!begun.empty()) look(random() % begun.size());
    CHECK(team->agreements().idle());
  });
}

/// Each member's values come in the order of ranks.
void gathered(int size, int ranks_a_host, unsigned seed) {
  Members members(size, ranks_a_host, seed);
  members.run([&](int rank, std::mt19937& random) {
    const auto team = ready_team(members, rank, random);
    const std::size_t most = std::min<std::size_t>(team->agreements().most_gathered(), 3);
    for (std::size_t count = 1; count <= most; ++count) {
      std::vector<std::uint64_t> own;
      for (std::size_t w = 0; w < count; ++w) {
        own.push_back(value_of(rank, static_cast<int>(count), static_cast<int>(w)));
      }
      const auto one = team->agreements().gather(own);
      while (!one->advance()) tarry(random);
      CHECK(one->result().size() == count * static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < one->result().size(); ++i) {
        const auto from = static_cast<int>(i / count);
        CHECK(one->result()[i] ==
              value_of(from, static_cast<int>(count), static_cast<int>(i % count)));
      }
    }
  });
}

/// Members that start different ones find out, on all of them; and so does whatever follows.
void mismatched(int size, int ranks_a_host, unsigned seed) {
  Members members(size, ranks_a_host, seed);
  members.run([&](int rank, std::mt19937& random) {
    const auto team = ready_team(members, rank, random);
    const Word words[] = {{Combine::max, 1}, {Combine::max, 2}};
    const std::size_t count = rank == size - 1 ? 2 : 1;
    for (int turn = 0; turn < 2; ++turn) {
      const auto one = team->agreements().combine(std::span(words).first(turn ? 1 : count));
      while (!one->advance()) tarry(random);
      CHECK(one->failed() && one->result().empty());
    }
  });
}

/// All find the same reason where facts forbid it, whoever has them.
void refused(int size, int ranks_a_host, unsigned seed) {
  const struct {
    Fact fact;
    std::uint64_t value;
    const char* why;
    bool has_different_codecs;
  } cases[] = {
      {Fact::wants, 0, "a rank does not want it", false},
      {Fact::settings, 8, "ranks run with different settings", false},
      {Fact::hints, 5, "ranks gave the communicator different hints", false},
      {Fact::codec_hint, 5, "ranks gave the communicator different hints", true},
  };
  Members members(size, ranks_a_host, seed);
  members.run([&](int rank, std::mt19937& random) {
    for (const auto& one : cases) {
      Facts facts = usual_facts();
      if (rank == size / 2) facts[one.fact] = one.value;
      const auto team = members.team(rank, facts);
      team->meet(members.channel(rank));
      while (!team->advance()) tarry(random);
      CHECK(team->state() == Team::State::refused && std::string_view(team->why_not()) == one.why);
      CHECK(team->hints().has_different_codecs() == one.has_different_codecs);
    }
  });
}

/// Where the exchange of facts fails, MPI serves the communicator, and the board is free again.
void exchanges_that_fail() {
  class Broken final : public link::Channel {
   public:
    int size() const override { return 2; }
    std::uint64_t tags() const override { return 1 << 20; }
    Pending send(const std::byte*, std::size_t, int, int) override { return {}; }
    Pending receive(std::byte*, std::size_t, int, int) override { return {}; }
    gpu::State poll(Pending&, std::size_t*) override { return gpu::State::failed; }
    std::optional<Found> find(int) override { return std::nullopt; }
    void take(const Found&, std::byte*, std::size_t) override {}
    Pending add_up(std::span<const std::uint64_t>, std::uint64_t*) override { return {}; }
    Pending greatest(std::span<std::uint64_t>) override { return {}; }
    Pending barrier() override { return {}; }
  };
  Members members(2, 2, 9);
  Broken channel;
  for (std::size_t made = 0; made < 2 * link::Sheet::most_boards; ++made) {
    const auto team =
        std::make_shared<OwnTeam>(members.boards(0), std::vector{0, 1}, 0, usual_facts());
    team->meet(channel);
    CHECK(team->advance() && team->state() == Team::State::refused && team->why_not() != nullptr);
    CHECK(team->give_back_board());
    members.boards(0).sweep();
  }
  const auto team = members.team(0, usual_facts());
  team->refuse("there is no channel");
  CHECK(team->advance() && team->state() == Team::State::refused);
}

/// As many as a process has boards, and more, one after another: each is given back.
void boards_are_given_back() {
  Members members(2, 2, 5);
  members.run([&](int rank, std::mt19937& random) {
    for (std::size_t made = 0; made < link::Sheet::most_boards + 10; ++made) {
      auto team =
          std::make_shared<OwnTeam>(members.boards(rank), std::vector{0, 1}, rank, usual_facts());
      team->meet(members.channel(rank));
      while (!team->advance()) tarry(random);
      CHECK(team->facts().is_true_for_all(Fact::has_board));
      const Word word{Combine::sum, 1};
      const auto one = team->agreements().combine({&word, 1});
      while (!one->advance()) tarry(random);
      CHECK(one->result()[0] == 2);
      CHECK(team->give_back_board());
      members.boards(rank).sweep();
    }
  });
}

/// Members know alike who shares a host.
void hosts_of_members() {
  Members members(7, 3, 1);
  members.run([&](int rank, std::mt19937& random) {
    const auto team = ready_team(members, rank, random);
    CHECK(team->hosts().count() == 3 && team->hosts().host(6) == 2);
    CHECK(team->share_host(3, 5) && !team->share_host(2, 3));
    CHECK(team->agreements().spans_hosts());
  });
}

}  // namespace
}  // namespace mpress

int main() {
  using namespace mpress;
  unsigned seed = 1;
  for (const int size : {2, 3, 5, 8, 17, 64}) {
    for (const int ranks_a_host : {size, 1, 3, 0}) {
      if (ranks_a_host > size) continue;
      agreements(size, ranks_a_host, seed++);
      gathered(size, ranks_a_host, seed++);
      if (size <= 8) mismatched(size, ranks_a_host, seed++);
      refused(size, ranks_a_host, seed++);
    }
  }
  exchanges_that_fail();
  boards_are_given_back();
  hosts_of_members();
  return check::failures != 0;
}
