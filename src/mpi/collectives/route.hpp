// Who serves a collective call: MPI, or mpress, or each a part. All members of a communicator
// answer alike, without asking at every call: by what the call is, by its number, by its signature,
// and by the communicator's mode for calls of such sizes. Never by where this rank's buffer lies.
// From that they choose an algorithm (coll/algorithm.hpp). Some are offered: of these members tell
// each other at each call whether they can.
//
// The mode is whether any member has buffers on devices. Members tell each other at calls 1, 2, 4,
// 8 ... of like size and then at every 1024th, each whether it has had any so far; and whenever a
// persistent call is made, which may wait. Within a mode any mix of buffers on hosts and devices is
// right; in the wrong one a call is slow, not wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coll/blocks/served.hpp"
#include "coll/methods.hpp"
#include "coll/selection.hpp"
#include "coll/team.hpp"
#include "config/config.hpp"
#include "core/operation.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/objects/comm_info.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class CollectiveOperation;
class Job;
class OfferedCall;

/// What all members know of a call, from its arguments and from MPI_Init.
struct Candidate {
  std::shared_ptr<mpi::CommInfo> comm = nullptr;  ///< null: MPI serves it, here and now
  bool may_compress = false;                      ///< it may pay, wherever the buffers lie
  bool may_be_on_devices = false;
  bool is_long_enough = false;   ///< for codecs; pair by pair, where members know no others' counts
  bool is_short = false;         ///< then by messages only where it is encoded
  bool is_brief = false;         ///< short, whatever members ask for
  bool is_reproducible = false;  ///< a reduction that mpress serves wherever it can
  bool is_decided_at_once = false;  ///< it takes no other rank, once the team is settled
  std::size_t bytes = 0;            ///< of a block, or of all of a broadcast; 0: no rank knows all
  std::size_t longest = 0;          ///< the same of the longest block
};

/// Why MPI serves a call that does not block, where no such call is mpress's.
inline constexpr char nothing_proceeds[] =
    "it does not block, and nothing lets mpress proceed meanwhile";

/// May kernels of several members meet in memory?
bool may_have_kernels(const Config& config);

/// Has this process any communicator whose reductions have the same bits in any order of the ranks?
bool may_be_reproducible(const Job& job);

/// Says once that a reduction does not have what was asked for; the first member does.
void tell_unserved(const Job& job, const Operands& operands, const char* why);

/// Says once, by the first rank, why MPI serves a call that does not block, and that asks for
/// mpress.
void tell_of_immediate(const Job& job);

/// Candidates by size alone. `bytes`: of a block; `all_bytes`: of a reduction, of a rank's whole
/// contribution. `is_asked`: for by a call of mpress's own interface.
Candidate candidate_by_size(const Job& job, const Collective& call, Form form, bool is_asked,
                            std::size_t bytes, std::size_t all_bytes);

/// By a codec, and by who shares a host, as all members have agreed.
bool may_pay(const Job& job, const Team& team, const Spec& spec);

/// Why MPI serves all such calls, where neither codecs pay nor links between GPUs serve any.
const char* why_never(const Job& job, const Collective& call);

/// A call as a candidate. One that MPI serves is counted with the reason, and the candidate has no
/// communicator. Local: no other rank is asked, and nothing begins.
Candidate candidate_or_leave(Job& job, const Collective& call, Form form, const Operands& operands);

/// The team of such a call's communicator, whose making begins where it has none. A call that
/// may wait makes it by calls that do.
Team& team_of(Job& job, const Candidate& candidate, Form form);

/// Of a call that is decided at once, where that takes no turn either: how its long pairs travel;
/// empty, and counted, where MPI serves all of it. Only if may_decide_now().
bool may_decide_now(const Candidate& candidate, Team& team);
std::optional<Served> decide_now(Job& job, const Collective& call, const Operands& operands,
                                 Team& team);

/// Leaves the first short sums on a communicator that has no team to MPI, and counts them, as all
/// members do; returns whether it did. To make a team takes a communicator of MPI's, of which there
/// are some two thousand: a program may have as many for a few sums each.
bool leave_if_brief(Job& job, const Collective& call, const Candidate& candidate);

/// Leaves a short call to MPI, and counts it, where all members know without taking a turn that MPI
/// serves it; returns whether it did.
bool leave_if_short(Job& job, const Collective& call, const Operands& operands,
                    const Candidate& candidate, Team& team);

/// Deciding who serves a call, after all calls before it. It takes other ranks where they tell each
/// other, and while the team is being made.
class Routing {
 public:
  enum class Server : unsigned char {
    mpress,
    mpi,
    both,    ///< mpress the long pairs (coll/blocks/long_pairs), MPI the rest
    failed,  ///< nobody: see failure()
  };

  /// `operands` outlives it.
  Routing(Job& job, const Collective& call, Form form, const Operands& operands,
          const Candidate& candidate, Team& team);
  ~Routing();

  /// Never waits. Returns whether it is decided.
  bool advance();

  /// Is what the program's streams hold, where the call has a place behind them, done?
  bool has_reached() const;

  // Then:
  Server server() const { return server_; }
  /// Why nobody can, as an MPI error code.
  int failure() const { return failure_; }
  /// Where there are blocks.
  const Served& served() const { return served_; }
  /// What serves the call, where mpress does: it has been made in deciding, or is made now. What
  /// this was made of outlives it.
  std::unique_ptr<CollectiveOperation> operation();
  /// The next call may be decided. What MPI serves on the private communicator has been begun: MPI
  /// may let others proceed in that call.
  void pass();

  /// Puts `call`, of which this decides, in line where it waits for its turn: the call before it
  /// has it proceed then. False where it is its turn, or was.
  bool stand_in_line(std::shared_ptr<Operation> call) {
    return state_ == State::waiting && team_.order().stand_in_line(turn_, std::move(call));
  }

 private:
  enum class State : unsigned char {
    waiting,
    making,
    asking,  ///< members of a call of mpress's own interface, what they ask for
    agreeing,
    beginning,  ///< what the chosen algorithm needs is to be done first
    offering,   ///< members tell each other whether they can
    decided
  };

  std::size_t slowest_link() const;
  void consider();
  void ask();
  void hear();
  void go_on();
  void agree();
  void choose();
  bool begin();
  bool would_encode() const;
  schedule::Method method(bool compresses) const;
  void accept();
  void decide();
  void leave_to_mpi(const char* why);
  void decide(Server server);

  Job& job_;
  const Collective& call_;
  const Operands& operands_;
  Team& team_;
  const std::uint64_t turn_;
  const Form form_;
  const bool may_compress_;
  const bool may_be_on_devices_;
  CallModes::Mode& mode_;
  Selection selection_;
  Spec spec_;  ///< of all members; where theirs differ, `auto`
  State state_ = State::waiting;
  Server server_ = Server::mpi;
  int failure_ = MPI_ERR_OTHER;  ///< a member has ended
  Served served_;
  std::shared_ptr<Agreement> agreement_;
  std::unique_ptr<OfferedCall> offered_;  ///< or accepted
  bool follows_stream_ = false;           ///< of what is offered: by itself
};

}  // namespace mpress::engine
