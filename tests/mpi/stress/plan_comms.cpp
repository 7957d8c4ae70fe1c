// Which communicators a stream has.

#include <algorithm>
#include <numeric>

#include "plan.hpp"

namespace stress {
namespace {

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<int> everybody(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Two colours, and keys that reorder.
void add_split(std::vector<Comm>& comms, Comm comm, Random& random, int ranks) {
  std::vector<int> order = everybody(ranks);
  random.shuffle(order);
  std::vector<int> groups[2];
  for (int rank : order) groups[random.below(2)].push_back(rank);
  for (const auto& group : groups) {
    if (group.empty()) continue;
    comm.group = group;
    comms.push_back(comm);
  }
}

/// The halves of the ranks, as an inter-communicator or merged again.
void add_halves(std::vector<Comm>& comms, Comm comm, Random& random, int ranks) {
  const int first = 1 + random.below(static_cast<std::size_t>(ranks - 1));
  std::vector<int> low = everybody(first);
  std::vector<int> high = everybody(ranks);
  high.erase(high.begin(), high.begin() + first);
  comm.group = low;
  if (comm.kind == Comm::Kind::inter) {
    comm.remote = high;
  } else {
    comm.group.insert(comm.group.end(), high.begin(), high.end());
  }
  comms.push_back(comm);
}

}  // namespace

bool Comm::has(int rank) const { return contains(group, rank) || contains(remote, rank); }

int Comm::rank_of(int rank) const {
  const auto& side = contains(group, rank) ? group : remote;
  return static_cast<int>(std::find(side.begin(), side.end(), rank) - side.begin());
}

std::vector<int> Comm::members() const {
  std::vector<int> all = group;
  all.insert(all.end(), remote.begin(), remote.end());
  return all;
}

const char* name_of(Comm::Kind kind) {
  static const char* const names[] = {"world", "root", "dup", "split", "cart", "merged", "inter"};
  return names[static_cast<int>(kind)];
}

std::vector<Comm> plan_comms(const Settings& settings, int stream, int epoch) {
  Random random(mix(mix(settings.seed, 0xC0 + static_cast<std::uint64_t>(stream)),
                    static_cast<std::uint64_t>(epoch)));
  std::vector<Comm> comms;
  Comm comm;
  comm.group = everybody(settings.ranks);
  comm.creation = 0;
  comms.push_back(comm);
  comm.kind = Comm::Kind::root;
  comm.creation = 1;
  comms.push_back(comm);
  if (!settings.has(Family::communicators)) return comms;
  const int more = 1 + random.below(3);
  for (int k = 0; k < more; ++k) {
    comm.creation = 2 + k;
    comm.seed = random.next();
    comm.kind = random.pick({Comm::Kind::dup, Comm::Kind::split, Comm::Kind::split,
                             Comm::Kind::cart, Comm::Kind::inter, Comm::Kind::merged});
    const bool halves = comm.kind == Comm::Kind::inter || comm.kind == Comm::Kind::merged;
    if (settings.ranks == 1 && halves) comm.kind = Comm::Kind::dup;
    if (comm.kind == Comm::Kind::split) {
      add_split(comms, comm, random, settings.ranks);
    } else if (halves && settings.ranks > 1) {
      add_halves(comms, comm, random, settings.ranks);
    } else {
      comms.push_back(comm);
    }
  }
  return comms;
}

Round plan_round(const Settings& settings, int stream, int number) {
  Round round;
  round.stream = stream;
  round.number = number;
  round.comms = plan_comms(settings, stream, number / epoch_rounds);
  Random random(mix(mix(settings.seed, 0xA0 + static_cast<std::uint64_t>(stream)),
                    static_cast<std::uint64_t>(number)));
  plan_messages(settings, random, round);
  plan_steps(settings, random, round);
  return round;
}

}  // namespace stress
