#include "failure.hpp"

#include <cstdio>
#include <cstdlib>

namespace stress {
namespace {

int own_rank = 0;
std::string own_command;

}  // namespace

thread_local Position* here = nullptr;

void set_command(int rank, const std::string& command) {
  own_rank = rank;
  own_command = command;
}

std::string text_of(const Position& position) {
  const Round* round = position.round;
  if (!round) return "between rounds";
  std::string text = "stream " + std::to_string(round->stream) + " round " +
                     std::to_string(round->number) + " step " +
                     std::to_string(position.step.load());
  const Action* action = position.action;
  return action ? text + ", " + text_of(*round, *action) : text + ", at its end";
}

void fail(const std::string& what) {
  const Round* round = here ? here->round.load() : nullptr;
  const std::string from =
      round ? " --first-round " + std::to_string(round->number) : std::string();
  std::fprintf(stderr, "stress: rank %d: failed: %s\n  at %s\n  replay: %s%s --verbose\n", own_rank,
               what.c_str(), here ? text_of(*here).c_str() : "start", own_command.c_str(),
               from.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void must(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(std::string(call) + ": " + text);
}

void expect_equal(long long found, long long wanted, const char* what) {
  if (found == wanted) return;
  fail(std::string(what) + " is " + std::to_string(found) + ", expected " + std::to_string(wanted));
}

}  // namespace stress
