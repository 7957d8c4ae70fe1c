// Does one rank's part of a round, and checks everything that MPI promises about it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "communicators.hpp"
#include "memory.hpp"
#include "mpi_calls.hpp"
#include "plan.hpp"

namespace stress {

/// Messages that any thread of this rank may receive: in the end all have come, each once.
class Ledger {
 public:
  void expect(std::uint64_t key);
  void received(std::uint64_t key);
  void check();

 private:
  std::mutex mutex_;
  std::multiset<std::uint64_t> expected_, received_;
};

class Execution {
 public:
  Execution(const Settings& settings, int rank, const Round& round, Communicators& comms,
            Ledger& ledger);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  ~Execution();

  void run();

 private:
  /// A call's buffers and request; calls of one persistent request share them.
  struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;
    std::unique_ptr<Layout> out, in;
    Memory sent, received;  ///< where a call replaces, `received` is both
    Memory packed_out, packed_in;
    MPI_Datatype out_type = MPI_DATATYPE_NULL, in_type = MPI_DATATYPE_NULL;
  };
  /// What became of a call.
  struct Outcome {
    bool done = false;
    bool released = false;  ///< its request was freed while active
    int code = MPI_SUCCESS;
    MPI_Status status;
    std::vector<std::byte> memory;  ///< of a receive from any source, checked in the end
  };
  /// One side's arguments as MPI gets them.
  struct Arguments {
    void* buffer;
    int count;
    MPI_Datatype type;
    int peer;
    int tag;
    MPI_Comm comm;
  };
  struct Seen {
    int pool;
    std::size_t receives;  ///< of the pool before
    int source;
    int tag;
    MPI_Count bytes;
  };
  class Completion;
  /// A collective call.
  struct Running {
    Memory in, out;
    std::unique_ptr<Layout> layout;  ///< of `out`; null: without gaps
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> expected;  ///< in `out`
  };

  const Call& call(int c) const { return round_.calls[static_cast<std::size_t>(c)]; }
  const Message& message(int m) const { return round_.messages[static_cast<std::size_t>(m)]; }
  const Pool& pool(int p) const { return round_.pools[static_cast<std::size_t>(p)]; }
  const Comm& comm(int c) const { return round_.comms[static_cast<std::size_t>(c)]; }
  Outcome& outcome(int c) { return outcomes_[static_cast<std::size_t>(c)]; }
  /// The call whose buffer and request `c` uses: the first of a persistent request, or itself.
  int owner_of(int c) const;
  Operation& operation(int c);
  int pool_of(int c) const { return call(c).receive < 0 ? -1 : message(call(c).receive).pool; }
  static bool replaces(const Call& call);

  void act(const Action& action);
  void start(const Action& action);
  void start_persistent(const Action& action);
  void make_request(int c);
  void start_send(int c);
  void start_receive(int c);
  void start_exchange(int c);
  void start_two(int c, const Arguments& s, const Arguments& r);
  void receive_probed(int c);
  void race(int c);
  void peek(const Action& action);
  void complete(const Action& action);

  // collectives.cpp
  void collective(const Action& action);
  void broadcast(const Collective& call, Running& running);
  void reduce(const Collective& call, Running& running);
  void exchange(const Collective& call, Running& running);
  void exchange_with_neighbours(const Collective& call, Running& running);
  void end_collectives(const Action& action);
  void check_collective(int number);

  void place_buffers();
  void prepare(int c);
  Arguments send_arguments(int c);
  Arguments receive_arguments(int c);
  void used(int c, const Arguments& arguments, bool out);

  /// A call is over; `status` is null where it was ignored.
  void finish(int c, int code, const MPI_Status* status);
  void check_sent(int c, bool overwrite);
  void check_received(int c, const Message& m, int code, const MPI_Status* status,
                      std::vector<std::byte>& memory);
  void check_status(int c, const Message& m, const MPI_Status& status);
  void check_truncated(int c, int code, std::vector<std::byte>& memory);
  void check_lonely(int c, const MPI_Status* status);
  void check_shared(int c);
  void compare(int c, const Message* m, const std::vector<std::byte>& memory, const char* what);
  std::vector<std::byte> image(int c, const Message* m);
  std::string origin_of(const std::byte* data, std::size_t bytes) const;
  void await_freed(int c);
  void check_pool(int p);
  void check_late();
  int source_of(int c, const MPI_Status& status) const;

  const Settings& settings_;
  const int rank_;
  const Round& round_;
  Communicators& comms_;
  Ledger& ledger_;
  std::vector<Operation> operations_;
  std::vector<Outcome> outcomes_;
  std::vector<Running> running_;
  std::vector<std::vector<int>> pool_receives_;  ///< in the order they were posted
  std::vector<Seen> seen_;
};

/// Fills error fields with what no MPI writes, so that statuses that are left alone can be told.
constexpr int untouched_error = 123456;

bool isendrecv_tells_status();

/// Calls that succeed leave the error field alone; some MPIs set it to MPI_SUCCESS.
void expect_no_error(const MPI_Status& status, const char* what);

}  // namespace stress
