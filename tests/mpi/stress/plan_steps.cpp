// In which order the calls of a round are made: a random walk over what is safe to do next.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "plan.hpp"
#include "plan_collectives.hpp"

namespace stress {
namespace {

class Walk {
 public:
  Walk(const Settings& settings, Random& random, Round& round)
      : settings_(settings), random_(random), round_(round), collectives_(settings, random, round) {
    for (std::size_t m = 0; m < round.messages.size(); ++m) {
      const Message& message = round.messages[m];
      if (message.send_call < 0 || message.receive_call < 0) continue;
      chains_[chain_of(message)].push_back(static_cast<int>(m));
    }
    pools_.resize(round.pools.size());
    grow();
  }

  void run() {
    while (unissued() > 0 || active() > 0) {
      const int dice = random_.below(100);
      if (dice < 4) barrier();
      if (dice < 8) free_comm();
      if (dice >= 94 && settings_.has(Family::collectives)) collectives_.begin_one();
      if (dice % 11 == 0) collectives_.end_some();
      if (dice < 16 && settings_.has(Family::probe) && peek()) continue;
      if (dice < 65 && start()) continue;
      if (complete() || start() || post_for_ready() || end_shared_sends()) continue;
      relax();
    }
    for (int k = 0; k < 3; ++k) free_comm();
    while (collectives_.end_some()) {
    }
  }

 private:
  using Chain = std::tuple<int, int, int>;
  struct CallState {
    bool issued = false;
    bool completed = false;
    bool posted = false;  ///< a receive that surely is, or is over
    bool freed = false;
    int turn = 0;      ///< among the receives of its pool
    bool last = true;  ///< of its channel
  };
  struct PoolState {
    int sends = 0;
    int receives = 0;
  };

  static Chain chain_of(const Message& m) { return {m.comm, m.source, m.destination}; }
  Call& call(int i) { return round_.calls[static_cast<std::size_t>(i)]; }
  Message& message(int i) { return round_.messages[static_cast<std::size_t>(i)]; }
  CallState& state(int i) { return states_[static_cast<std::size_t>(i)]; }
  PoolState& pool(int i) { return pools_[static_cast<std::size_t>(i)]; }
  const Pool& pool_plan(int i) { return round_.pools[static_cast<std::size_t>(i)]; }
  int calls() const { return static_cast<int>(round_.calls.size()); }
  int comm_of(int c) { return message(call(c).send >= 0 ? call(c).send : call(c).receive).comm; }

  void grow() {
    states_.resize(round_.calls.size());
    for (int c = 0; c < calls(); ++c) {
      if (call(c).previous >= 0) state(call(c).previous).last = false;
    }
  }

  int unissued() {
    return static_cast<int>(std::count_if(states_.begin(), states_.end(),
                                          [](const CallState& s) { return !s.issued; }));
  }
  int active() {
    return static_cast<int>(std::count_if(states_.begin(), states_.end(), [](const CallState& s) {
      return s.issued && !s.completed;
    }));
  }

  std::vector<int> shuffled_calls() {
    std::vector<int> order(round_.calls.size());
    for (int c = 0; c < calls(); ++c) order[static_cast<std::size_t>(c)] = c;
    random_.shuffle(order);
    return order;
  }

  bool receive_issued(int m) { return state(message(m).receive_call).issued; }
  bool send_issued(int m) { return state(message(m).send_call).issued; }

  bool pool_received(int p) {
    return pool(p).receives == static_cast<int>(pool_plan(p).messages.size());
  }

  bool shared_sent() {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      const Pool& plan = round_.pools[p];
      if (plan.shared && pools_[p].sends < static_cast<int>(plan.messages.size())) return false;
    }
    return true;
  }

  bool shared_received() {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (round_.pools[p].shared && !pool_received(static_cast<int>(p))) return false;
    }
    return true;
  }

  /// Is the message the next that a receive from its source finds?
  bool next_to_receive(int m, bool any_tag) {
    for (int before : chains_[chain_of(message(m))]) {
      if (before == m) return true;
      if (message(before).pool >= 0) continue;
      if ((any_tag || message(before).tag == message(m).tag) && !receive_issued(before)) {
        return false;
      }
    }
    return true;
  }

  bool in_order(int c) {
    const Call& it = call(c);
    if (it.previous >= 0 && !state(it.previous).completed) return false;
    if (it.send >= 0 && message(it.send).receive_call >= 0) {
      for (int before : chains_[chain_of(message(it.send))]) {
        if (before == it.send) break;
        if (!send_issued(before)) return false;
      }
      if (traits(it.kind).ready && !surely_posted(it.send)) return false;
    }
    if (it.receive >= 0 && message(it.receive).send_call >= 0) {
      const int p = message(it.receive).pool;
      if (p < 0) return next_to_receive(it.receive, it.any_tag);
      if (pool_plan(p).shared) return shared_sent_;
    }
    return true;
  }

  bool surely_posted(int m) {
    const int p = message(m).pool;
    if (p < 0) return state(message(m).receive_call).posted;
    const auto& all = pool_plan(p).messages;
    return std::all_of(all.begin(), all.end(),
                       [&](int other) { return state(message(other).receive_call).posted; });
  }

  /// Adds a call to those of one step, with whatever it must find called at the same step.
  bool collect(int c, std::vector<int>& together) {
    if (state(c).issued || !in_order(c)) return false;
    for (int other : together) {
      if (call(other).rank == call(c).rank) return false;
    }
    together.push_back(c);
    const Call it = call(c);
    if (!traits(it.kind).blocks) return true;
    if (it.send >= 0 && message(it.send).receive_call >= 0) {
      const int p = message(it.send).pool;
      if (p >= 0 ? !pool_received(p) : !with(message(it.send).receive_call, c, together)) {
        return false;
      }
    }
    if (it.receive >= 0 && message(it.receive).send_call >= 0) {
      const int p = message(it.receive).pool;
      if (p >= 0) return pool(p).sends > pool(p).receives;
      return with(message(it.receive).send_call, c, together);
    }
    return true;
  }

  bool with(int partner, int c, std::vector<int>& together) {
    if (state(partner).issued || partner == c) return true;
    if (std::find(together.begin(), together.end(), partner) != together.end()) return true;
    return traits(call(partner).kind).blocks && collect(partner, together);
  }

  void issue(int c) {
    CallState& s = state(c);
    const Call& it = call(c);
    s.issued = true;
    s.completed = !traits(it.kind).requests;
    if (it.send >= 0 && message(it.send).pool >= 0) ++pool(message(it.send).pool).sends;
    if (it.receive >= 0 && message(it.receive).pool >= 0) {
      s.turn = ++pool(message(it.receive).pool).receives;
    }
  }

  bool start() {
    for (int c : shuffled_calls()) {
      std::vector<int> together;
      if (!collect(c, together)) continue;
      std::vector<Action> step;
      for (int member : together) {
        issue(member);
        Action action;
        action.rank = call(member).rank;
        action.calls = {member};
        action.seed = random_.next();
        step.push_back(action);
      }
      if (traits(call(c).kind).persistent) join_start(step[0]);
      round_.steps.push_back(step);
      return true;
    }
    return false;
  }

  /// More persistent requests of the rank, for MPI_Startall.
  void join_start(Action& action) {
    for (int c : shuffled_calls()) {
      const Call& it = call(c);
      if (it.rank != action.rank || !traits(it.kind).persistent || state(c).issued) continue;
      if (!in_order(c) || random_.chance(30)) continue;
      issue(c);
      action.calls.push_back(c);
    }
  }

  bool completable(int c) {
    const Call& it = call(c);
    if (!state(c).issued || state(c).completed) return false;
    if (it.lonely) return true;
    if (it.send >= 0 && message(it.send).receive_call >= 0 && !traits(it.kind).local) {
      const int p = message(it.send).pool;
      if (p < 0 ? !receive_issued(it.send) : !pool_received(p)) return false;
      if (p >= 0 && pool_plan(p).shared && !shared_received()) return false;
    }
    if (it.receive >= 0 && message(it.receive).send_call >= 0) {
      const int p = message(it.receive).pool;
      if (p < 0 ? !send_issued(it.receive) : state(c).turn > pool(p).sends) return false;
    }
    return true;
  }

  bool pooled(int c) { return call(c).receive >= 0 && message(call(c).receive).pool >= 0; }

  bool loses_errors(int c) { return call(c).truncates && call(c).channel >= 0; }

  bool may_be_freed(int c) {
    const Call& it = call(c);
    if (!state(c).last || (it.send >= 0 && it.receive >= 0)) return false;
    if (it.lonely) return true;
    if (it.send >= 0) {
      // The round's end ends the buffer, and another thread may receive a shared message later.
      const int p = message(it.send).pool;
      return traits(it.kind).local || p < 0 || !pool_plan(p).shared;
    }
    const Message& m = message(it.receive);
    return m.pool < 0 && m.send_call >= 0 && !it.truncates && !it.in.packed && m.bytes() > 0 &&
           settings_.threads == 1 && settings_.has(Family::cancel);
  }

  static bool looks_only(Method method) {
    return method >= Method::get_status && method <= Method::get_status_some;
  }

  bool complete() {
    std::vector<int> ready;
    for (int c : shuffled_calls()) {
      if (completable(c) && (ready.empty() || call(c).rank == call(ready[0]).rank)) {
        ready.push_back(c);
      }
    }
    if (ready.empty()) return false;
    ready.resize(random_.between(1, ready.size()));
    Action action;
    action.kind = Action::Kind::complete;
    action.rank = call(ready[0]).rank;
    action.method = static_cast<Method>(random_.below(static_cast<std::size_t>(Method::count_)));
    action.seed = random_.next();
    const bool truncates =
        std::any_of(ready.begin(), ready.end(), [&](int c) { return call(c).truncates; });
    if (truncates && looks_only(action.method)) action.method = Method::waitsome;
    // MPICH 5.0 does not say what is over where MPI_Testall fails before all is, and loses the
    // error of a persistent request in MPI_Waitsome.
    if (truncates && action.method == Method::testall) action.method = Method::waitall;
    if (std::any_of(ready.begin(), ready.end(), [&](int c) { return loses_errors(c); })) {
      action.method = random_.pick({Method::wait, Method::test, Method::waitall});
    }
    // MPICH tells the status of a persistent receive only to the first who looks.
    const bool looked_at_twice = std::any_of(
        ready.begin(), ready.end(), [&](int c) { return call(c).kind == Kind::recv_init; });
    if (looked_at_twice && action.method == Method::get_status_all) {
      action.method = Method::get_status_some;
    }
    if (action.method == Method::free) {
      if (!may_be_freed(ready[0]) || !random_.chance(60)) {
        action.method = Method::waitall;
      } else {
        ready.resize(1);
        state(ready[0]).freed = true;
      }
    }
    const bool single = action.method == Method::wait || action.method == Method::test;
    if (single) ready.resize(1);
    action.calls = ready;
    add_company(action);
    action.ignore_status = random_.chance(30);
    for (int c : action.calls) action.ignore_status &= ignorable(c);
    for (int c : action.extras) action.ignore_status &= ignorable(c);
    for (int c : action.calls) state(c).completed = true;
    round_.steps.push_back({action});
    return true;
  }

  bool ignorable(int c) { return !pooled(c) && !call(c).truncates && !call(c).lonely; }

  /// Other requests in the array: active ones where the call may leave them alone, inactive ones.
  void add_company(Action& action) {
    const Method method = action.method;
    const bool some = method == Method::waitany || method == Method::testany ||
                      method == Method::waitsome || method == Method::testsome ||
                      method == Method::get_status_any || method == Method::get_status_some;
    const bool array = some || method == Method::waitall || method == Method::testall ||
                       method == Method::get_status_all;
    if (!array) return;
    for (int c : shuffled_calls()) {
      if (call(c).rank != action.rank || !state(c).issued) continue;
      const bool listed =
          std::find(action.calls.begin(), action.calls.end(), c) != action.calls.end();
      if (some && !listed && !state(c).completed && !call(c).lonely && random_.chance(50) &&
          !(looks_only(method) && call(c).truncates) && !loses_errors(c)) {
        action.extras.push_back(c);
      }
      const bool idle = call(c).channel >= 0 && state(c).completed && !state(c).freed;
      if (idle && latest_in_channel(c) && random_.chance(30)) action.inactive.push_back(c);
    }
  }

  bool latest_in_channel(int c) {
    for (int other = 0; other < calls(); ++other) {
      if (call(other).previous == c && state(other).issued) return false;
    }
    return true;
  }

  /// Looks at a message that is not received yet.
  bool peek() {
    Action action;
    action.kind = Action::Kind::peek;
    action.blocking = random_.chance(50);
    action.seed = random_.next();
    for (int c : shuffled_calls()) {
      const Call& it = call(c);
      if (it.receive < 0 || it.lonely || state(c).issued) continue;
      const Message& m = message(it.receive);
      if (m.send_call < 0) continue;
      action.rank = m.destination;
      action.comm = m.comm;
      action.pool = m.pool;
      if (m.pool >= 0) {
        if (pool_plan(m.pool).shared || pool(m.pool).sends <= pool(m.pool).receives) continue;
        action.any_tag = pool_plan(m.pool).any_tag;
      } else {
        if (!send_issued(it.receive) || !next_to_receive(it.receive, false)) continue;
        action.any_tag = it.any_tag && next_to_receive(it.receive, true);
        action.message = it.receive;
      }
      round_.steps.push_back({action});
      return true;
    }
    return false;
  }

  void barrier() {
    std::vector<Action> step;
    for (int rank = 0; rank < settings_.ranks; ++rank) {
      Action action;
      action.kind = Action::Kind::barrier;
      action.rank = rank;
      action.comm = 1;
      step.push_back(action);
    }
    round_.steps.push_back(step);
    for (CallState& s : states_) s.posted = s.issued;
    shared_sent_ = shared_sent();
  }

  /// A barrier where a ready send waits for one.
  bool post_for_ready() {
    for (int c = 0; c < calls(); ++c) {
      const Call& it = call(c);
      if (state(c).issued || !traits(it.kind).ready || message(it.send).receive_call < 0) continue;
      const int p = message(it.send).pool;
      const bool posted = p < 0 ? receive_issued(it.send) : pool_received(p);
      if (!posted || surely_posted(it.send)) continue;
      barrier();
      return true;
    }
    return false;
  }

  /// A barrier where receives for any thread wait for one.
  bool end_shared_sends() {
    if (shared_sent_ || !shared_sent() || shared_received()) return false;
    barrier();
    return true;
  }

  /// Ends a communicator on which every call has been made, though not all are complete.
  void free_comm() {
    for (std::size_t on = 2; on < round_.comms.size(); ++on) {
      const int id = static_cast<int>(on);
      bool busy = std::find(round_.freed.begin(), round_.freed.end(), id) != round_.freed.end();
#if defined(OPEN_MPI)
      // Open MPI 5.0 by itself goes on to use it for collective calls that are under way.
      busy = busy || collectives_.are_under_way_on(id);
#endif
      for (int c = 0; c < calls() && !busy; ++c) {
        // With threads MPICH 5.0 locks the communicator to tell an error, also when it is gone.
        const bool fails = settings_.threads > 1 && call(c).truncates && !state(c).completed;
        busy = (!state(c).issued || fails) && comm_of(c) == id;
      }
      if (busy || !random_.chance(25)) continue;
      std::vector<Action> step;
      for (int rank : round_.comms[on].members()) {
        Action action;
        action.kind = Action::Kind::free_comm;
        action.rank = rank;
        action.comm = id;
        step.push_back(action);
      }
      round_.steps.push_back(step);
      round_.freed.push_back(id);
    }
  }

  /// Nothing can be done next: some call must not wait for others.
  void relax() {
    for (int c : shuffled_calls()) {
      Call& it = call(c);
      if (state(c).issued) continue;
      if (it.send >= 0 && it.receive >= 0) {
        Call sender = it;
        sender.kind = Kind::isend;
        sender.receive = -1;
        message(it.send).send_call = calls();
        it.kind = Kind::irecv;
        it.send = -1;
        round_.calls.push_back(sender);
        return grow();
      }
      if (it.channel >= 0) continue;
      const Kind kind = it.send >= 0 ? Kind::isend : Kind::irecv;
      if (it.kind == kind && !it.any_tag) continue;
      it.kind = kind;
      it.any_tag = false;
      return;
    }
    for (int c = 0; c < calls(); ++c) {
      if (!state(c).issued) std::fprintf(stderr, "stuck: %s\n", text_of(round_, c).c_str());
    }
    std::fprintf(stderr, "no plan for round %d of stream %d\n", round_.number, round_.stream);
    std::abort();
  }

  const Settings& settings_;
  Random& random_;
  Round& round_;
  std::vector<CallState> states_;
  std::vector<PoolState> pools_;
  std::map<Chain, std::vector<int>> chains_;
  CollectivePlans collectives_;
  bool shared_sent_ = false;  ///< all messages for any thread surely are
};

}  // namespace

void plan_steps(const Settings& settings, Random& random, Round& round) {
  Walk(settings, random, round).run();
}

}  // namespace stress
