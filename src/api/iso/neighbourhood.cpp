#include "api/iso/neighbourhood.hpp"

#include <mpress/iso.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/entries.hpp"
#include "config/config.hpp"
#include "mpi/collectives/neighbours/hints.hpp"
#include "mpi/collectives/neighbours/neighbours.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/comm_calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::api {
namespace {

using Shared = std::shared_ptr<const IsoNeighbourhood>;

/// The attribute's value, each communicator's own. Threads may look at it while one replaces the
/// neighbourhood.
class Holder {
 public:
  explicit Holder(Shared neighbourhood) : neighbourhood_(std::move(neighbourhood)) {}
  Shared get() const {
    std::lock_guard lock(mutex_);
    return neighbourhood_;
  }
  void set(Shared neighbourhood) {
    std::lock_guard lock(mutex_);
    neighbourhood_.swap(neighbourhood);
  }

 private:
  mutable std::mutex mutex_;
  Shared neighbourhood_;
};

int copy(MPI_Comm, int, void*, void* value, void* copied, int* is_copied) {
  *is_copied = 0;
  if (mpi::PrivateDuplicate::is_under_way()) return MPI_SUCCESS;
  try {
    *static_cast<void**>(copied) = new Holder(static_cast<Holder*>(value)->get());
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
  *is_copied = 1;
  return MPI_SUCCESS;
}

int remove(MPI_Comm, int, void* value, void*) {
  delete static_cast<Holder*>(value);
  return MPI_SUCCESS;
}

int keyval() {
  static const int made = [] {
    int key = MPI_KEYVAL_INVALID;
    mpi::calls().Comm_create_keyval(copy, remove, &key, nullptr);
    return key;
  }();
  return made;
}

Holder* holder_of(MPI_Comm comm) {
  Holder* found = nullptr;
  int is_there = 0;
  const int code = mpi::calls().Comm_get_attr(comm, keyval(), &found, &is_there);
  return code == MPI_SUCCESS && is_there ? found : nullptr;
}

Shared made(Cartesian cartesian, int count, std::span<const int> relative,
            const engine::NeighbourHints& hints) {
  auto one = std::make_shared<IsoNeighbourhood>();
  one->plans = std::make_shared<engine::NeighbourPlans>(
      schedule::Neighbourhood(std::move(cartesian.grid), count, relative), cartesian.rank, hints);
  for (int i = 0; i < count; ++i) {
    one->sources.push_back(rank_or_null(one->list().source(cartesian.coordinates, i)));
    one->targets.push_back(rank_or_null(one->list().target(cartesian.coordinates, i)));
  }
  return one;
}

/// Arguments of a call that creates a neighbourhood.
struct Request {
  MPI_Comm cartcomm;
  int count;
  const int* relative;
  MPI_Info info;
  MPI_Comm* created;
  bool is_attribute = false;
};

/// Makes this process's neighbourhood of a call's arguments.
Wrong read_request(Request& request, Cartesian cartesian, Shared& neighbourhood) {
  const auto width = static_cast<std::size_t>(cartesian.grid.dimensions());
  if (request.count < 0) return is_negative("s", request.count);
  const std::size_t length = width * static_cast<std::size_t>(request.count);
  if (!request.relative && length > 0) return is_null("relative_coordinates");
  if (!request.created) return is_null("isocomm");
  engine::NeighbourHints hints;
  if (request.info != MPI_INFO_NULL) {
    Wrong wrong;
    wrong.code = engine::read_flag(request.info, "iso_attribute", request.is_attribute, wrong.text);
    if (wrong) return wrong;
    wrong = read_hints(request.info, hints);
    if (wrong) return wrong;
  }
  neighbourhood = made(std::move(cartesian), request.count, {request.relative, length}, hints);
  return {};
}

/// Have all members given the same? Collective. One that has found an error, which is `own`, says
/// so to the others.
Wrong check_alike(const Request& request, const IsoNeighbourhood* neighbourhood, Wrong own) {
  std::array<std::uint64_t, 2> most{~std::uint64_t{0}, ~std::uint64_t{0}};
  if (neighbourhood) {
    std::uint64_t hash = neighbourhood->list().hash();
    for (const std::uint64_t one :
         {neighbourhood->plans->hints().hash(), std::uint64_t{request.is_attribute}}) {
      hash = (hash ^ one) * 0x100000001b3;
    }
    most = {hash, ~hash};
  }
  const int code =
      mpi::calls().Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_UINT64_T, MPI_MAX, request.cartcomm);
  if (own) return own;
  if (code != MPI_SUCCESS) return {code, {}, true};
  if (most[0] == ~most[1]) return {};
  return {MPI_ERR_ARG, "processes have given different lists of relative coordinates, or hints"};
}

/// Attaches the neighbourhood to the communicator that the call gives to the program.
int finish(const Request& request, const Shared& neighbourhood) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm comm = request.cartcomm;
  Holder* const before = request.is_attribute ? holder_of(comm) : nullptr;
  if (before) {
    before->set(neighbourhood);
    *request.created = comm;
    return MPI_SUCCESS;
  }
  auto holder = std::make_unique<Holder>(neighbourhood);
  int code = request.is_attribute ? MPI_SUCCESS : mpi.Comm_dup(request.cartcomm, &comm);
  if (code != MPI_SUCCESS) return code;
  code = mpi.Comm_set_attr(comm, keyval(), holder.get());
  if (code == MPI_SUCCESS) holder.release();  // MPI has it
  if (code == MPI_SUCCESS && !request.is_attribute && request.info != MPI_INFO_NULL) {
    code = engine::set_info(comm, request.info);
  }
  if (code == MPI_SUCCESS) {
    *request.created = comm;
  } else if (!request.is_attribute) {
    mpi.Comm_free(&comm);
  }
  return code;
}

int create(Request request) {
  Cartesian cartesian;
  if (Wrong wrong = read_cartesian(request.cartcomm, cartesian)) {
    return raise(request.cartcomm, std::move(wrong));
  }
  Shared neighbourhood;
  Wrong wrong = read_request(request, std::move(cartesian), neighbourhood);
  const bool is_checked = settings().iso_check;
  if (wrong && !is_checked) return raise(request.cartcomm, std::move(wrong));
  engine::Job* job = engine::active_job();
  const bool is_prepared = job && engine::needs_preparation(*job);
  if (request.is_attribute && !is_checked && !is_prepared) return finish(request, neighbourhood);
  // From here on MPI may wait for other ranks.
  const Admission admission = admit(Kind::collective, request.cartcomm);
  job = engine::enter_blocking_call();
  if (is_checked) wrong = check_alike(request, neighbourhood.get(), std::move(wrong));
  const int code = wrong ? wrong.code : finish(request, neighbourhood);
  if (job && is_prepared && code == MPI_SUCCESS) {
    engine::prepare_exchanges(*job, mpi::comm_info(*request.created));
  }
  engine::after_blocking(job, code);
  return wrong ? raise(request.cartcomm, std::move(wrong)) : code;
}

Wrong count_listed(std::span<const int> sources, std::span<const int> targets, int* s,
                   int* indegree, int* outdegree) {
  if (!s) return is_null("s");
  if (!indegree) return is_null("indegree");
  if (!outdegree) return is_null("outdegree");
  const auto degree = [](std::span<const int> ranks) {
    return static_cast<int>(ranks.size()) -
           static_cast<int>(std::ranges::count(ranks, MPI_PROC_NULL));
  };
  *s = static_cast<int>(sources.size());
  *indegree = degree(sources);
  *outdegree = degree(targets);
  return {};
}

/// Is there anything wrong with an array for the first `most` of `count` elements?
Wrong check_room(int most, std::size_t count, const void* array, const char* name) {
  if (most < 0) return is_negative("max_s", most);
  if (!array && most > 0 && count > 0) return is_null(name);
  return {};
}

Wrong list_both(std::span<const int> sources, std::span<const int> targets, int most,
                int* to_sources, int* to_targets) {
  Wrong wrong = check_room(most, sources.size(), to_sources, "sources");
  if (!wrong) wrong = check_room(most, targets.size(), to_targets, "destinations");
  if (wrong) return wrong;
  const auto room = static_cast<std::size_t>(most);
  std::copy_n(sources.begin(), std::min(room, sources.size()), to_sources);
  std::copy_n(targets.begin(), std::min(room, targets.size()), to_targets);
  return {};
}

std::vector<int> existing(std::span<const int> ranks) {
  std::vector<int> found;
  std::ranges::copy_if(ranks, std::back_inserter(found),
                       [](int rank) { return rank != MPI_PROC_NULL; });
  return found;
}

/// Runs `body` with the neighbourhood of `comm`, and raises what it finds wrong.
template <typename Body>
int on_neighbourhood(MPI_Comm comm, Body body) {
  return guarded(comm, [&] {
    Shared one;
    Wrong wrong = find_neighbourhood(comm, one);
    if (!wrong) wrong = body(*one);
    return raise(comm, std::move(wrong));
  });
}

/// Runs `body` with the neighbours of MPI's own calls, at -1 and +1 in each dimension.
template <typename Body>
int on_axes(MPI_Comm comm, Body body) {
  return guarded(comm, [&] {
    Cartesian cartesian;
    Wrong wrong = read_cartesian(comm, cartesian);
    if (wrong) return raise(comm, std::move(wrong));
    const auto width = static_cast<std::size_t>(cartesian.grid.dimensions());
    std::vector<int> ranks, offset(width);
    for (std::size_t j = 0; j < width; ++j) {
      for (const int step : {-1, 1}) {
        offset[j] = step;
        const int rank = cartesian.grid.neighbour(cartesian.coordinates, offset);
        ranks.push_back(rank_or_null(rank));
      }
      offset[j] = 0;
    }
    return raise(comm, body(std::span<const int>(ranks)));
  });
}

/// A shape of neighbourhoods, as schedule/neighbourhoods has it.
struct Shape {
  int (*count)(int dimensions, int radius, int inner);
  std::vector<int> (*list)(int dimensions, int radius, int inner, int most);
};

Wrong list_shape(const Shape& shape, int dimensions, int radius, int inner, int most, int* relative,
                 int* s) {
  set_error_text({});
  if (!s) return is_null("s");
  if (dimensions < 0) return is_negative("dimensions", dimensions);
  try {
    const int count = shape.count(dimensions, radius, inner);
    const std::size_t length =
        static_cast<std::size_t>(count) * static_cast<std::size_t>(dimensions);
    if (Wrong wrong = check_room(most, length, relative, "relative_coordinates")) return wrong;
    const std::vector<int> tuples = shape.list(dimensions, radius, inner, most);
    std::ranges::copy(tuples, relative);
    *s = count;
    return {};
  } catch (const std::invalid_argument& error) {
    return {MPI_ERR_ARG, error.what()};
  }
}

int listed(const Shape& shape, int dimensions, int radius, int inner, int most, int* relative,
           int* s) {
  return guarded(MPI_COMM_NULL, [&] {
    return raise(MPI_COMM_NULL, list_shape(shape, dimensions, radius, inner, most, relative, s));
  });
}

}  // namespace

Wrong read_hints(MPI_Info info, engine::NeighbourHints& hints) {
  Wrong wrong;
  wrong.code = engine::read_neighbour_hints(info, hints, wrong.text);
  return wrong;
}

Wrong find_neighbourhood(MPI_Comm comm, std::shared_ptr<const IsoNeighbourhood>& found) {
  if (Wrong wrong = open_call(comm)) return wrong;
  Holder* holder = nullptr;
  constexpr int untold = -12345;
  int is_there = untold;
  Wrong wrong = asked(
      "communicator",
      [&] { return mpi::calls().Comm_get_attr(comm, keyval(), &holder, &is_there); },
      [&] { return is_there != untold; });
  if (wrong) return wrong;
  if (!is_there) {
    return {MPI_ERR_TOPOLOGY,
            "the communicator has no neighbourhood (mpress_iso_neighborhood_create)"};
  }
  found = holder->get();
  return {};
}

}  // namespace mpress::api

using namespace mpress;
using api::IsoNeighbourhood;
using api::Wrong;

extern "C" int mpress_iso_neighborhood_create_with_info(MPI_Comm cartcomm, int s,
                                                        const int relative_coordinates[],
                                                        MPI_Info info, MPI_Comm* isocomm) {
  return api::guarded(
      cartcomm, [&] { return api::create({cartcomm, s, relative_coordinates, info, isocomm}); });
}

extern "C" int mpress_iso_neighborhood_create(MPI_Comm cartcomm, int s,
                                              const int relative_coordinates[], MPI_Comm* isocomm) {
  return mpress_iso_neighborhood_create_with_info(cartcomm, s, relative_coordinates, MPI_INFO_NULL,
                                                  isocomm);
}

extern "C" int mpress_iso_neighborhood_count(MPI_Comm isocomm, int* s, int* indegree,
                                             int* outdegree) {
  return api::on_neighbourhood(isocomm, [&](const IsoNeighbourhood& one) {
    return api::count_listed(one.sources, one.targets, s, indegree, outdegree);
  });
}

extern "C" int mpress_iso_neighborhood_get(MPI_Comm isocomm, int max_s, int sources[],
                                           int destinations[]) {
  return api::on_neighbourhood(isocomm, [&](const IsoNeighbourhood& one) {
    return api::list_both(one.sources, one.targets, max_s, sources, destinations);
  });
}

extern "C" int mpress_iso_neighborhood_graph_get(MPI_Comm isocomm, int max_s, int sources[],
                                                 int destinations[]) {
  return api::on_neighbourhood(isocomm, [&](const IsoNeighbourhood& one) {
    return api::list_both(api::existing(one.sources), api::existing(one.targets), max_s, sources,
                          destinations);
  });
}

extern "C" int mpress_iso_neighborhood_get_relative(MPI_Comm isocomm, int max_s,
                                                    int relative_coordinates[]) {
  return api::on_neighbourhood(isocomm, [&](const IsoNeighbourhood& one) {
    const auto width = static_cast<std::size_t>(one.list().dimensions());
    const auto count = static_cast<std::size_t>(one.list().count());
    Wrong wrong =
        api::check_room(max_s, count * width, relative_coordinates, "relative_coordinates");
    for (int i = 0; !wrong && i < std::min(max_s, one.list().count()); ++i) {
      relative_coordinates = std::ranges::copy(one.list().offset(i), relative_coordinates).out;
    }
    return wrong;
  });
}

extern "C" int mpress_cart_neighborhood_count(MPI_Comm cartcomm, int* s, int* indegree,
                                              int* outdegree) {
  return api::on_axes(cartcomm, [&](std::span<const int> ranks) {
    return api::count_listed(ranks, ranks, s, indegree, outdegree);
  });
}

extern "C" int mpress_cart_neighborhood_get(MPI_Comm cartcomm, int max_s, int sources[],
                                            int destinations[]) {
  return api::on_axes(cartcomm, [&](std::span<const int> ranks) {
    return api::list_both(ranks, ranks, max_s, sources, destinations);
  });
}

extern "C" int mpress_cart_neighborhood_graph_get(MPI_Comm cartcomm, int max_s, int sources[],
                                                  int destinations[]) {
  return api::on_axes(cartcomm, [&](std::span<const int> ranks) {
    const std::vector<int> there = api::existing(ranks);
    return api::list_both(there, there, max_s, sources, destinations);
  });
}

extern "C" int mpress_iso_moore(int dimensions, int radius, int inner, int max_s,
                                int relative_coordinates[], int* s) {
  return api::listed({schedule::moore_count, schedule::moore}, dimensions, radius, inner, max_s,
                     relative_coordinates, s);
}

extern "C" int mpress_iso_von_neumann(int dimensions, int radius, int inner, int max_s,
                                      int relative_coordinates[], int* s) {
  return api::listed({schedule::von_neumann_count, schedule::von_neumann}, dimensions, radius,
                     inner, max_s, relative_coordinates, s);
}
