// Times of an agreement among the members of a team, of an MPI_Allreduce of one number, and of the
// making of a team:
//
//   mpiexec -n 4 build/tests/ranks_mpich LIBMPI bench [RANKS_A_HOST]
//
// LIBMPI is the file of the library. Ranks are to have a core each.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "ranks.hpp"

namespace mpress::ranks {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Median and fastest of many batches.
template <typename Call>
void measure(Rank& rank, const char* what, int batches, int calls, Call call) {
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    rank.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    times.push_back(microseconds(begin) / calls);
  }
  std::sort(times.begin(), times.end());
  if (rank.rank == 0) {
    std::printf("%-44s median %8.2f us, fastest %8.2f us\n", what, times[times.size() / 2],
                times.front());
  }
}

}  // namespace

void bench(Rank& rank) {
  engine::Agreements& agreements = rank.teams.world()->agreements();
  const engine::Word word{engine::Combine::max, static_cast<std::uint64_t>(rank.rank)};
  const auto agree = [&] {
    const auto one = agreements.combine({&word, 1});
    for (engine::Backoff backoff; !one->advance(); backoff.pause()) {
    }
    CHECK(!one->failed());
  };
  std::uint64_t in = 1;
  std::uint64_t out = 0;
  measure(rank, "agree on one number", 51, 1000, agree);
  measure(rank, "MPI_Allreduce of one number", 51, 1000,
          [&] { mpi::calls().Allreduce(&in, &out, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD); });
  measure(rank, "8 agreements at once", 51, 100, [&] {
    std::shared_ptr<engine::Agreement> all[8];
    for (auto& one : all) one = agreements.combine({&word, 1});
    for (auto& one : all) {
      for (engine::Backoff backoff; !one->advance(); backoff.pause()) {
      }
    }
  });
  measure(rank, "make and free a communicator", 11, 20, [&] {
    MPI_Comm comm = MPI_COMM_NULL;
    mpi::calls().Comm_split(MPI_COMM_WORLD, 0, rank.rank, &comm);
    mpi::calls().Comm_free(&comm);
  });
  measure(rank, "the same, and its team", 11, 20, [&] {
    MPI_Comm comm = MPI_COMM_NULL;
    mpi::calls().Comm_split(MPI_COMM_WORLD, 0, rank.rank, &comm);
    {
      engine::Team* team = rank.teams.of(mpi::comm_info(comm));
      rank.wait([&] { return team->is_decided(); });
    }
    mpi::calls().Comm_free(&comm);
  });
}

}  // namespace mpress::ranks
