// Calls that mpress leaves to MPI, and that may wait for other ranks: those may wait in turn for
// what is under way here, which gets on meanwhile (mpi/job/blocking.hpp).

#include "preload/blocking_calls.hpp"

#include "mpi/calls/calls.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::preload {
namespace {

template <auto own>
constexpr bool ends_comm = false;
template <>
constexpr bool ends_comm<&mpi::BlockingCalls::Comm_free> = true;
template <>
constexpr bool ends_comm<&mpi::BlockingCalls::Comm_disconnect> = true;

template <typename Call>
struct Entries;
template <typename... A>
struct Entries<int (*)(A...)> {
  template <auto own>
  static int entry(A... arguments) {
    engine::Job* const job = engine::enter_blocking_call();
    const auto call = mpi::blocking_calls().*own;
    if (!call) mpi::fatal("the program called a call of MPI's that its library does not have");
    if constexpr (ends_comm<own>) {
      const mpi::EndingComm ending(arguments...);
      return engine::after_blocking(job, call(arguments...));
    }
    return engine::after_blocking(job, call(arguments...));
  }
};

}  // namespace

#define MPRESS_ENTRY(name, ...) \
  .name = Entries<decltype(mpi::BlockingCalls::name)>::entry<&mpi::BlockingCalls::name>,

constinit const mpi::BlockingCalls watched_calls = {MPRESS_BLOCKING(MPRESS_ENTRY)};

}  // namespace mpress::preload
