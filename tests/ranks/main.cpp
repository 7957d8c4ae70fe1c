// ranks LIBMPI TEST[,TEST...] [RANKS_A_HOST]: runs tests, one after another, on each rank; its exit
// status tells.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "coll/blocks/envelope.hpp"
#include "mpi/progress_hook.hpp"
#include "ranks.hpp"

using namespace mpress;

/// No blocks travel here.
std::unique_ptr<engine::Envelopes> engine::CommTeam::envelopes(Messaging&, int) const {
  return nullptr;
}

namespace {

struct Named {
  const char* name;
  ranks::Test* test;
};

constexpr Named tests[] = {
    {"agree", ranks::agree},
    {"agree_at_once", ranks::agree_at_once},
    {"gather", ranks::gather},
    {"orders", ranks::orders},
    {"freed", ranks::freed},
    {"refused", ranks::refused},
    {"threads", ranks::threads},
    {"lost", ranks::lost},
    {"hook", ranks::hook},
    {"mismatch", ranks::mismatch},
    {"bench", ranks::bench},
    {"channel_link", ranks::channel_link},
    {"peer_link", ranks::peer_link},
    {"host_link", ranks::host_link},
    {"channel_link_lost", ranks::channel_link_lost},
    {"peer_link_lost", ranks::peer_link_lost},
    {"host_link_lost", ranks::host_link_lost},
};

/// Is it one of those that are named, with commas between them?
bool is_among(const char* name, const char* names) {
  return ("," + std::string(names) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  void* library = ::dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 2;
  }
  mpi::bind(library, words[1]);
  const mpi::Calls& mpi = mpi::calls();
  const bool threaded = std::strcmp(words[2], "threads") == 0 || std::getenv("RANKS_THREADED");
  int level = 0;
  mpi.Init_thread(nullptr, nullptr, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  static ranks::Rank rank;
  rank.peek.open(level == MPI_THREAD_MULTIPLE);
  mpi.Comm_rank(MPI_COMM_WORLD, &rank.rank);
  mpi.Comm_size(MPI_COMM_WORLD, &rank.size);
  rank.random.seed(static_cast<unsigned>(rank.rank) + 1);
  engine::Facts facts;
  facts[engine::Fact::wants] = 1;
  facts[engine::Fact::settings] = 17;
  facts[engine::Fact::has_hook] = mpi::has_progress_hook();
  facts[engine::Fact::least_chunk] = static_cast<std::uint64_t>(rank.rank) + 5;
  rank.teams.open({1, 2, 3}, facts, count > 3 ? std::atoi(words[3]) : 0);
  CHECK(rank.teams.world()->is_ready());
  int run = 0;
  for (const Named& named : tests) {
    if (!is_among(named.name, words[2])) continue;
    const int before = check::failures;
    named.test(rank);
    rank.wait([] { return rank.progress.idle(); });
    rank.barrier();
    if (check::failures != before) {
      std::fprintf(stderr, "rank %d: %s failed\n", rank.rank, named.name);
    }
    ++run;
  }
  CHECK(run > 0);
  mpi::remove_progress_hook();
  rank.teams.close();
  reinterpret_cast<int (*)()>(::dlsym(library, "PMPI_Finalize"))();
  if (check::failures == 0) std::printf("rank %d is content\n", rank.rank);
  return check::failures != 0;
}
