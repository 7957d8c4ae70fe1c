#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "mpi/progress_hook.hpp"
#include "ranks.hpp"

namespace mpress::ranks {
namespace {

using engine::Agreement;
using engine::Combine;
using engine::Fact;
using engine::Team;
using engine::Word;
using std::uint64_t;

uint64_t value(int rank, int round) {
  return static_cast<uint64_t>(rank + 1) * 0x9E3779B97F4A7C15 ^ static_cast<uint64_t>(round) * 77;
}

std::vector<Word> words_of(const Team& team, int rank, int round) {
  const uint64_t own = value(team.world_rank(rank), round);
  return {{Combine::bit_and, own | 0xF0},
          {Combine::bit_or, own},
          {Combine::min, own},
          {Combine::max, own},
          {Combine::sum, own},
          {Combine::sum, static_cast<uint64_t>(round)}};
}

std::vector<uint64_t> expected(const Team& team, int round) {
  std::vector<uint64_t> all(6);
  for (int i = 0; i < team.size(); ++i) {
    const std::vector<Word> words = words_of(team, i, round);
    for (std::size_t w = 0; w < words.size(); ++w) {
      const uint64_t v = words[w].value;
      uint64_t& to = all[w];
      if (i == 0) {
        to = v;
        continue;
      }
      switch (words[w].combine) {
        case Combine::bit_and: to &= v; break;
        case Combine::bit_or: to |= v; break;
        case Combine::min: to = std::min(to, v); break;
        case Combine::max: to = std::max(to, v); break;
        case Combine::sum: to += v; break;
      }
    }
  }
  return all;
}

bool is_right(const Team& team, const Agreement& one, int round) {
  const auto result = one.result();
  return !one.failed() && std::ranges::equal(result, expected(team, round));
}

std::shared_ptr<Agreement> start(Rank& rank, Team& team, int round) {
  auto one = team.agreements().combine(words_of(team, team.rank(), round));
  if (!one->advance()) rank.progress.add(one);
  return one;
}

MPI_Comm split(int color, int key) {
  MPI_Comm made = MPI_COMM_NULL;
  mpi::calls().Comm_split(MPI_COMM_WORLD, color, key, &made);
  return made;
}

void check_comm(Rank& rank, MPI_Comm comm, int rounds) {
  Team* team = rank.teams.of(mpi::comm_info(comm));
  int size = 0;
  mpi::calls().Comm_size(comm, &size);
  CHECK((team != nullptr) == (size > 1));
  if (!team || !rank.wait([&] { return team->is_decided(); })) return;
  CHECK(team->is_ready());
  for (int round = 0; round < rounds; ++round) {
    const auto one = start(rank, *team, round);
    if (!rank.wait([&] { return one->advance(); })) return;
    CHECK(is_right(*team, *one, round));
  }
}

bool poll_progress();
Rank* polled = nullptr;
bool poll_progress() {
  polled->progress.advance();
  return !polled->progress.idle();
}

}  // namespace

/// One after the other, ranks late by turns.
void agree(Rank& rank) {
  Team& world = *rank.teams.world();
  for (int i = 0; i < world.size(); ++i) CHECK(world.world_rank(i) == i);
  CHECK(world.facts().lowest(Fact::least_chunk) == 5);
  CHECK(world.facts().highest(Fact::least_chunk) == 5 + static_cast<uint64_t>(rank.size) - 1);
  for (int round = 0; round < 600; ++round) {
    if (round % 7 == 0) rank.dawdle();
    const auto one = start(rank, world, round);
    if (!rank.wait([&] { return one->advance(); })) return;
    CHECK(is_right(world, *one, round));
    if (check::failures > 0) return;
  }
}

/// Many under way, more than there are slots, on several teams; looked at in any order.
void agree_at_once(Rank& rank) {
  std::vector<MPI_Comm> comms;
  std::vector<Team*> teams = {rank.teams.world().get()};
  comms.push_back(split(rank.rank % 2, rank.rank));
  comms.push_back(split(rank.rank / 2, -rank.rank));
  comms.push_back(split(0, -rank.rank));
  for (MPI_Comm comm : comms) {
    if (Team* team = rank.teams.of(mpi::comm_info(comm))) teams.push_back(team);
  }
  for (Team* team : teams) rank.wait([&] { return team->is_decided(); });
  for (int wave = 0; wave < 30; ++wave) {
    struct One {
      Team* team;
      int round;
      std::shared_ptr<Agreement> agreement;
    };
    std::vector<One> all;
    for (int round = 0; round < 20; ++round) {
      for (Team* team : teams) {
        all.push_back({team, round + wave, start(rank, *team, round + wave)});
        rank.dawdle();
      }
    }
    std::shuffle(all.begin(), all.end(), rank.random);
    for (const One& one : all) {
      if (!rank.wait([&] { return one.agreement->advance(); })) return;
      CHECK(is_right(*one.team, *one.agreement, one.round));
    }
    if (check::failures > 0) return;
  }
  for (MPI_Comm& comm : comms) mpi::calls().Comm_free(&comm);
}

void gather(Rank& rank) {
  Team& world = *rank.teams.world();
  CHECK(world.agreements().most_gathered() <= engine::Agreements::most_words);
  for (int round = 0; round < 200; ++round) {
    const std::vector<uint64_t> own = {value(rank.rank, round), static_cast<uint64_t>(round)};
    CHECK(world.agreements().most_gathered() >= own.size());
    const auto one = world.agreements().gather(own);
    rank.progress.add(one);
    rank.dawdle();
    if (!rank.wait([&] { return one->is_over(); })) return;
    CHECK(one->result().size() == 2 * static_cast<std::size_t>(rank.size));
    for (int i = 0; i < rank.size && !one->failed(); ++i) {
      CHECK(one->result()[2 * static_cast<std::size_t>(i)] == value(i, round));
      CHECK(one->result()[2 * static_cast<std::size_t>(i) + 1] == static_cast<uint64_t>(round));
    }
    if (check::failures > 0) return;
  }
}

/// Communicators used first in another order by each rank, and their makings at once.
void orders(Rank& rank) {
  for (int wave = 0; wave < 5; ++wave) {
    std::vector<MPI_Comm> comms;
    for (int i = 0; i < 6; ++i) comms.push_back(split((rank.rank >> (i % 3)) & 1, i * rank.rank));
    std::vector<std::size_t> order(comms.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rank.random);
    for (const std::size_t i : order) {
      rank.teams.of(mpi::comm_info(comms[i]));
      rank.dawdle();
    }
    // All are under way before any is waited for; then those that all have, in one order.
    for (MPI_Comm comm : comms) check_comm(rank, comm, 10);
    for (MPI_Comm& comm : comms) mpi::calls().Comm_free(&comm);
    if (check::failures > 0) return;
  }
}

/// Freed at once, in the middle of the making, and after use; boards and communicators come back.
void freed(Rank& rank) {
  for (int wave = 0; wave < 150; ++wave) {
    MPI_Comm comm = split(0, rank.rank);
    const auto info = mpi::comm_info(comm);
    Team* team = rank.teams.of(info);
    CHECK(team != nullptr);
    if (wave % 3 == 1) rank.dawdle();
    if (wave % 3 == 2) check_comm(rank, comm, 2);
    mpi::calls().Comm_free(&comm);
    if (check::failures > 0) return;
    if (!rank.wait([&] { return rank.progress.idle(); })) return;
  }
  const link::Sheet* sheet = rank.teams.hosts().own_sheet();
  CHECK(sheet && sheet->used.load() < 64);
}

/// One rank does not want it, or gives other hints: all know.
void refused(Rank& rank) {
  for (int who = 0; who < rank.size; ++who) {
    MPI_Comm comm = split(0, rank.rank);
    const auto info = mpi::comm_info(comm);
    if (who == rank.rank) {
      mpi::Hints hints;
      hints.threshold = {"4096", 4096};
      info->hints.update(hints);
    }
    Team* team = rank.teams.of(info);
    if (!team || !rank.wait([&] { return team->is_decided(); })) return;
    CHECK((team->state() == Team::State::refused) == (rank.size > 1));
    CHECK(rank.size == 1 || std::string_view(team->why_not()).find("hints") != std::string::npos);
    CHECK(comm_of(*team) != MPI_COMM_NULL);
    CHECK(mpi::calls().Barrier(comm_of(*team)) == MPI_SUCCESS);
    mpi::calls().Comm_free(&comm);
  }
}

/// Each thread has communicators of its own; all advance everything.
void threads(Rank& rank) {
  constexpr int count = 3;
  std::vector<MPI_Comm> comms;
  for (int i = 0; i < count; ++i) comms.push_back(split(0, rank.rank));
  std::atomic<int> running{count};
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      check_comm(rank, comms[static_cast<std::size_t>(i)], 400);
      --running;
    });
  }
  all.emplace_back([&] {
    while (running > 0) {
      rank.progress.advance();
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : all) thread.join();
  for (MPI_Comm& comm : comms) mpi::calls().Comm_free(&comm);
}

/// A member ends in the middle: the others get an error, and the same one. To be run with a
/// launcher that leaves them alone.
void lost(Rank& rank) {
  Team& world = *rank.teams.world();
  const int last = rank.size - 1;
  std::signal(SIGUSR1, SIG_IGN);  // what MPICH's launcher tells the others with
  for (int round = 0; round < 20; ++round) {
    if (rank.rank == last && round == 10) ::raise(SIGKILL);
    const auto one = start(rank, world, round);
    if (!rank.wait([&] { return one->advance(); })) break;
    CHECK(one->failed() == (round >= 10));
  }
  // What a rank prints when another has ended, the launcher may lose.
  const char* folder = std::getenv("RANKS_FOLDER");
  if (check::failures == 0 && folder) {
    std::ofstream(std::string(folder) + "/told." + std::to_string(rank.rank)) << "told";
  }
  ::sleep(1);  // launchers may end the others as soon as one has left without MPI_Finalize
  ::_exit(check::failures != 0);
}

/// Members that ask for different things are told so.
void mismatch(Rank& rank) {
  Team& world = *rank.teams.world();
  const Word word{rank.rank == 0 ? Combine::min : Combine::max, 1};
  for (int i = 0; i < 20; ++i) {
    const auto one = world.agreements().combine({&word, 1});
    if (!rank.wait([&] { return one->advance(); })) return;
    CHECK(one->failed() && one->result().empty());
  }
}

/// What is under way gets on while this process blocks in MPI: the last rank enters the blocking
/// call only when it is over.
void hook(Rank& rank) {
  if (!mpi::has_progress_hook()) return;
  polled = &rank;
  for (int wave = 0; wave < 20; ++wave) {
    MPI_Comm comm = split(0, rank.rank);
    const auto info = mpi::comm_info(comm);
    Team& team = *rank.teams.of(info);
    const auto begun = start(rank, *rank.teams.world(), wave);
    CHECK(mpi::add_progress_hook(poll_progress));
    if (rank.rank == rank.size - 1) {
      rank.wait([&] { return begun->advance() && team.is_decided(); });
    }
    rank.barrier();
    CHECK(begun->advance() && is_right(*rank.teams.world(), *begun, wave));
    if (!rank.wait([&] { return team.is_decided(); })) return;
    CHECK(team.is_ready());
    mpi::calls().Comm_free(&comm);
    if (check::failures > 0) return;
  }
  // It has taken itself away, and works again.
  rank.wait([&] { return rank.progress.idle(); });
  rank.barrier();
}

}  // namespace mpress::ranks
