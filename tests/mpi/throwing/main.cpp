/* The program's error handlers throw exceptions, or jump away, out of calls of every kind, and the
 * program goes on with all others: nothing stays locked, half done or raised twice. Two ranks.
 *
 * Options: `mpress`: it is there, and raises errors of its own; `jump`: handlers jump in place
 * of throwing; `own-lock`: MPI holds locks of its own while callbacks run, so these throw nothing.
 */
#include <setjmp.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../check.h"

namespace {

constexpr int N = 50000, room = 10000;
float smooth[N], noise[N], out[N], in[N], room_for[N];
MPI_Comm comm;
MPI_Request persistent[2];
int rank, peer, handled = 0;
bool has_mpress = false, jumps = false, has_own_lock = false;
jmp_buf back;

struct Thrown {
  int error_class;
};

void handle(int code) {
  Thrown thrown{};
  MPI_Error_class(code, &thrown.error_class);
  ++handled;
  if (jumps) longjmp(back, 1 + thrown.error_class);
  throw thrown;
}

void comm_handler(MPI_Comm*, int* code, ...) { handle(*code); }
void win_handler(MPI_Win*, int* code, ...) { handle(*code); }

/* The class of the error that the call raised; MPI_SUCCESS: none. */
int error_of(const std::function<void()>& call) {
  if (const int jumped = jumps ? setjmp(back) : 0; jumped > 0) return jumped - 1;
  try {
    call();
  } catch (const Thrown& thrown) {
    return thrown.error_class;
  }
  return MPI_SUCCESS;
}

/* One error, raised once. */
void fails(const char* what, const std::function<void()>& call) {
  handled = 0;
  const int error = error_of(call);
  if (error == MPI_SUCCESS || handled != 1) {
    fprintf(stderr, "rank %d: %s: error class %d, raised %d times\n", rank, what, error, handled);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* All kinds of calls work, and none raises anything. */
void go_on() {
  static int turn = 0;
  ++turn;
  handled = 0;
  fill_f32(out, N, turn + rank);
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(in, N, MPI_FLOAT, peer, 1, comm, &requests[0]);
  MPI_Isend(out, N, MPI_FLOAT, peer, 1, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(same_f32(in, N, turn + peer));
  memset(in, 0, sizeof in);
  MPI_Startall(2, persistent);
  MPI_Barrier(comm);
  MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
  CHECK(same_f32(in, N, turn + peer));
  memset(in, 0, sizeof in);
  MPI_Sendrecv(out, N, MPI_FLOAT, peer, 2, in, N, MPI_FLOAT, peer, 2, comm, &status);
  CHECK(same_f32(in, N, turn + peer));
  MPI_Isend(out, N, MPI_FLOAT, peer, 3, comm, &requests[0]);
  MPI_Probe(peer, 3, comm, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == N);
  MPI_Recv(in, N, MPI_FLOAT, peer, 3, comm, &status);
  MPI_Wait(&requests[0], &status);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == 2);
  if (rank == 0) memcpy(in, out, sizeof in);
  MPI_Ibcast(in, N, MPI_FLOAT, 0, comm, &requests[0]);
  MPI_Wait(&requests[0], &status);
  CHECK(same_f32(in, N, turn));
  MPI_Comm copy;
  MPI_Comm_dup(comm, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  CHECK(handled == 0);
}

void ask() { MPI_Send(NULL, 0, MPI_INT, peer, 100, comm); }
void be_asked() { MPI_Recv(NULL, 0, MPI_INT, peer, 100, comm, MPI_STATUS_IGNORE); }

/* Until the call has thrown. */
template <typename Call>
void repeat(Call call) {
  while (handled == 0) call();
}

/* A message is longer than the room for it: the call that completes the receive raises that. */
void truncated() {
  using Complete = std::function<void(MPI_Request*)>;
  static int flag, index, done, indices[2];
  static MPI_Status status[2];
  const std::vector<std::pair<const char*, Complete>> ways = {
      {"Wait", [](MPI_Request* r) { MPI_Wait(r, status); }},
      {"Waitall", [](MPI_Request* r) { MPI_Waitall(2, r, status); }},
      {"Waitany", [](MPI_Request* r) { MPI_Waitany(2, r, &index, status); }},
      {"Waitsome", [](MPI_Request* r) { MPI_Waitsome(2, r, &done, indices, status); }},
      {"Test", [](MPI_Request* r) { repeat([&] { MPI_Test(r, &flag, status); }); }},
      {"Testall", [](MPI_Request* r) { repeat([&] { MPI_Testall(2, r, &flag, status); }); }},
      {"Testany",
       [](MPI_Request* r) { repeat([&] { MPI_Testany(2, r, &index, &flag, status); }); }},
      {"Testsome",
       [](MPI_Request* r) { repeat([&] { MPI_Testsome(2, r, &done, indices, status); }); }},
  };
  for (const float* values : {smooth, noise}) {
    const auto send = [&] {
      be_asked();
      MPI_Send(values, N, MPI_FLOAT, peer, 0, comm);
      go_on();
    };
    for (int kind = 0; kind < 2; ++kind) {
      for (const auto& [name, complete] : ways) {
        if (rank == 0) {
          send();
          continue;
        }
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        if (kind == 0) {
          MPI_Irecv(room_for, room, MPI_FLOAT, peer, 0, comm, &requests[0]);
        } else {
          MPI_Recv_init(room_for, room, MPI_FLOAT, peer, 0, comm, &requests[0]);
          MPI_Start(&requests[0]);
        }
        ask();
        MPI_Request* const given = requests;
        fails(name, [&, call = &complete] { (*call)(given); });
        if (kind == 1) MPI_Request_free(&requests[0]);
        go_on();
      }
    }
    const std::vector<std::pair<const char*, std::function<void()>>> calls = {
        {"Recv", [] { MPI_Recv(room_for, room, MPI_FLOAT, peer, 0, comm, status); }},
        {"Mrecv",
         [] {
           MPI_Message message;
           MPI_Mprobe(peer, 0, comm, &message, status);
           MPI_Mrecv(room_for, room, MPI_FLOAT, &message, status);
         }},
        {"Sendrecv",
         [] {
           MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, room_for, room, MPI_FLOAT, peer, 0,
                        comm, status);
         }},
        {"Probe and Recv",
         [] {
           MPI_Probe(peer, 0, comm, status);
           MPI_Recv(room_for, room, MPI_FLOAT, peer, 0, comm, status);
         }},
    };
    for (const auto& [name, call] : calls) {
      if (rank == 0) {
        send();
        continue;
      }
      ask();
      fails(name, call);
      go_on();
    }
  }
}

/* Calls that MPI refuses. */
void refused() {
  static MPI_Request request, null = MPI_REQUEST_NULL;
  static MPI_Comm none = MPI_COMM_NULL;
  static MPI_Status status;
  static MPI_Win win;
  static int flag, nine = 9;
  const MPI_Datatype no_type = MPI_DATATYPE_NULL;
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"Send, rank", [] { MPI_Send(smooth, N, MPI_FLOAT, nine, 0, comm); }},
      {"Send, count", [] { MPI_Send(smooth, -1, MPI_FLOAT, peer, 0, comm); }},
      {"Send, type", [=] { MPI_Send(smooth, N, no_type, peer, 0, comm); }},
      {"Send, tag", [] { MPI_Send(smooth, N, MPI_FLOAT, peer, -5, comm); }},
      {"Send, communicator", [] { MPI_Send(smooth, N, MPI_FLOAT, peer, 0, MPI_COMM_NULL); }},
      {"Isend, rank", [] { MPI_Isend(smooth, N, MPI_FLOAT, nine, 0, comm, &request); }},
      {"Isend, tag", [] { MPI_Isend(smooth, N, MPI_FLOAT, peer, -5, comm, &request); }},
      {"Recv, rank", [] { MPI_Recv(in, N, MPI_FLOAT, nine, 0, comm, &status); }},
      {"Irecv, tag", [] { MPI_Irecv(in, N, MPI_FLOAT, peer, -5, comm, &request); }},
      {"Irecv, type", [=] { MPI_Irecv(in, N, no_type, peer, 0, comm, &request); }},
      {"Sendrecv, rank",
       [] { MPI_Sendrecv(out, N, MPI_FLOAT, nine, 0, in, N, MPI_FLOAT, peer, 0, comm, &status); }},
      {"Sendrecv, source",
       [] { MPI_Sendrecv(out, N, MPI_FLOAT, peer, 0, in, N, MPI_FLOAT, nine, 0, comm, &status); }},
      {"Send_init, rank", [] { MPI_Send_init(out, N, MPI_FLOAT, nine, 0, comm, &request); }},
      {"Probe, rank", [] { MPI_Probe(nine, 0, comm, &status); }},
      {"Iprobe, rank", [] { MPI_Iprobe(nine, 0, comm, &flag, &status); }},
      {"Start", [] { MPI_Start(&null); }},
      {"Request_free", [] { MPI_Request_free(&null); }},
      {"Barrier", [] { MPI_Barrier(MPI_COMM_NULL); }},
      {"Bcast, root", [] { MPI_Bcast(in, N, MPI_FLOAT, nine, comm); }},
      {"Bcast, type", [=] { MPI_Bcast(in, N, no_type, 0, comm); }},
      {"Allreduce, operator", [] { MPI_Allreduce(out, in, N, MPI_FLOAT, MPI_OP_NULL, comm); }},
      {"Gather, root", [] { MPI_Gather(out, N / 2, MPI_FLOAT, in, N / 2, MPI_FLOAT, nine, comm); }},
      {"Alltoall, count", [] { MPI_Alltoall(out, -1, MPI_FLOAT, in, -1, MPI_FLOAT, comm); }},
      {"Ibcast, root", [] { MPI_Ibcast(in, N, MPI_FLOAT, nine, comm, &request); }},
      {"Comm_dup", [] { MPI_Comm_dup(MPI_COMM_NULL, &none); }},
      {"Comm_free", [] { MPI_Comm_free(&none); }},
      {"Win_fence", [] { MPI_Win_lock(MPI_LOCK_SHARED, nine, 0, win); }},
  };
  MPI_Errhandler own;
  MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, comm, &win);
  MPI_Win_create_errhandler(win_handler, &own);
  MPI_Win_set_errhandler(win, own);
  for (const auto& [name, call] : calls) {
    MPI_Request pending[2];
    MPI_Irecv(in, N, MPI_FLOAT, peer, 5, comm, &pending[0]);
    MPI_Isend(smooth, N, MPI_FLOAT, peer, 5, comm, &pending[1]);
    fails(name, call);
    MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    CHECK(same_f32(in, N, 3));
  }
  MPI_Errhandler_free(&own);
  MPI_Win_free(&win);
  go_on();
}

/* mpress's own errors. */
void raised_by_mpress() {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpress_codec", "nonsense");
  fails("Comm_set_info", [&, given = info] { MPI_Comm_set_info(comm, given); });
  fails("Comm_dup_with_info", [&, given = info] {
    MPI_Comm copy;
    MPI_Comm_dup_with_info(comm, given, &copy);
  });
  MPI_Info_free(&info);
  go_on();
}

int throwing_copy(MPI_Comm, int, void*, void*, void*, int*) { throw Thrown{MPI_ERR_OTHER}; }
int throwing_delete(MPI_Comm, int, void*, void*) { throw Thrown{MPI_ERR_OTHER}; }
int throwing_query(void*, MPI_Status*) { throw Thrown{MPI_ERR_OTHER}; }
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }
void throwing_operator(void*, void*, int*, MPI_Datatype*) { throw Thrown{MPI_ERR_OTHER}; }

void callbacks() {
  int key;
  MPI_Comm copy, other;
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_create_keyval(throwing_copy, throwing_delete, &key, NULL);
  MPI_Comm_set_attr(copy, key, NULL);
  CHECK(error_of([&] { MPI_Comm_dup(copy, &other); }) == MPI_ERR_OTHER);
  go_on();
  CHECK(error_of([&] { MPI_Comm_free(&copy); }) == MPI_ERR_OTHER);
  go_on();
  MPI_Op op;
  MPI_Op_create(throwing_operator, 1, &op);
  CHECK(error_of([&] { MPI_Reduce_local(out, in, N, MPI_FLOAT, op); }) == MPI_ERR_OTHER);
  go_on();
  MPI_Op_free(&op);
  MPI_Request request;
  MPI_Grequest_start(throwing_query, release, cancel, NULL, &request);
  MPI_Grequest_complete(request);
  CHECK(error_of([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); }) == MPI_ERR_OTHER);
  go_on();
}

/* No call is left that the error of a freed request belongs to: a later one raises it, at most one.
 */
void freed(bool at_the_end) {
  if (rank == 0) {
    be_asked();
    MPI_Send(smooth, N, MPI_FLOAT, peer, 0, comm);
    if (!at_the_end) MPI_Send(NULL, 0, MPI_INT, peer, 101, comm);
  } else {
    int flag;
    MPI_Request request;
    handled = 0;
    MPI_Irecv(room_for, room, MPI_FLOAT, peer, 0, comm, &request);
    MPI_Request_free(&request);
    ask();
    if (at_the_end) return;
    error_of([] { MPI_Recv(NULL, 0, MPI_INT, peer, 101, comm, MPI_STATUS_IGNORE); });
    for (int i = 0; i < 100; ++i) {
      error_of([&] { MPI_Iprobe(peer, 101, comm, &flag, MPI_STATUS_IGNORE); });
    }
    while (has_mpress && handled == 0) error_of([] { MPI_Barrier(MPI_COMM_SELF); });
    CHECK(handled <= 1);
  }
  if (!at_the_end) go_on();
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    has_mpress = has_mpress || argv[i] == std::string("mpress");
    jumps = jumps || argv[i] == std::string("jump");
    has_own_lock = has_own_lock || argv[i] == std::string("own-lock");
  }
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  peer = 1 - rank;
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(comm_handler, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const MPI_Comm one : {comm, MPI_COMM_WORLD, MPI_COMM_SELF})
    MPI_Comm_set_errhandler(one, own);
  MPI_Errhandler_free(&own);
  fill_f32(smooth, N, 3);
  fill_noise(noise, sizeof noise, 4);
  MPI_Recv_init(in, N, MPI_FLOAT, peer, 4, comm, &persistent[0]);
  MPI_Send_init(out, N, MPI_FLOAT, peer, 4, comm, &persistent[1]);
  go_on();
  truncated();
  refused();
  if (has_mpress) raised_by_mpress();
  if (!jumps && !has_own_lock) callbacks();
  freed(false);
  for (MPI_Request& request : persistent) MPI_Request_free(&request);
  if (has_mpress) freed(true);  // the MPI alone may leave its sender waiting
  if (rank == 0) printf("ok\n");
  fflush(stdout);
  handled = 0;
  error_of([] { MPI_Finalize(); });
  CHECK(handled <= 1);
  int is_over = 0;
  MPI_Finalized(&is_over);
  return is_over ? 0 : 1;
}
