// Collective calls between the messages of a round.

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "execution.hpp"
#include "failure.hpp"
#include "floats.hpp"
#include "simulated_gpu.h"

namespace stress {
namespace {

/// What rank `rank` contributes to a reduction: so small that each order gives the same sum, and
/// not below 0, as the sign of a sum of 0 depends on the rounding mode.
int contribution(const Collective& call, int rank, std::size_t i) {
  return static_cast<int>(mix(mix(call.key, static_cast<std::uint64_t>(rank)), i) % 1001);
}

template <typename T>
void write_numbers(std::byte* to, std::size_t count, auto&& number) {
  auto* const out = reinterpret_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(number(i));
}

void write_numbers(Element element, std::byte* to, std::size_t count, auto&& number) {
  const UsualFloats usual;
  switch (element) {
    case Element::f32: return write_numbers<float>(to, count, number);
    case Element::f64: return write_numbers<double>(to, count, number);
    default: return write_numbers<std::int32_t>(to, count, number);
  }
}

/// Elements that rank `from` has for rank `to`.
std::size_t pair_count(const Collective& call, std::size_t size, int from, int to) {
  const std::uint64_t dice = mix(call.key, static_cast<std::uint64_t>(from * 100 + to));
  const std::size_t most = call.elements / size;
  switch (dice % 4) {
    case 0: return 0;
    case 1: return std::min<std::size_t>(most, dice / 4 % 16);
    default: return most - dice / 4 % (most / 2 + 1);
  }
}

std::vector<std::byte> block_content(const Collective& call, int from, int to, std::size_t count) {
  const auto pair = static_cast<std::uint64_t>(from * 100 + to);
  return make_content(mix(call.key, pair), call.element, call.data, count);
}

/// A rank's neighbours on a grid, in MPI's order; and whether each is met once on its dimension, so
/// that all MPIs agree which of its blocks comes from where.
struct Grid {
  explicit Grid(MPI_Comm comm) {
    int dims[2], periods[2], coordinates[2];
    must(MPI_Cart_get(comm, 2, dims, periods, coordinates), "MPI_Cart_get");
    for (int d = 0; d < 2; ++d) {
      must(MPI_Cart_shift(comm, d, 1, &ranks[2 * d], &ranks[2 * d + 1]), "MPI_Cart_shift");
      is_plain = is_plain && !(periods[d] && dims[d] < 3);
    }
  }
  int ranks[4];
  bool is_plain = true;
};

void fill(Memory& memory, std::size_t bytes) {
  memory.resize(bytes);
  std::fill(memory.bytes.begin(), memory.bytes.end(), std::byte{0xC3});  // where nothing came
}

}  // namespace

void Execution::collective(const Action& action) {
  const int number = action.collectives[0];
  const Collective& call = round_.collectives[static_cast<std::size_t>(number)];
  Running& running = running_[static_cast<std::size_t>(number)];
  if (settings_.devices) {
    Random random(mix(call.key, 0xDE + static_cast<std::uint64_t>(rank_)));
    running.in.place(random.below(2 * sim_devices) - sim_devices);
    running.out.place(random.below(2 * sim_devices) - sim_devices);
  }
  switch (call.kind) {
    case Collective::Kind::bcast:
    case Collective::Kind::ibcast: broadcast(call, running); break;
    case Collective::Kind::allreduce:
    case Collective::Kind::iallreduce: reduce(call, running); break;
    case Collective::Kind::alltoallv: exchange(call, running); break;
    default: exchange_with_neighbours(call, running);
  }
  if (!call.is_immediate()) check_collective(number);
}

void Execution::broadcast(const Collective& call, Running& running) {
  Random random(mix(call.key, static_cast<std::uint64_t>(rank_)));
  const bool is_basic = !settings_.has(Family::datatypes);
  running.layout =
      std::make_unique<Layout>(choose_layout(random, call.element, call.elements, is_basic));
  const Layout& layout = *running.layout;
  fill(running.out, layout.memory_bytes());
  running.expected = running.out.bytes;
  const auto content = make_content(call.key, call.element, call.data, call.elements);
  layout.scatter(content.data(), content.size(), running.expected.data());
  const MPI_Comm on = comms_.handle(call.comm);
  if (comm(call.comm).group[static_cast<std::size_t>(call.root)] == rank_) {
    running.out.bytes = running.expected;
  }
  running.out.store();
  running.type = layout.make_type(running.out.data());
  void* const buffer = layout.address(running.out.data());
  if (call.is_immediate()) {
    must(MPI_Ibcast(buffer, layout.count(), running.type, call.root, on, &running.request),
         "MPI_Ibcast");
  } else {
    must(MPI_Bcast(buffer, layout.count(), running.type, call.root, on), "MPI_Bcast");
  }
}

void Execution::reduce(const Collective& call, Running& running) {
  const std::size_t bytes = call.elements * element_bytes(call.element);
  const auto& group = comm(call.comm).group;
  const bool is_in_place = call.key & 1;
  fill(running.out, bytes);
  running.expected.resize(bytes);
  const MPI_Op op = call.key & 2 ? MPI_SUM : call.key & 4 ? MPI_MAX : MPI_MIN;
  write_numbers(call.element, running.expected.data(), call.elements, [&](std::size_t i) {
    int found = contribution(call, group[0], i);
    for (std::size_t member = 1; member < group.size(); ++member) {
      const int other = contribution(call, group[member], i);
      found = op == MPI_SUM   ? found + other
              : op == MPI_MAX ? std::max(found, other)
                              : std::min(found, other);
    }
    return found;
  });
  Memory& own = is_in_place ? running.out : running.in;
  if (!is_in_place) own.resize(bytes);
  write_numbers(call.element, own.bytes.data(), call.elements,
                [&](std::size_t i) { return contribution(call, rank_, i); });
  running.in.store();
  running.out.store();
  const void* const from = is_in_place ? MPI_IN_PLACE : running.in.data();
  const auto count = static_cast<int>(call.elements);
  const MPI_Datatype type = basic_type(call.element);
  const MPI_Comm on = comms_.handle(call.comm);
  if (call.is_immediate()) {
    must(MPI_Iallreduce(from, running.out.data(), count, type, op, on, &running.request),
         "MPI_Iallreduce");
  } else {
    must(MPI_Allreduce(from, running.out.data(), count, type, op, on), "MPI_Allreduce");
  }
}

void Execution::exchange(const Collective& call, Running& running) {
  const auto& group = comm(call.comm).group;
  const std::size_t width = element_bytes(call.element);
  std::vector<int> counts[2], begins[2];  // of what is sent, of what is received
  std::size_t ends[2] = {};
  for (const int other : group) {
    const std::size_t found[] = {pair_count(call, group.size(), rank_, other),
                                 pair_count(call, group.size(), other, rank_)};
    for (int way = 0; way < 2; ++way) {
      counts[way].push_back(static_cast<int>(found[way]));
      begins[way].push_back(static_cast<int>(ends[way]));
      ends[way] += found[way] + static_cast<std::size_t>(other) % 3;  // gaps
    }
  }
  fill(running.in, ends[0] * width);
  fill(running.out, ends[1] * width);
  running.expected = running.out.bytes;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto sent = block_content(call, rank_, group[i], static_cast<std::size_t>(counts[0][i]));
    const auto came = block_content(call, group[i], rank_, static_cast<std::size_t>(counts[1][i]));
    const auto place = [&](int way) { return static_cast<std::size_t>(begins[way][i]) * width; };
    std::copy(sent.begin(), sent.end(), running.in.bytes.data() + place(0));
    std::copy(came.begin(), came.end(), running.expected.data() + place(1));
  }
  running.in.store();
  running.out.store();
  const MPI_Datatype type = basic_type(call.element);
  must(
      MPI_Alltoallv(running.in.data(), counts[0].data(), begins[0].data(), type, running.out.data(),
                    counts[1].data(), begins[1].data(), type, comms_.handle(call.comm)),
      "MPI_Alltoallv");
}

void Execution::exchange_with_neighbours(const Collective& call, Running& running) {
  const MPI_Comm on = comms_.handle(call.comm);
  const Grid grid(on);
  const auto& group = comm(call.comm).group;
  const std::size_t count = call.elements / 4;
  const std::size_t bytes = count * element_bytes(call.element);
  const bool gathers = !grid.is_plain || call.key & 1;
  // Blocks are told apart by the direction that they are sent in; in an all-gather there is one.
  const auto block = [&](int from, int direction) {
    return block_content(call, from, gathers ? 0 : direction, count);
  };
  fill(running.in, gathers ? bytes : 4 * bytes);
  fill(running.out, 4 * bytes);
  running.expected = running.out.bytes;
  for (int direction = 0; direction < 4; ++direction) {
    const auto sent = block(rank_, direction);
    std::byte* const place = running.in.bytes.data();
    std::copy(sent.begin(), sent.end(), gathers ? place : place + direction * bytes);
    if (grid.ranks[direction] == MPI_PROC_NULL) continue;
    const auto came = block(group[static_cast<std::size_t>(grid.ranks[direction])], direction ^ 1);
    std::copy(came.begin(), came.end(), running.expected.data() + direction * bytes);
  }
  running.in.store();
  running.out.store();
  const MPI_Datatype type = basic_type(call.element);
  const auto n = static_cast<int>(count);
  if (gathers) {
    must(MPI_Neighbor_allgather(running.in.data(), n, type, running.out.data(), n, type, on),
         "MPI_Neighbor_allgather");
  } else {
    must(MPI_Neighbor_alltoall(running.in.data(), n, type, running.out.data(), n, type, on),
         "MPI_Neighbor_alltoall");
  }
}

/// Completes some that do not block.
void Execution::end_collectives(const Action& action) {
  std::vector<MPI_Request> requests;
  for (const int number : action.collectives) {
    requests.push_back(running_[static_cast<std::size_t>(number)].request);
  }
  const auto count = static_cast<int>(requests.size());
  switch (action.seed % 4) {
    case 0:
      for (MPI_Request& request : requests) must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
      break;
    case 1: must(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall"); break;
    case 2:
      for (int left = count, at = 0; left > 0; --left) {
        must(MPI_Waitany(count, requests.data(), &at, MPI_STATUS_IGNORE), "MPI_Waitany");
        expect(at != MPI_UNDEFINED, "MPI_Waitany finds no request of a collective call");
      }
      break;
    default:
      for (int flag = 0; !flag; ::sched_yield()) {
        must(MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE), "MPI_Testall");
      }
  }
  for (const MPI_Request request : requests) {
    expect(request == MPI_REQUEST_NULL, "a request of a collective call is left");
  }
  for (const int number : action.collectives) {
    running_[static_cast<std::size_t>(number)].request = MPI_REQUEST_NULL;
    check_collective(number);
  }
}

void Execution::check_collective(int number) {
  const Collective& call = round_.collectives[static_cast<std::size_t>(number)];
  Running& running = running_[static_cast<std::size_t>(number)];
  if (running.layout && running.layout->derived())
    must(MPI_Type_free(&running.type), "MPI_Type_free");
  running.out.fetch();
  const auto& found = running.out.bytes;
  const auto& wanted = running.expected;
  const auto at = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (at.first != found.end()) {
    fail(text_of(call) + " (k" + std::to_string(number) + "): the first byte that differs is " +
         std::to_string(at.first - found.begin()) + " of " + std::to_string(found.size()));
  }
}

}  // namespace stress
