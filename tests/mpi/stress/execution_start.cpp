// The calls that send and receive.

#include <algorithm>

#include "execution.hpp"
#include "failure.hpp"

// Calls with a count have a second form since MPI 4.0.
#if MPI_VERSION >= 4
#define STRESS_CALL(name, large, ...) \
  must((large) ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__), "MPI_" #name)
#define STRESS_CODE(name, large, ...) \
  ((large) ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define STRESS_CALL(name, large, ...) \
  (static_cast<void>(large), must(MPI_##name(__VA_ARGS__), "MPI_" #name))
#define STRESS_CODE(name, large, ...) (static_cast<void>(large), MPI_##name(__VA_ARGS__))
#endif

namespace stress {

void Execution::start(const Action& action) {
  const int c = action.calls[0];
  const Call& it = call(c);
  if (traits(it.kind).persistent) return start_persistent(action);
  prepare(c);
  if (it.send >= 0 && it.receive >= 0) {
    start_exchange(c);
  } else {
    it.send >= 0 ? start_send(c) : start_receive(c);
  }
}

void Execution::start_persistent(const Action& action) {
  std::vector<MPI_Request> requests;
  for (int c : action.calls) {
    prepare(c);
    if (operation(c).request == MPI_REQUEST_NULL) {
      make_request(c);
    } else if (pool_of(c) >= 0) {
      pool_receives_[static_cast<std::size_t>(pool_of(c))].push_back(c);
    }
    requests.push_back(operation(c).request);
  }
  if (requests.size() == 1) {
    must(MPI_Start(&operation(action.calls[0]).request), "MPI_Start");
  } else {
    must(MPI_Startall(static_cast<int>(requests.size()), requests.data()), "MPI_Startall");
    // Open MPI changes the handles of buffered sends that are still on their way.
    for (std::size_t i = 0; i < requests.size(); ++i) {
      operation(action.calls[i]).request = requests[i];
    }
  }
}

void Execution::make_request(int c) {
  const Call& it = call(c);
  MPI_Request* request = &operation(c).request;
  const bool sends = it.send >= 0;
  const Arguments a = sends ? send_arguments(c) : receive_arguments(c);
#define STRESS_INIT(name) \
  STRESS_CALL(name, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request)
  switch (it.kind) {
    case Kind::send_init: STRESS_INIT(Send_init); break;
    case Kind::ssend_init: STRESS_INIT(Ssend_init); break;
    case Kind::rsend_init: STRESS_INIT(Rsend_init); break;
    case Kind::bsend_init: STRESS_INIT(Bsend_init); break;
    default: STRESS_INIT(Recv_init);
  }
  used(c, a, sends);
}

void Execution::start_send(int c) {
  const Call& it = call(c);
  MPI_Request* request = &operation(c).request;
  const Arguments a = send_arguments(c);
#define STRESS_SEND(name) \
  STRESS_CALL(name, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm)
#define STRESS_ISEND(name) \
  STRESS_CALL(name, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request)
  switch (it.kind) {
    case Kind::send: STRESS_SEND(Send); break;
    case Kind::ssend: STRESS_SEND(Ssend); break;
    case Kind::rsend: STRESS_SEND(Rsend); break;
    case Kind::bsend: STRESS_SEND(Bsend); break;
    case Kind::isend: STRESS_ISEND(Isend); break;
    case Kind::issend: STRESS_ISEND(Issend); break;
    case Kind::irsend: STRESS_ISEND(Irsend); break;
    default: STRESS_ISEND(Ibsend);
  }
  used(c, a, true);
  if (!traits(it.kind).requests) finish(c, MPI_SUCCESS, nullptr);
}

void Execution::start_receive(int c) {
  const Call& it = call(c);
  MPI_Status status;
  status.MPI_ERROR = untouched_error;
  if (it.kind == Kind::cancel_race) return race(c);
  if (it.kind != Kind::recv && it.kind != Kind::irecv) return receive_probed(c);
  const Arguments a = receive_arguments(c);
  int code = MPI_SUCCESS;
  if (it.kind == Kind::recv) {
    code = STRESS_CODE(Recv, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &status);
    expect_no_error(status, "MPI_ERROR after MPI_Recv");
  } else {
    STRESS_CALL(Irecv, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm,
                &operation(c).request);
  }
  used(c, a, false);
  if (it.kind == Kind::recv) finish(c, code, &status);
}

/// A receive that a probe of some kind precedes.
void Execution::receive_probed(int c) {
  const Call& it = call(c);
  MPI_Request* request = &operation(c).request;
  const Arguments a = receive_arguments(c);
  const int p = pool_of(c);
  MPI_Status seen{}, status;  // MPICH's probes leave the cancelled flag as it was
  status.MPI_ERROR = untouched_error;
  MPI_Message matched = MPI_MESSAGE_NULL;
  int flag = 0, code = MPI_SUCCESS;
  switch (it.kind) {
    case Kind::probe_recv:
    case Kind::probe_irecv: must(MPI_Probe(a.peer, a.tag, a.comm, &seen), "MPI_Probe"); break;
    case Kind::iprobe_recv:
      while (!flag) must(MPI_Iprobe(a.peer, a.tag, a.comm, &flag, &seen), "MPI_Iprobe");
      break;
    case Kind::mrecv:
    case Kind::imrecv:
      must(MPI_Mprobe(a.peer, a.tag, a.comm, &matched, &seen), "MPI_Mprobe");
      break;
    default:
      while (!flag) {
        must(MPI_Improbe(a.peer, a.tag, a.comm, &flag, &matched, &seen), "MPI_Improbe");
      }
  }
  if (p < 0) {
    const Message& m = message(it.receive);
    if (!it.truncates) check_status(c, m, seen);
  } else if (!pool(p).shared) {
    const int source = source_of(c, seen);
    MPI_Count bytes = 0;
    must(MPI_Get_elements_x(&seen, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    const auto& receives = pool_receives_[static_cast<std::size_t>(p)];
    seen_.push_back({p, receives.size() - 1, source, seen.MPI_TAG, bytes});
  }
  const int source = seen.MPI_SOURCE, tag = seen.MPI_TAG;
  switch (it.kind) {
    case Kind::probe_recv:
    case Kind::iprobe_recv:
      code = STRESS_CODE(Recv, it.large, a.buffer, a.count, a.type, source, tag, a.comm, &status);
      break;
    case Kind::probe_irecv:
      STRESS_CALL(Irecv, it.large, a.buffer, a.count, a.type, source, tag, a.comm, request);
      break;
    case Kind::mrecv:
    case Kind::improbe_mrecv:
      code = STRESS_CODE(Mrecv, it.large, a.buffer, a.count, a.type, &matched, &status);
      break;
    default: STRESS_CALL(Imrecv, it.large, a.buffer, a.count, a.type, &matched, request);
  }
  expect(code != MPI_SUCCESS || matched == MPI_MESSAGE_NULL,
         "a matched receive leaves its message's handle");
  used(c, a, false);
  if (traits(it.kind).requests) return;
  expect_no_error(status, "MPI_ERROR after a receive");
  finish(c, code, &status);
}

/// A receive that is cancelled before or after its message comes: either it was cancelled and has
/// written nothing, and the message is there for another, or it is complete.
void Execution::race(int c) {
  const Call& it = call(c);
  Operation& o = operation(c);
  const Arguments a = receive_arguments(c);
  MPI_Status status;
  int cancelled = 0;
  STRESS_CALL(Irecv, it.large, a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &o.request);
  must(MPI_Cancel(&o.request), "MPI_Cancel");
  must(MPI_Wait(&o.request, &status), "MPI_Wait");
  must(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
  if (cancelled) {
    o.received.fetch();
    compare(c, nullptr, o.received.bytes, "a cancelled receive has written");
    must(MPI_Recv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &status), "MPI_Recv");
  }
  used(c, a, false);
  finish(c, MPI_SUCCESS, &status);
}

void Execution::start_exchange(int c) {
  const Call& it = call(c);
  Operation& o = operation(c);
  const Arguments s = send_arguments(c);
  const Arguments r = receive_arguments(c);
  MPI_Status status;
  status.MPI_ERROR = untouched_error;
  int code = MPI_SUCCESS;
  switch (it.kind) {
    case Kind::sendrecv:
      code = STRESS_CODE(Sendrecv, it.large, s.buffer, s.count, s.type, s.peer, s.tag, r.buffer,
                         r.count, r.type, r.peer, r.tag, s.comm, &status);
      break;
    case Kind::sendrecv_replace:
      code = STRESS_CODE(Sendrecv_replace, it.large, s.buffer, s.count, s.type, s.peer, s.tag,
                         r.peer, r.tag, s.comm, &status);
      break;
#if MPI_VERSION >= 4
    case Kind::isendrecv:
      if (settings_.careful) return start_two(c, s, r);
      STRESS_CALL(Isendrecv, it.large, s.buffer, s.count, s.type, s.peer, s.tag, r.buffer, r.count,
                  r.type, r.peer, r.tag, s.comm, &o.request);
      break;
    default:
      if (settings_.careful) return start_two(c, s, r);
      STRESS_CALL(Isendrecv_replace, it.large, s.buffer, s.count, s.type, s.peer, s.tag, r.peer,
                  r.tag, s.comm, &o.request);
#else
    default: return start_two(c, s, r);
#endif
  }
  used(c, s, true);
  used(c, r, false);
  if (traits(it.kind).requests) return;
  expect_no_error(status, "MPI_ERROR after an exchange");
  finish(c, code, &status);
}

/// Two requests for one, where MPI has no non-blocking exchange that works: the send's is freed,
/// and what it sends stays.
void Execution::start_two(int c, const Arguments& s, const Arguments& r) {
  const Call& it = call(c);
  Operation& o = operation(c);
  if (replaces(it)) {
    o.sent.resize(o.received.bytes.size());
    o.sent.bytes = o.received.bytes;
    o.sent.store();
  }
  const bool moved = replaces(it) && it.out.layout.shape == Shape::absolute;
  MPI_Datatype type = moved ? o.out->make_type(o.sent.data()) : s.type;
  MPI_Request sending;
  must(MPI_Irecv(r.buffer, r.count, r.type, r.peer, r.tag, r.comm, &o.request), "MPI_Irecv");
  must(MPI_Isend(o.out->address(o.sent.data()), s.count, type, s.peer, s.tag, s.comm, &sending),
       "MPI_Isend");
  must(MPI_Request_free(&sending), "MPI_Request_free");
  if (moved) MPI_Type_free(&type);
  used(c, s, true);
  used(c, r, false);
}

void Execution::peek(const Action& action) {
  const Pool* plan = action.pool >= 0 ? &pool(action.pool) : nullptr;
  const Message* m = action.message >= 0 ? &message(action.message) : nullptr;
  const MPI_Comm on = comms_.handle(action.comm);
  const int peer = m ? comm(action.comm).rank_of(m->source) : MPI_ANY_SOURCE;
  const int tag = action.any_tag ? MPI_ANY_TAG : m ? m->tag : plan->tag;
  MPI_Status status;
  status.MPI_ERROR = untouched_error;
  if (action.blocking) {
    must(MPI_Probe(peer, tag, on, &status), "MPI_Probe");
  } else {
    for (int flag = 0; !flag;) must(MPI_Iprobe(peer, tag, on, &flag, &status), "MPI_Iprobe");
  }
  expect_no_error(status, "MPI_ERROR after a probe");
  MPI_Count bytes = 0;
  must(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  if (m) {
    expect_equal(status.MPI_SOURCE, peer, "MPI_SOURCE of a probe");
    expect_equal(status.MPI_TAG, m->tag, "MPI_TAG of a probe");
    return expect_equal(bytes, static_cast<long long>(m->bytes()), "the size that a probe told");
  }
  const int any = plan->messages[0];
  const int source = source_of(message(any).receive_call, status);
  const auto& receives = pool_receives_[static_cast<std::size_t>(action.pool)];
  seen_.push_back({action.pool, receives.size(), source, status.MPI_TAG, bytes});
}

}  // namespace stress
