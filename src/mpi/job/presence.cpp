#include "mpi/job/presence.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

namespace mpress::engine {
namespace {

/// How many ranks of the job run on this host, as the launcher tells; all where it does not.
int local_size(int size) {
  for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    if (const char* value = std::getenv(name)) {
      const int count = std::atoi(value);
      if (count > 0 && count <= size) return count;
    }
  }
  return size;
}

bool read_record_header(const std::string& path, trace::RecordHeader& header) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  // The counters behind it are many, and grow.
  constexpr std::size_t bytes = offsetof(trace::RecordHeader, left);
  const bool whole = ::read(fd, static_cast<void*>(&header), bytes) == bytes;
  ::close(fd);
  return whole && std::memcmp(header.magic, "mpressR1", 8) == 0 && header.size > 0;
}

std::vector<std::string> record_files(const std::string& directory) {
  std::vector<std::string> paths;
  if (DIR* open_directory = ::opendir(directory.c_str())) {
    while (const dirent* entry = ::readdir(open_directory)) {
      if (std::strncmp(entry->d_name, "rank-", 5) == 0) {
        paths.push_back(directory + "/" + entry->d_name);
      }
    }
    ::closedir(open_directory);
  }
  return paths;
}

/// The first "name=value" word in which two settings differ.
std::string difference(const std::string& ours, const std::string& theirs) {
  std::istringstream our_words(ours), their_words(theirs);
  std::string our_word, their_word;
  while (our_words >> our_word && their_words >> their_word) {
    if (our_word != their_word) return their_word + " there, " + our_word + " here";
  }
  return "'" + theirs + "' there, '" + ours + "' here";
}

std::string missing_ranks(const std::set<int>& present, int size) {
  std::string text;
  int listed = 0;
  for (int rank = 0; rank < size && listed < 8; ++rank) {
    if (present.count(rank)) continue;
    text += (listed++ ? ", " : "") + std::to_string(rank);
  }
  return text;
}

}  // namespace

std::string record_path(const std::string& directory, int rank) {
  return directory + "/rank-" + std::to_string(rank) + "." + std::to_string(::getpid()) + ".rec";
}

std::string timeline_path(const std::string& directory, int rank) {
  return directory + "/timeline-" + std::to_string(rank) + "." + std::to_string(::getpid()) +
         ".rec";
}

bool check_presence(const std::string& directory, const trace::RecordHeader& own,
                    std::uint64_t timeout_ns, std::string& error) {
  const std::uint64_t begin = trace::now_ns();
  const int expected = local_size(own.size);
  std::set<int> present;
  const auto header = std::make_unique<trace::RecordHeader>();  // too long for small stacks
  trace::RecordHeader& other = *header;
  for (;;) {
    present.clear();
    for (const std::string& path : record_files(directory)) {
      if (!read_record_header(path, other)) continue;
      if (std::strncmp(other.host, own.host, sizeof own.host) != 0) continue;
      if (std::strncmp(other.settings, own.settings, sizeof own.settings) != 0) {
        error = "rank " + std::to_string(other.rank) +
                " runs with other settings: " + difference(own.settings, other.settings);
        return false;
      }
      present.insert(other.rank);
    }
    if (static_cast<int>(present.size()) >= expected) return true;
    if (trace::now_ns() - begin > timeout_ns) break;
    const timespec pause{0, 1000000};
    ::nanosleep(&pause, nullptr);
  }
  error = "only " + std::to_string(present.size()) + " of " + std::to_string(expected) +
          " ranks on this host loaded mpress; without it: rank " + missing_ranks(present, own.size);
  return false;
}

}  // namespace mpress::engine
