// Ranks that announce themselves by their records: who is missing, late, elsewhere, or has other
// settings.

#include "mpi/job/presence.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "check.hpp"

using namespace mpress;

namespace {

/// The records of a job in a folder of their own.
class Records {
 public:
  Records() { CHECK(::mkdtemp(folder_) != nullptr); }
  ~Records() { std::filesystem::remove_all(folder_); }

  void write(const trace::RecordHeader& header) const {
    const std::string path = engine::record_path(folder_, header.rank);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    CHECK(file != nullptr && std::fwrite(&header, sizeof header, 1, file) == 1);
    std::fclose(file);
  }

  /// What the rank of `own`, in a job of two, finds within `timeout_ns`; empty: all are there.
  std::string missed(const trace::RecordHeader& own, std::uint64_t timeout_ns) const {
    std::string error;
    const bool present = engine::check_presence(folder_, own, timeout_ns, error);
    CHECK(present == error.empty());
    return error;
  }

 private:
  char folder_[32] = "/tmp/mpress-presence-XXXXXX";
};

void describe(trace::RecordHeader& header, int rank, const char* settings = "codec=mpc force=1",
              const char* host = "here") {
  std::memcpy(header.magic, "mpressR1", 8);
  header.rank = rank;
  header.size = 2;
  std::snprintf(header.host, sizeof header.host, "%s", host);
  std::snprintf(header.settings, sizeof header.settings, "%s", settings);
}

constexpr std::uint64_t at_once = 50'000'000;
constexpr std::uint64_t patiently = 60'000'000'000;

void all_are_there() {
  Records records;
  trace::RecordHeader own{}, other{};
  describe(own, 0);
  describe(other, 1);
  records.write(own);
  records.write(other);
  CHECK(records.missed(own, at_once).empty());
}

void a_rank_is_missing() {
  Records records;
  trace::RecordHeader own{}, unfinished{}, elsewhere{};
  describe(own, 0);
  records.write(own);
  const std::string expected = "only 1 of 2 ranks on this host loaded mpress; without it: rank 1";
  CHECK(records.missed(own, at_once) == expected);
  describe(elsewhere, 1, "codec=mpc force=1", "there");
  records.write(elsewhere);
  CHECK(records.missed(own, at_once) == expected);
  ::setenv("MPI_LOCALNRANKS", "1", 1);
  CHECK(records.missed(own, at_once).empty());
  ::unsetenv("MPI_LOCALNRANKS");
  describe(unfinished, 1);
  unfinished.size = 0;
  records.write(unfinished);
  CHECK(records.missed(own, at_once) == expected);
}

void a_rank_is_late() {
  Records records;
  trace::RecordHeader own{}, other{};
  describe(own, 0);
  describe(other, 1);
  records.write(own);
  std::thread late([&] {
    ::usleep(20000);
    records.write(other);
  });
  CHECK(records.missed(own, patiently).empty());
  late.join();
}

void a_rank_has_other_settings() {
  Records records;
  trace::RecordHeader own{}, other{};
  describe(own, 0);
  describe(other, 1, "codec=zfp:8 force=1");
  records.write(own);
  records.write(other);
  CHECK(records.missed(own, patiently) ==
        "rank 1 runs with other settings: codec=zfp:8 there, codec=mpc here");
}

}  // namespace

int main() {
  ::unsetenv("MPI_LOCALNRANKS");
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  all_are_there();
  a_rank_is_missing();
  a_rank_is_late();
  a_rank_has_other_settings();
  return check::failures != 0;
}
