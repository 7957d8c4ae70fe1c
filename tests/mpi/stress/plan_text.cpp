// The names of things, and a plan in words.

#include <cstdio>

#include "plan.hpp"

namespace stress {
namespace {

constexpr Traits table[] = {
    {.name = "Send", .blocks = true},
    {.name = "Ssend", .blocks = true},
    {.name = "Rsend", .blocks = true, .ready = true},
    {.name = "Bsend", .local = true},
    {.name = "Isend", .requests = true},
    {.name = "Issend", .requests = true},
    {.name = "Irsend", .ready = true, .requests = true},
    {.name = "Ibsend", .local = true, .requests = true},
    {.name = "Send_init", .persistent = true, .requests = true},
    {.name = "Ssend_init", .persistent = true, .requests = true},
    {.name = "Rsend_init", .persistent = true, .ready = true, .requests = true},
    {.name = "Bsend_init", .persistent = true, .local = true, .requests = true},
    {.name = "Sendrecv", .blocks = true},
    {.name = "Sendrecv_replace", .blocks = true},
    {.name = "Isendrecv", .requests = true, .posts = true},
    {.name = "Isendrecv_replace", .requests = true, .posts = true},
    {.name = "Recv", .blocks = true},
    {.name = "Irecv", .requests = true, .posts = true},
    {.name = "Recv_init", .persistent = true, .requests = true, .posts = true},
    {.name = "Mprobe+Mrecv", .blocks = true},
    {.name = "Mprobe+Imrecv", .blocks = true, .requests = true},
    {.name = "Improbe+Mrecv", .blocks = true},
    {.name = "Improbe+Imrecv", .blocks = true, .requests = true},
    {.name = "Probe+Recv", .blocks = true},
    {.name = "Probe+Irecv", .blocks = true, .requests = true},
    {.name = "Iprobe+Recv", .blocks = true},
    {.name = "Irecv+Cancel", .blocks = true},
};
static_assert(std::size(table) == static_cast<std::size_t>(Kind::count_));

std::string rank_text(int rank) {
  return rank == null_rank ? std::string("null") : std::to_string(rank);
}

std::string side_text(const Side& side) {
  return text_of(side.layout) + (side.packed ? " packed" : "") +
         (side.free_type ? " type freed" : "");
}

std::string message_text(const Round& round, int m) {
  const Message& it = round.messages[static_cast<std::size_t>(m)];
  return "m" + std::to_string(m) + " " + rank_text(it.source) + "->" + rank_text(it.destination) +
         " on c" + std::to_string(it.comm) + " tag " + std::to_string(it.tag) + ", " +
         std::to_string(it.bytes()) + " bytes " + name_of(it.element) + " " + name_of(it.data);
}

std::string list_text(const std::vector<int>& list) {
  std::string text;
  for (int i : list) text += " #" + std::to_string(i);
  return text;
}

}  // namespace

const char* name_of(Family family) {
  static const char* const names[] = {
      "basics", "modes",    "persistent",    "exchange", "probe", "wildcard", "datatypes",
      "cancel", "truncate", "communicators", "null",     "large", "shared",   "collectives"};
  static_assert(std::size(names) == static_cast<std::size_t>(Family::count_));
  return names[static_cast<int>(family)];
}

const char* name_of(Method method) {
  static const char* const names[] = {"Wait",           "Test",           "Waitall",
                                      "Testall",        "Waitany",        "Testany",
                                      "Waitsome",       "Testsome",       "Get_status",
                                      "Get_status_any", "Get_status_all", "Get_status_some",
                                      "Request_free"};
  static_assert(std::size(names) == static_cast<std::size_t>(Method::count_));
  return names[static_cast<int>(method)];
}

const Traits& traits(Kind kind) { return table[static_cast<int>(kind)]; }

std::string text_of(const Round& round, int c) {
  const Call& it = round.calls[static_cast<std::size_t>(c)];
  std::string text = "#" + std::to_string(c) + " " + traits(it.kind).name;
  if (it.large) text += "_c";
  if (it.channel >= 0) text += " (request of #" + std::to_string(it.channel) + ")";
  if (it.send >= 0) {
    text += " sends " + message_text(round, it.send) + " from " + side_text(it.out);
  }
  if (it.receive >= 0) {
    const int p = round.messages[static_cast<std::size_t>(it.receive)].pool;
    text += it.lonely ? " waits in vain for " : " receives ";
    text += message_text(round, it.receive) + " into " + side_text(it.in);
    if (p >= 0) {
      const Pool& pool = round.pools[static_cast<std::size_t>(p)];
      text += ", or another of pool " + std::to_string(p) + " from any source";
      if (pool.any_tag) text += " with any tag";
      if (pool.shared) text += " for any thread";
    }
    if (it.any_tag) text += ", any tag";
    if (it.truncates) text += ", which is too small";
  }
  return text;
}

std::string text_of(const Collective& call) {
  static const char* const names[] = {"Bcast",     "Allreduce", "Alltoallv",
                                      "Neighbor_", "Ibcast",    "Iallreduce"};
  static_assert(std::size(names) == static_cast<std::size_t>(Collective::Kind::count_));
  return std::string(names[static_cast<int>(call.kind)]) + " on c" + std::to_string(call.comm) +
         " root " + std::to_string(call.root) + ", " + std::to_string(call.elements) + " " +
         name_of(call.element) + " " + name_of(call.data);
}

std::string text_of(const Round& round, const Action& action) {
  std::string text = "rank " + std::to_string(action.rank) + ": ";
  switch (action.kind) {
    case Action::Kind::start:
      for (std::size_t i = 0; i < action.calls.size(); ++i) {
        text += (i ? " & " : "") + text_of(round, action.calls[i]);
      }
      break;
    case Action::Kind::complete:
      text += name_of(action.method) + list_text(action.calls);
      if (!action.extras.empty()) text += " or also" + list_text(action.extras);
      if (!action.inactive.empty()) text += " beside inactive" + list_text(action.inactive);
      if (action.ignore_status) text += " ignoring statuses";
      break;
    case Action::Kind::peek:
      text += action.blocking ? "Probe on c" : "Iprobe on c";
      text += std::to_string(action.comm) + (action.any_tag ? ", any tag: " : ": ");
      text += action.message >= 0 ? message_text(round, action.message)
                                  : "pool " + std::to_string(action.pool);
      break;
    case Action::Kind::barrier: text += "Barrier on c" + std::to_string(action.comm); break;
    case Action::Kind::collective: {
      const auto number = static_cast<std::size_t>(action.collectives[0]);
      text += text_of(round.collectives[number]) + " (k" + std::to_string(number) + ")";
      break;
    }
    case Action::Kind::end_collectives:
      text += "ends collective calls";
      for (const int number : action.collectives) text += " k" + std::to_string(number);
      break;
    case Action::Kind::free_comm: text += "Comm_free c" + std::to_string(action.comm); break;
  }
  return text;
}

void print(const Round& round) {
  std::printf("stream %d round %d:\n", round.stream, round.number);
  for (std::size_t i = 0; i < round.comms.size(); ++i) {
    const Comm& comm = round.comms[i];
    std::printf("  c%zu %s:", i, name_of(comm.kind));
    for (int rank : comm.group) std::printf(" %d", rank);
    if (comm.inter()) std::printf(" |");
    for (int rank : comm.remote) std::printf(" %d", rank);
    std::printf("\n");
  }
  for (std::size_t k = 0; k < round.steps.size(); ++k) {
    for (const Action& action : round.steps[k]) {
      std::printf("  step %zu, %s\n", k, text_of(round, action).c_str());
    }
  }
  std::fflush(stdout);
}

}  // namespace stress
