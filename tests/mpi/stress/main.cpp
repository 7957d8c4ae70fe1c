// A random, replayable program of MPI's messages, with collective calls between them, that checks
// every bit of what comes.
//
//   stress [--seed N] [--rounds N | --seconds N] [--first-round N] [--threads N] [--max-bytes N]
//          [--only FAMILY[,FAMILY...]] [--timeout SECONDS] [--verbose] [--careful]
//          [--devices | --scarce] [--one-way]
//
// What happens follows from the seed, the number of ranks and these options alone, whatever the
// timing; --verbose prints it.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "communicators.hpp"
#include "execution.hpp"
#include "failure.hpp"
#include "floats.hpp"
#include "mpi_calls.hpp"
#include "plan.hpp"
#include "sized_thread.hpp"

namespace stress {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  Settings settings;
  int first_round = 0;
  int rounds = 50;
  double seconds = 0;  ///< instead of `rounds`
  int timeout = 300;   ///< without a step
  bool verbose = false;
  bool one_way = false;  ///< odd ranks reach no device of another process
  std::string command;
};

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr, "stress: %s\n", what.c_str());
  std::exit(2);
}

std::uint32_t families(const std::string& list) {
  std::uint32_t bits = 1;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, end - at);
    std::uint32_t bit = 0;
    for (int f = 0; f < static_cast<int>(Family::count_); ++f) {
      if (name == name_of(static_cast<Family>(f))) bit = 1u << f;
    }
    if (bit == 0) usage("--only " + name + ": expected families, as in probe,wildcard");
    bits |= bit;
    at = end + 1;
  }
  return bits;
}

Options parse(int argc, char** argv) {
  Options options;
  Settings& settings = options.settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (name == "--careful") {
      settings.careful = true;
      continue;
    }
    if (name == "--one-way") {
      options.one_way = true;
      continue;
    }
    if (name == "--devices" || name == "--scarce") {
      settings.devices = true;
      settings.scarce = settings.scarce || name == "--scarce";
      continue;
    }
    if (i + 1 == argc) usage(name + ": expected a value after it");
    const char* value = argv[++i];
    const long long number = std::atoll(value);
    if (name == "--seed") {
      settings.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--rounds") {
      options.rounds = static_cast<int>(number);
    } else if (name == "--first-round") {
      options.first_round = static_cast<int>(number);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--threads") {
      settings.threads = static_cast<int>(number);
    } else if (name == "--max-bytes") {
      settings.max_bytes = static_cast<std::size_t>(number);
    } else if (name == "--timeout") {
      options.timeout = static_cast<int>(number);
    } else if (name == "--only") {
      settings.families = families(value);
    } else {
      usage(name + ": unknown option");
    }
  }
#ifdef OPEN_MPI
  // Open MPI 5.0 by itself writes beside the layout of a receive that is too small, and loses its
  // error in some completion calls.
  settings.families &= ~(1u << static_cast<int>(Family::truncate));
#endif
  if (settings.threads < 1 || settings.threads > 50) usage("--threads: expected 1 to 50");
  if (settings.max_bytes < 64) usage("--max-bytes: expected at least 64");
  options.command = "--seed " + std::to_string(settings.seed) + " --threads " +
                    std::to_string(settings.threads) + " --max-bytes " +
                    std::to_string(settings.max_bytes);
  if (settings.devices) options.command += settings.scarce ? " --scarce" : " --devices";
  if (options.one_way) options.command += " --one-way";
  if (settings.families != default_families) {
    options.command += " --only ";
    for (int f = 0; f < static_cast<int>(Family::count_); ++f) {
      const auto family = static_cast<Family>(f);
      if (settings.has(family)) options.command += std::string(f ? "," : "") + name_of(family);
    }
  }
  return options;
}

/// Ends the process where no thread has done a step for long: a hang is a failure.
class Watchdog {
 public:
  Watchdog(int rank, int timeout, std::vector<Position>& positions)
      : thread_([this, rank, timeout, &positions] { watch(rank, timeout, positions); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    over_ = true;
    thread_.join();
  }

 private:
  void watch(int rank, int timeout, const std::vector<Position>& positions) {
    std::uint64_t last = 0;
    for (auto since = Clock::now(); !over_;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::uint64_t done = 1;
      for (const Position& position : positions) done += position.steps_done;
      if (done != last) {
        last = done;
        since = Clock::now();
      }
      if (Clock::now() - since < std::chrono::seconds(timeout)) continue;
      for (const Position& position : positions) {
        std::fprintf(stderr, "stress: rank %d: no progress in %d s at %s\n", rank, timeout,
                     text_of(position).c_str());
      }
      std::fflush(stderr);
      std::this_thread::sleep_for(std::chrono::seconds(2));  // the others say where they are
      ::_exit(3);
    }
  }

  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// A buffer for MPI_Bsend that has room for everything that two rounds can send.
class BsendBuffer {
 public:
  explicit BsendBuffer(const Settings& settings)
      : bytes_(static_cast<std::size_t>(settings.threads) * 60 *
               (settings.max_bytes + MPI_BSEND_OVERHEAD + 64)),
        memory_(new std::byte[bytes_]) {
    attach();
  }
  BsendBuffer(const BsendBuffer&) = delete;
  BsendBuffer& operator=(const BsendBuffer&) = delete;
  ~BsendBuffer() { detach(); }

  void attach() {
    must(MPI_Buffer_attach(memory_.get(), static_cast<int>(bytes_)), "MPI_Buffer_attach");
  }
  void detach() {
    void* buffer = nullptr;
    int bytes = 0;
    must(MPI_Buffer_detach(&buffer, &bytes), "MPI_Buffer_detach");
    expect(buffer == memory_.get(), "MPI_Buffer_detach tells another buffer");
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

/// The rounds of one thread.
void run_stream(const Options& options, int rank, int stream, MPI_Comm root, Position& position,
                Ledger& ledger, BsendBuffer& bsend) {
  here = &position;
  const Settings& settings = options.settings;
  Communicators comms(rank, root);
  const auto begin = Clock::now();
  for (int number = options.first_round;; ++number) {
    int more = number < options.first_round + options.rounds;
    if (options.seconds > 0) {
      more = Clock::now() - begin < std::chrono::duration<double>(options.seconds);
      must(MPI_Bcast(&more, 1, MPI_INT, 0, root), "MPI_Bcast");
    }
    if (!more) break;
    const Round round = plan_round(settings, stream, number);
    if (options.verbose && rank == 0) print(round);
    comms.prepare(round.comms, number / epoch_rounds);
    {
      const auto place = static_cast<std::uint64_t>(rank * settings.threads + stream);
      const auto at = static_cast<std::uint64_t>(number);
      const DrawnFloats floats(mix(settings.seed, mix(place, at)));
      Execution(settings, rank, round, comms, ledger).run();
      floats.check();
    }
    comms.forget(round.freed);
    if (settings.threads == 1 && number % 5 == 0) {
      bsend.detach();
      bsend.attach();
    }
  }
  comms.free_all();
}

int run(Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &options.settings.ranks);
  const Settings& settings = options.settings;
  if (options.one_way && rank % 2 == 1) ::setenv("SIMULATED_GPU_PEERS", "0", 1);
  set_command(rank, "-n " + std::to_string(settings.ranks) + " stress " + options.command);
  if (rank == 0) {
    std::printf("stress: -n %d %s\n", settings.ranks, options.command.c_str());
    std::fflush(stdout);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const auto streams = static_cast<std::size_t>(settings.threads);
  std::vector<Position> positions(streams);
  std::vector<MPI_Comm> roots(streams);
  for (MPI_Comm& root : roots) MPI_Comm_dup(MPI_COMM_WORLD, &root);
  Ledger ledger;
  {
    BsendBuffer bsend(settings);
    const Watchdog watchdog(rank, options.timeout, positions);
    const auto stream = [&](std::size_t s) {
      run_stream(options, rank, static_cast<int>(s), roots[s], positions[s], ledger, bsend);
    };
    std::deque<SizedThread> threads;
    for (std::size_t s = 1; s < streams; ++s) {
      const auto place = static_cast<std::uint64_t>(rank) * streams + s;
      threads.emplace_back(Random(mix(settings.seed, place)), [&stream, s] { stream(s); });
    }
    stream(0);
  }
  ledger.check();
  for (MPI_Comm& root : roots) MPI_Comm_free(&root);
  return rank;
}

}  // namespace
}  // namespace stress

int main(int argc, char** argv) {
  stress::Options options = stress::parse(argc, argv);
  const bool threaded = options.settings.threads > 1;
  const int required = threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, required, &provided);
  if (provided < required) stress::usage("this MPI gives no MPI_THREAD_MULTIPLE");
  const int rank = stress::run(options);
  MPI_Finalize();
  if (rank == 0) std::puts("ok");
  return 0;
}
