// What is to happen: a pure function of the settings, the same on every rank.
//
// Each thread works off a stream of rounds of its own. A round is a list of messages, the calls
// that send and receive them, and steps that say in which order. Steps have an order over all
// ranks, and a rank does its part of each in that order. Whatever blocks at a step depends only
// on what some rank does at this step or before: hence a round ends, by induction over its steps,
// under every MPI that is correct, however little it buffers.
//
// Streams know nothing of each other, yet one may take what another was sent where threads share a
// receiver. So a stream asks for such messages only when all of its own are surely on their way,
// waits for their sends only when it has asked for as many, and keeps what they send until they
// are over: when its round ends, the message may still wait for another stream's receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout.hpp"
#include "payload.hpp"

namespace stress {

/// Groups of features that --only chooses from; `basics` are always there.
enum class Family : std::uint8_t {
  basics,
  modes,
  persistent,
  exchange,
  probe,
  wildcard,
  datatypes,
  cancel,
  truncate,
  communicators,
  null,
  large,
  shared,
  collectives,
  count_
};
const char* name_of(Family family);

/// A bit for each family of calls. Open MPI (4.1 and 5.0) by itself writes beyond the buffer of a
/// receive that is too small, so what is asked of that is left out there unless it is asked for.
#if defined(OPEN_MPI)
constexpr std::uint32_t default_families = ~(1u << static_cast<int>(Family::truncate));
#else
constexpr std::uint32_t default_families = ~0u;
#endif

struct Settings {
  std::uint64_t seed = 1;
  int ranks = 1;
  int threads = 1;
  std::size_t max_bytes = 1 << 20;
  std::uint32_t families = default_families;
  /// Two calls in place of MPI_Isendrecv and MPI_Isendrecv_replace: MPICH 5.0 by itself gives the
  /// one no status and sends garbage with the other.
  bool careful = MPI_VERSION < 4;
  /// Some buffers lie on simulated devices.
  bool devices = false;
  /// And in most rounds mpress gets no more memory of these, or pinned memory.
  bool scarce = false;

  bool has(Family family) const { return families >> static_cast<int>(family) & 1; }
};

constexpr int null_rank = -1;  ///< MPI_PROC_NULL

/// A communicator of a stream. Ranks are those of MPI_COMM_WORLD everywhere in the plan.
struct Comm {
  enum class Kind : std::uint8_t { world, root, dup, split, cart, merged, inter };
  Kind kind = Kind::world;
  std::vector<int> group;   ///< by rank in the communicator
  std::vector<int> remote;  ///< of an inter-communicator, the other side
  int creation = -1;        ///< communicators of one creation come from one call
  std::uint64_t seed = 0;

  bool shared() const { return kind == Kind::world; }  ///< by all threads
  bool inter() const { return !remote.empty(); }
  /// Its members give it hints, each its own: then it has no reductions.
  bool hinted() const { return creation > 1 && !inter() && mix(seed, 1) % 2 == 0; }
  bool has(int rank) const;
  /// How `rank` is called by those who talk to it.
  int rank_of(int rank) const;
  std::vector<int> members() const;
};
const char* name_of(Comm::Kind kind);

enum class Kind : std::uint8_t {
  send,
  ssend,
  rsend,
  bsend,
  isend,
  issend,
  irsend,
  ibsend,
  send_init,
  ssend_init,
  rsend_init,
  bsend_init,
  sendrecv,
  sendrecv_replace,
  isendrecv,
  isendrecv_replace,
  recv,
  irecv,
  recv_init,
  mrecv,
  imrecv,
  improbe_mrecv,
  improbe_imrecv,
  probe_recv,
  probe_irecv,
  iprobe_recv,
  cancel_race,  ///< a receive that is cancelled at once, and posted again where that succeeded
  count_
};

struct Traits {
  const char* name;
  bool blocks = false;      ///< returns only when the other side has been called
  bool persistent = false;  ///< Start
  bool ready = false;       ///< needs a receive that is surely posted
  bool local = false;       ///< a send that completes whatever the other side does
  bool requests = false;    ///< leaves a request
  bool posts = false;       ///< a receive that is posted when the call returns
};
const Traits& traits(Kind kind);

/// One side of a message.
struct Side {
  LayoutSpec layout;
  bool packed = false;     ///< through MPI_Pack or MPI_Unpack, as MPI_PACKED
  bool free_type = false;  ///< the type is freed while the operation is under way
};

struct Message {
  int comm = 0;
  int source = 0, destination = 0;
  int tag = 0;
  Element element = Element::f32;
  Data data = Data::smooth;
  std::size_t elements = 0;
  std::uint64_t key = 0;
  int pool = -1;
  int send_call = -1, receive_call = -1;  ///< -1: the other side is MPI_PROC_NULL

  std::size_t bytes() const { return elements * element_bytes(element); }
};

/// A call that sends, receives or both.
struct Call {
  int rank = 0;
  Kind kind = Kind::send;
  int send = -1, receive = -1;  ///< messages
  Side out, in;
  bool large = false;          ///< the form with a large count
  bool any_tag = false;        ///< the receive is for any tag
  int channel = -1;            ///< the first call of its persistent request
  int previous = -1;           ///< the one before in the channel
  bool truncates = false;      ///< the message does not fit
  bool lonely = false;         ///< a receive that nobody sends to, to be cancelled
  bool overwrite_sent = true;  ///< the buffer is changed as soon as the send is over
};

/// Messages that may be received in an order that MPI does not fix: receives from any source.
struct Pool {
  int comm = 0;
  int receiver = 0;
  int tag = 0;           ///< where not any_tag
  bool any_tag = false;  ///< receives are for any tag too
  bool shared = false;   ///< the threads of a rank take each other's messages
  Element element = Element::f32;
  std::size_t most_elements = 0;
  std::vector<int> messages;
};

/// A collective call of all members, on a communicator that is its stream's alone.
struct Collective {
  enum class Kind : std::uint8_t {
    bcast,
    allreduce,
    alltoallv,
    neighbours,
    ibcast,
    iallreduce,
    count_
  };
  Kind kind = Kind::bcast;
  int comm = 0;
  int root = 0;  ///< rank in the communicator
  Element element = Element::f32;
  Data data = Data::smooth;
  std::size_t elements = 0;  ///< at least as many as a rank brings, or gets
  std::uint64_t key = 0;

  bool is_immediate() const { return kind == Kind::ibcast || kind == Kind::iallreduce; }
  bool reduces() const { return kind == Kind::allreduce || kind == Kind::iallreduce; }
};

enum class Method : std::uint8_t {
  wait,
  test,
  waitall,
  testall,
  waitany,
  testany,
  waitsome,
  testsome,
  get_status,
  get_status_any,
  get_status_all,
  get_status_some,
  free,
  count_
};
const char* name_of(Method method);

/// What one rank does at a step.
struct Action {
  enum class Kind : std::uint8_t {
    start,
    complete,
    peek,
    barrier,
    free_comm,
    collective,
    end_collectives
  };
  Kind kind = Kind::start;
  int rank = 0;
  std::vector<int> calls;        ///< to start (several: MPI_Startall), or to complete
  std::vector<int> extras;       ///< active requests that may complete along with them
  std::vector<int> inactive;     ///< persistent ones that are listed too
  std::vector<int> collectives;  ///< the one to make, or those to end
  Method method = Method::wait;
  bool ignore_status = false;
  int comm = 0;
  int message = -1;  ///< peek: what is to be seen; -1: some message of the pool
  int pool = -1;
  bool blocking = false;  ///< peek: MPI_Probe
  bool any_tag = false;
  std::uint64_t seed = 0;
};

struct Round {
  int stream = 0;
  int number = 0;
  std::vector<Comm> comms;
  std::vector<Message> messages;
  std::vector<Call> calls;
  std::vector<Pool> pools;
  std::vector<Collective> collectives;
  std::vector<std::vector<Action>> steps;
  std::vector<int> freed;  ///< communicators that this round ended
};

/// Rounds that share their communicators.
constexpr int epoch_rounds = 6;

std::vector<Comm> plan_comms(const Settings& settings, int stream, int epoch);

Round plan_round(const Settings& settings, int stream, int number);

std::string text_of(const Round& round, int call);
std::string text_of(const Collective& call);
std::string text_of(const Round& round, const Action& action);
void print(const Round& round);

// The two halves of plan_round.
void plan_messages(const Settings& settings, Random& random, Round& round);
void plan_steps(const Settings& settings, Random& random, Round& round);

/// Messages between threads that share a receiver carry all that there is to know in their keys.
constexpr int shared_tag = 9000;
constexpr int tags_per_stream = 100;
constexpr int lonely_tag = 90;
std::uint64_t shared_key(const Settings& settings, int stream, int round, int serial);
Message shared_message(std::uint64_t key, std::size_t max_bytes);

}  // namespace stress
