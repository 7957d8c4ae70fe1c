#include "plan_collectives.hpp"

#include <algorithm>
#include <iterator>

namespace stress {

/// None of one rank: there MPICH 5.0 gives the messages of its MPI_Alltoallv to receives for any
/// tag.
std::vector<int> CollectivePlans::usable_comms() const {
  std::vector<int> usable;
  for (int on = 1; on < static_cast<int>(round_.comms.size()); ++on) {
    const Comm& comm = round_.comms[static_cast<std::size_t>(on)];
    const bool is_freed =
        std::find(round_.freed.begin(), round_.freed.end(), on) != round_.freed.end();
    if (!is_freed && !comm.inter() && comm.group.size() > 1) usable.push_back(on);
  }
  return usable;
}

void CollectivePlans::begin_one() {
  const std::vector<int> usable = usable_comms();
  if (usable.empty()) return;
  Collective made;
  made.comm = random_.pick(usable);
  const Comm& comm = round_.comms[static_cast<std::size_t>(made.comm)];
  do {
    made.kind = static_cast<Collective::Kind>(
        random_.below(static_cast<std::size_t>(Collective::Kind::count_)));
  } while ((made.reduces() && comm.hinted()) ||
           (made.kind == Collective::Kind::neighbours && comm.kind != Comm::Kind::cart));
  made.root = random_.below(comm.group.size());
  made.element = random_.pick({Element::f32, Element::f32, Element::f64, Element::i32});
  made.data = static_cast<Data>(random_.below(static_cast<std::size_t>(Data::count_)));
  const std::size_t most = random_.pick<std::size_t>({64, 4096, 65536, settings_.max_bytes});
  made.elements = random_.between(0, most) / element_bytes(made.element);
  made.key = random_.next();
  const int number = static_cast<int>(round_.collectives.size());
  std::vector<Action> step;
  for (const int rank : comm.group) {
    Action action;
    action.kind = Action::Kind::collective;
    action.rank = rank;
    action.collectives = {number};
    step.push_back(action);
    if (made.is_immediate()) under_way_[rank].push_back(number);
  }
  round_.collectives.push_back(made);
  round_.steps.push_back(step);
}

bool CollectivePlans::are_under_way_on(int comm) const {
  for (const auto& [rank, numbers] : under_way_) {
    for (const int number : numbers) {
      if (round_.collectives[static_cast<std::size_t>(number)].comm == comm) return true;
    }
  }
  return false;
}

bool CollectivePlans::end_some() {
  if (under_way_.empty()) return false;
  auto it = std::next(under_way_.begin(), random_.below(under_way_.size()));
  Action action;
  action.kind = Action::Kind::end_collectives;
  action.rank = it->first;
  action.seed = random_.next();
  random_.shuffle(it->second);
  for (std::size_t k = random_.between(1, it->second.size()); k > 0; --k) {
    action.collectives.push_back(it->second.back());
    it->second.pop_back();
  }
  if (it->second.empty()) under_way_.erase(it);
  round_.steps.push_back({action});
  return true;
}

}  // namespace stress
