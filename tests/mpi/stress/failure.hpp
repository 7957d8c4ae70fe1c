// Where the program is, and how it ends when something is wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "mpi_calls.hpp"
#include "plan.hpp"

namespace stress {

/// What a thread is at. Others may look while it is stuck.
struct Position {
  std::atomic<const Round*> round{nullptr};
  std::atomic<const Action*> action{nullptr};
  std::atomic<std::size_t> step{0};
  std::atomic<std::uint64_t> steps_done{0};
};

/// Of the calling thread.
extern thread_local Position* here;

/// For every message that says how to replay.
void set_command(int rank, const std::string& command);

/// Where `position` is, in words.
std::string text_of(const Position& position);

/// Ends the job with what went wrong, where, and how to replay it.
[[noreturn]] void fail(const std::string& what);

/// Fails unless `code` is MPI_SUCCESS.
void must(int code, const char* call);

inline void expect(bool condition, const char* what) {
  if (!condition) fail(what);
}

/// Fails where `found` is not `wanted`.
void expect_equal(long long found, long long wanted, const char* what);

}  // namespace stress
