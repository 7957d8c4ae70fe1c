// Collective calls: those of src/preload with large counts, in a scope that knows what is asked
// for; and the table of all functions.

#include <mpress/iso.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/call.hpp"
#include "api/entries.hpp"
#include "api/request.hpp"
#include "preload/buffer_calls.hpp"

namespace mpress::api {
namespace {

using mpi::BufferCalls;
using mpi::LargeCounts;

/// The last of the arguments is the communicator; handles may be numbers, as others are.
template <typename... A>
MPI_Comm comm_of(A... arguments) {
  MPI_Comm comm = MPI_COMM_NULL;
  const auto look = [&](auto argument) {
    if constexpr (std::is_same_v<decltype(argument), MPI_Comm>) comm = argument;
  };
  (look(arguments), ...);
  return comm;
}

/// The buffers of a call.
template <typename... A>
std::array<const void*, 2> buffers_of(A... arguments) {
  std::array<const void*, 2> buffers{};
  std::size_t found = 0;
  const auto look = [&](auto argument) {
    using T = decltype(argument);
    if constexpr (std::is_same_v<T, void*> || std::is_same_v<T, const void*>) {
      buffers[found++] = argument;
    }
  };
  // Handles of Open MPI are pointers to what is no data.
  (look(arguments), ...);
  return buffers;
}

/// On whose side a call's arrays of counts, displacements and types count. Those of neighbours may
/// be null where there are none.
enum class Arrays : unsigned char { none, of_root, of_all };

constexpr Arrays arrays_of(std::string_view name) {
  if (name == "gatherv" || name == "scatterv") return Arrays::of_root;
  const bool have_all = name == "allgatherv" || name == "alltoallv" || name == "alltoallw" ||
                        name == "reduce_scatter";
  return have_all ? Arrays::of_all : Arrays::none;
}

/// MPI is asked for no rank of what is no communicator, and says so itself.
bool is_root(MPI_Comm comm, int root) {
  int rank = 0, is_inter = 0;
  if (comm == MPI_COMM_NULL) return false;
  mpi::calls().Comm_test_inter(comm, &is_inter);
  mpi::calls().Comm_rank(comm, &rank);
  return is_inter ? root == MPI_ROOT : root == rank;
}

/// Null: all arrays are there that a call needs. Behind each buffer come its counts, then its
/// displacements, then its types; those behind MPI_IN_PLACE do not count.
template <Arrays arrays, typename... A>
const char* missing_array(A... arguments) {
  if constexpr (arrays == Arrays::none) return nullptr;
  static constexpr std::array names{"counts", "displacements", "types"};
  std::size_t at = 0;
  bool counts = true;
  int last = MPI_PROC_NULL, before = MPI_PROC_NULL;  // numbers, as handles may be
  const char* missing = nullptr;
  const auto look = [&](auto argument) {
    using T = decltype(argument);
    if constexpr (std::is_same_v<T, void*> || std::is_same_v<T, const void*>) {
      at = 0;
      counts = argument != MPI_IN_PLACE;
    } else if constexpr (std::is_pointer_v<T> && std::is_const_v<std::remove_pointer_t<T>>) {
      if (!argument && counts && !missing) missing = names[at];
      ++at;
    } else if constexpr (std::is_same_v<T, int>) {
      before = std::exchange(last, argument);
    }
  };
  (look(arguments), ...);
  if (!missing || arrays == Arrays::of_all) return missing;
  // Of a rooted call the root comes before the communicator.
  const int root = std::is_same_v<MPI_Comm, int> ? before : last;
  return is_root(comm_of(arguments...), root) ? missing : nullptr;
}

/// A call in its three forms; A: the parameters of MPI's blocking one.
template <typename Signature, Arrays arrays>
struct Forms;
template <typename... A, Arrays arrays>
struct Forms<int(A...), arrays> {
  template <auto entry>
  static int blocking(A... arguments, const mpress_call* call) {
    const auto buffers = buffers_of(arguments...);
    const Call scope(Kind::collective, comm_of(arguments...), call, {buffers[0], buffers[1]},
                     Streams::followed);
    if (scope.code() != MPI_SUCCESS) return scope.code();
    if (const char* const name = missing_array<arrays>(arguments...))
      return raise_null(name, arguments...);
    return (preload::staged_calls.*entry)(arguments...);
  }

  template <auto entry>
  static int immediate(A... arguments, mpress_request* request, const mpress_call* call) {
    return begun(arguments..., request, call, [&](MPI_Request* made) {
      return (preload::staged_calls.*entry)(arguments..., made);
    });
  }

  template <auto entry>
  static int persistent(A... arguments, mpress_request* request, const mpress_call* call) {
    return begun(arguments..., request, call, [&](MPI_Request* made) {
      return (preload::staged_calls.*entry)(arguments..., MPI_INFO_NULL, made);
    });
  }

 private:
  static int raise_null(const char* name, A... arguments) {
    return raise(comm_of(arguments...), MPI_ERR_ARG,
                 std::string(name) + " is null; expected an array with one for each rank");
  }

  template <typename Begin>
  static int begun(A... arguments, mpress_request* request, const mpress_call* call, Begin begin) {
    const auto buffers = buffers_of(arguments...);
    const MPI_Comm comm = comm_of(arguments...);
    Call scope(Kind::immediate_collective, comm, call, {buffers[0], buffers[1]});
    if (scope.code() != MPI_SUCCESS) return scope.code();
    if (!request) {
      return raise(comm, MPI_ERR_ARG, "request is null; expected where to put one");
    }
    if (const char* const name = missing_array<arrays>(arguments...))
      return raise_null(name, arguments...);
    return api::begin(request, call, scope, begin);
  }
};

/// libmpress.so passes on words: every argument must fit one, and all must be passed.
template <std::size_t words, typename Result, typename... A>
void* entry(Result (*function)(A...)) {
  static_assert(sizeof...(A) == words, "src/front/api_calls.hpp has another number");
  static_assert(((std::is_integral_v<A> || std::is_pointer_v<A>) && ...));
  return reinterpret_cast<void*>(function);
}

/// The same of one that the header declares as `Declared`.
template <typename Declared, std::size_t words, typename Function>
void* entry_as(Function function) {
  static_assert(std::is_same_v<Declared, Function>, "the public header says otherwise");
  return entry<words>(function);
}

}  // namespace

#define MPRESS_ENTRY(name, words) entry<words>(&mpress_##name),
#define MPRESS_ENTRIES(name, Name, words)                                                     \
  entry_as<decltype(&mpress_##name), words + 1>(                                              \
      &Forms<LargeCounts::Name, arrays_of(#name)>::blocking<&BufferCalls::Name##_c>),         \
      entry_as<decltype(&mpress_i##name), words + 2>(                                         \
          &Forms<LargeCounts::Name, arrays_of(#name)>::immediate<&BufferCalls::I##name##_c>), \
      entry_as<decltype(&mpress_##name##_init), words + 2>(                                   \
          &Forms<LargeCounts::Name, arrays_of(#name)>::persistent<&BufferCalls::Name##_init_c>),

void* const targets[front::api_call_count] = {MPRESS_API_CALLS(MPRESS_ENTRY)
                                                  MPRESS_API_COLLECTIVES(MPRESS_ENTRIES)};

}  // namespace mpress::api
