// The buffers of calls, and a round from its beginning to its end.

#include "execution.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "failure.hpp"
#include "simulated_gpu.h"

namespace stress {
namespace {

constexpr auto gap = std::byte{0x3C};        ///< between the elements that are sent
constexpr auto untouched = std::byte{0xC3};  ///< where nothing was received

}  // namespace

void Ledger::expect(std::uint64_t key) {
  std::lock_guard lock(mutex_);
  expected_.insert(key);
}

void Ledger::received(std::uint64_t key) {
  std::lock_guard lock(mutex_);
  received_.insert(key);
}

void Ledger::check() {
  if (expected_ != received_) fail("messages for any thread were lost, or came twice");
}

Execution::Execution(const Settings& settings, int rank, const Round& round, Communicators& comms,
                     Ledger& ledger)
    : settings_(settings),
      rank_(rank),
      round_(round),
      comms_(comms),
      ledger_(ledger),
      operations_(round.calls.size()),
      outcomes_(round.calls.size()),
      running_(round.collectives.size()),
      pool_receives_(round.pools.size()) {
  if (settings.devices) place_buffers();
}

Execution::~Execution() {
  for (Operation& o : operations_) {
    if (o.request != MPI_REQUEST_NULL) MPI_Request_free(&o.request);
    if (o.out && o.out->derived()) MPI_Type_free(&o.out_type);
    if (o.in && o.in->derived()) MPI_Type_free(&o.in_type);
  }
}

int Execution::owner_of(int c) const {
  const int channel = call(c).channel;
  return channel >= 0 ? channel : c;
}

Execution::Operation& Execution::operation(int c) {
  return operations_[static_cast<std::size_t>(owner_of(c))];
}

bool Execution::replaces(const Call& call) {
  return call.kind == Kind::sendrecv_replace || call.kind == Kind::isendrecv_replace;
}

void Execution::run() {
  here->step = 0;
  here->action = nullptr;
  here->round = &round_;
  for (const auto& step : round_.steps) {
    for (const Action& action : step) {
      if (action.rank != rank_) continue;
      here->action = &action;
      act(action);
      ++here->steps_done;
    }
    ++here->step;
  }
  here->action = nullptr;
  must(MPI_Barrier(comms_.root()), "MPI_Barrier");
  ++here->steps_done;
  for (std::size_t p = 0; p < round_.pools.size(); ++p) {
    if (pool(static_cast<int>(p)).receiver == rank_) check_pool(static_cast<int>(p));
  }
  check_late();
  here->round = nullptr;
}

void Execution::act(const Action& action) {
  switch (action.kind) {
    case Action::Kind::start: start(action); break;
    case Action::Kind::complete: complete(action); break;
    case Action::Kind::peek: peek(action); break;
    case Action::Kind::barrier: must(MPI_Barrier(comms_.handle(action.comm)), "MPI_Barrier"); break;
    case Action::Kind::collective: collective(action); break;
    case Action::Kind::end_collectives: end_collectives(action); break;
    case Action::Kind::free_comm: comms_.free(action.comm); break;
  }
}

/// Puts some of what MPI is given on devices. What a freed receive is to fill lies on the host,
/// where the program sees when it comes.
void Execution::place_buffers() {
  std::set<int> freed;
  for (const auto& step : round_.steps) {
    for (const Action& action : step) {
      if (action.method != Method::free) continue;
      for (int c : action.calls) freed.insert(owner_of(c));
    }
  }
  const std::uint64_t seed = mix(settings_.seed, static_cast<std::uint64_t>(rank_));
  Random random(mix(mix(seed, static_cast<std::uint64_t>(round_.stream)),
                    static_cast<std::uint64_t>(round_.number)));
  for (int place = sim_pinned; place < sim_devices && settings_.scarce; ++place) {
    limit_memory(place, random.below(4) == 0 ? SIZE_MAX : 0);
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Call& it = round_.calls[i];
    Operation& o = operations_[i];
    const int devices[] = {random.below(2 * sim_devices) - sim_devices,
                           random.below(2 * sim_devices) - sim_devices};
    (it.out.packed ? o.packed_out : o.sent).place(devices[0]);
    if (freed.contains(static_cast<int>(i))) continue;
    (it.in.packed ? o.packed_in : o.received).place(devices[1]);
  }
}

/// What the buffer of a call holds before: for receives, nothing; for sends, the message `m`.
/// The message that it received is laid over it.
std::vector<std::byte> Execution::image(int c, const Message* m) {
  const Call& it = call(c);
  const Operation& o = operation(c);
  const bool sends = it.send >= 0 && (it.receive < 0 || replaces(it) || !m);
  std::vector<std::byte> memory(
      replaces(it) || !sends ? o.received.bytes.size() : o.sent.bytes.size(),
      sends ? gap : untouched);
  if (sends) {
    const Message& sent = message(it.send);
    const auto content = make_content(sent.key, sent.element, sent.data, sent.elements);
    o.out->scatter(content.data(), content.size(), memory.data());
  }
  if (m && it.receive >= 0) {
    const auto content = make_content(m->key, m->element, m->data, m->elements);
    o.in->scatter(content.data(), content.size(), memory.data());
  }
  return memory;
}

/// Lays out the buffers of a call and fills them.
void Execution::prepare(int c) {
  const Call& it = call(c);
  Operation& o = operation(c);
  if (it.send >= 0) {
    if (!o.out) o.out = std::make_unique<Layout>(it.out.layout);
    auto& memory = replaces(it) ? o.received : o.sent;
    const std::size_t bytes = o.out->memory_bytes();
    if (memory.bytes.empty()) memory.resize(bytes);
    const auto fresh = image(c, nullptr);
    std::memcpy(memory.bytes.data(), fresh.data(), bytes);
    memory.store();
    if (o.out_type == MPI_DATATYPE_NULL) o.out_type = o.out->make_type(memory.data());
  }
  if (it.receive >= 0) {
    if (!o.in) o.in = std::make_unique<Layout>(it.in.layout);
    Memory& memory = o.received;
    if (memory.bytes.empty()) memory.resize(o.in->memory_bytes());
    if (!replaces(it)) std::fill(memory.bytes.begin(), memory.bytes.end(), untouched);
    memory.store();
    if (o.in_type == MPI_DATATYPE_NULL) o.in_type = o.in->make_type(memory.data());
  }
}

Execution::Arguments Execution::send_arguments(int c) {
  const Call& it = call(c);
  Operation& o = operation(c);
  const Message& m = message(it.send);
  const MPI_Comm on = comms_.handle(m.comm);
  const int peer = m.destination == null_rank ? MPI_PROC_NULL : comm(m.comm).rank_of(m.destination);
  std::byte* memory = (replaces(it) ? o.received : o.sent).data();
  if (it.out.packed) {
    int room = 0, used = 0;
    must(MPI_Pack_size(o.out->count(), o.out_type, on, &room), "MPI_Pack_size");
    o.packed_out.resize(static_cast<std::size_t>(room) + 1);
    must(MPI_Pack(o.out->address(memory), o.out->count(), o.out_type, o.packed_out.bytes.data(),
                  room, &used, on),
         "MPI_Pack");
    o.packed_out.store();
    return {o.packed_out.data(), used, MPI_PACKED, peer, m.tag, on};
  }
  const bool fresh = it.out.free_type && o.out->derived();
  const MPI_Datatype type = fresh ? o.out->make_type(memory) : o.out_type;
  return {o.out->address(memory), o.out->count(), type, peer, m.tag, on};
}

Execution::Arguments Execution::receive_arguments(int c) {
  const Call& it = call(c);
  Operation& o = operation(c);
  const Message& m = message(it.receive);
  const MPI_Comm on = comms_.handle(m.comm);
  int peer = m.source == null_rank ? MPI_PROC_NULL : comm(m.comm).rank_of(m.source);
  int tag = it.any_tag ? MPI_ANY_TAG : m.tag;
  if (m.pool >= 0) {
    peer = MPI_ANY_SOURCE;
    tag = pool(m.pool).any_tag ? MPI_ANY_TAG : m.tag;
    pool_receives_[static_cast<std::size_t>(m.pool)].push_back(c);
  }
  if (it.lonely && (comm(m.comm).inter() || m.elements % 2)) peer = MPI_ANY_SOURCE;
  if (it.in.packed) {
    int room = 0;
    must(MPI_Pack_size(o.in->count(), o.in_type, on, &room), "MPI_Pack_size");
    o.packed_in.resize(static_cast<std::size_t>(room) + 1);
    return {o.packed_in.data(), room, MPI_PACKED, peer, tag, on};
  }
  const bool fresh = it.in.free_type && o.in->derived();
  const MPI_Datatype type = fresh ? o.in->make_type(o.received.data()) : o.in_type;
  return {o.in->address(o.received.data()), o.in->count(), type, peer, tag, on};
}

/// Frees a type of which MPI was given a copy of its own, while its operation is under way.
void Execution::used(int c, const Arguments& arguments, bool out) {
  const Side& side = out ? call(c).out : call(c).in;
  const Operation& o = operation(c);
  const Layout& layout = out ? *o.out : *o.in;
  MPI_Datatype type = arguments.type;
  if (!side.packed && side.free_type && layout.derived()) {
    must(MPI_Type_free(&type), "MPI_Type_free");
  }
}

/// Waits for what a freed receive brings: only its memory tells.
void Execution::await_freed(int c) {
  const Operation& o = operation(c);
  const auto expected = image(c, &message(call(c).receive));
  while (o.received.bytes != expected) {
    int flag = 0;
    must(MPI_Iprobe(MPI_ANY_SOURCE, lonely_tag + 2, comms_.root(), &flag, MPI_STATUS_IGNORE),
         "MPI_Iprobe");
    ::sched_yield();
  }
}

/// Nothing changes any more what was sent and received.
void Execution::check_late() {
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const int c = static_cast<int>(i);
    const Call& it = call(c);
    if (!outcomes_[i].done || it.channel >= 0) continue;
    operations_[i].sent.fetch();
    operations_[i].received.fetch();
    if (it.send >= 0 && !replaces(it) && !it.overwrite_sent) check_sent(c, false);
    const bool fixed = it.receive >= 0 && pool_of(c) < 0 && !it.truncates && !it.lonely;
    if (!fixed) continue;
    const Message& m = message(it.receive);
    compare(c, m.source == null_rank ? nullptr : &m, operation(c).received.bytes,
            "data changed after the receive was complete");
  }
}

}  // namespace stress
