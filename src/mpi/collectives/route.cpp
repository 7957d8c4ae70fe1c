#include "mpi/collectives/route.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "coll/blocks/call_blocks.hpp"
#include "coll/blocks/contribution.hpp"
#include "coll/offered_call.hpp"
#include "coll/symmetric/joint_memory.hpp"
#include "core/hook_rules.hpp"
#include "core/stream_order.hpp"
#include "mpi/collectives/agreed.hpp"
#include "mpi/collectives/long_pairs.hpp"
#include "mpi/collectives/operand_blocks.hpp"
#include "mpi/collectives/operations.hpp"
#include "mpi/job/job.hpp"
#include "mpi/staging/bounce_buffer.hpp"

namespace mpress::engine {
namespace {

/// May encoding pairs pay? Members do not tell each other which codec a call asks for.
bool may_pay_pairs(const Job& job, const Team& team, const Operands& operands) {
  if (!operands.asked) return may_pay(job, team, spec_of(job.config, team));
  const Gains& gains = job.collectives.most;
  return team.hosts().count() > 1 ? gains.between : gains.within;
}

/// Is it a call at which members tell each other: 1, 2, 4, 8 ..., or a multiple of 1024?
bool tells_mode(std::uint64_t number) {
  constexpr std::uint64_t interval = 1024;
  return std::has_single_bit(number) || number % interval == 0;
}

/// Has this member had any, as of this call?
void note_devices(Job& job, const Operands& operands, CallModes::Mode& mode) {
  mode.has_had_device = mode.has_had_device || BounceBuffer::is_on_device(job, operands.send) ||
                        BounceBuffer::is_on_device(job, operands.receive);
}

}  // namespace

bool may_pay(const Job& job, const Team& team, const Spec& spec) {
  const Gains& gains = job.collectives.of(spec);
  return team.hosts().count() > 1 ? gains.between : gains.within;
}

Team& team_of(Job& job, const Candidate& candidate, Form form) {
  return *(form == Form::immediate ? job.teams.of(candidate.comm)
                                   : job.teams.of_blocking(candidate.comm));
}

bool may_decide_now(const Candidate& candidate, Team& team) {
  return candidate.is_decided_at_once && team.order().is_settled() && team.order().is_idle();
}

std::optional<Served> decide_now(Job& job, const Collective& call, const Operands& operands,
                                 Team& team) {
  const char* const why = team.is_ready() ? does_not_pay : team.why_not();
  if (!team.is_ready() || !may_pay_pairs(job, team, operands)) {
    job.record.count_left(call.op, why);
    return std::nullopt;
  }
  return Served{AlgorithmId::pairs, team.order().next_tag(), LongPairs::method(schedule_op(call))};
}

bool leave_if_brief(Job& job, const Collective& call, const Candidate& candidate) {
  constexpr unsigned few = 32;
  mpi::CommInfo& comm = *candidate.comm;
  if (!candidate.is_brief || comm.comm == MPI_COMM_WORLD || comm.attached()) return false;
  if (comm.short_sums.fetch_add(1, std::memory_order_relaxed) >= few) return false;
  job.record.count_left(call.op, "one of its communicator's first short sums");
  return true;
}

bool leave_if_short(Job& job, const Collective& call, const Operands& operands,
                    const Candidate& candidate, Team& team) {
  if (!candidate.is_short || candidate.may_compress || candidate.is_reproducible) return false;
  if (!team.order().is_settled() || !team.is_ready() || !team.order().is_idle()) return false;
  if (may_see_devices(job, team)) {
    CallModes::Mode& mode = team.modes().of(call.reduces, candidate.bytes);
    if (mode.has_devices || tells_mode(mode.calls + 1)) return false;
    ++mode.calls;
    note_devices(job, operands, mode);
  }
  job.record.count_left(call.op, why_raw(candidate.is_long_enough));
  return true;
}

Routing::~Routing() = default;

Routing::Routing(Job& job, const Collective& call, Form form, const Operands& operands,
                 const Candidate& candidate, Team& team)
    : job_(job),
      call_(call),
      operands_(operands),
      team_(team),
      turn_(team.order().draw()),
      form_(form),
      may_compress_(candidate.may_compress),
      may_be_on_devices_(candidate.may_be_on_devices),
      mode_(team.modes().of(call.reduces, candidate.bytes)),
      selection_(mode_.attempts) {
  AgreedCall& known = selection_.call = agreed_call(call, operands, {});
  known.form = form;
  known.bytes = candidate.bytes;
  known.longest = candidate.longest;
  known.is_long_enough = candidate.is_long_enough;
  known.is_short = candidate.is_short;
  known.is_reproducible = candidate.is_reproducible;
}

bool Routing::advance() {
  if (state_ == State::waiting) {
    if (!team_.order().is_turn(turn_)) return false;
    state_ = State::making;
  }
  if (state_ == State::making) {
    if (!team_.advance()) return false;
    consider();
  }
  while (state_ != State::decided) {
    if (state_ == State::beginning) {
      if (!begin()) return false;
      continue;
    }
    if (!agreement_->advance()) {
      // MPI proceeds meanwhile: others may need what it has to send before they come.
      int found = 0;
      if (!keeps_hook_rules) {
        mpi::calls().Iprobe(MPI_ANY_SOURCE, team_.first_block_tag(), comm_of(team_), &found,
                            MPI_STATUS_IGNORE);
      }
      return false;
    }
    if (state_ == State::asking) {
      hear();
    } else if (state_ == State::agreeing) {
      agree();
    } else if (agreement_->failed()) {
      decide(Server::failed);
    } else {
      accept();
    }
  }
  return true;
}

void Routing::pass() {
  if (std::shared_ptr<Operation> next = team_.order().pass()) job_.progress.add(std::move(next));
}

/// The position, in the list of links, of the one to the member of this host that is the hardest to
/// reach.
std::size_t Routing::slowest_link() const {
  const schedule::Hosts& hosts = team_.hosts();
  std::size_t slowest = 0;
  for (const int member : hosts.members(hosts.host(team_.rank()))) {
    if (member == team_.rank()) continue;
    const link::Kind nearest = job_.links.nearest(team_.world_rank(member));
    slowest = std::max(slowest, link::position(nearest));
  }
  return slowest;
}

/// All calls before it are decided, and so is the team.
void Routing::consider() {
  const bool is_asked = operands_.asked.has_value() && team_.is_ready();
  if (call_.reduces && team_.hints().has_different_codecs() && !is_asked) {
    failure_ = job_.hints_code;
    return decide(Server::failed);
  }
  if (!team_.is_ready()) {
    return leave_to_mpi(team_.why_not());
  }
  selection_.call.team = facts_of(job_, team_);
  spec_ = spec_of(job_.config, team_);
  // Pair by pair, each origin has its own.
  is_asked && !call_.has_own_counts ? ask() : go_on();
}

/// Specs of calls are told at each: members that differ have to find the same.
void Routing::ask() {
  spec_ = spec_of(job_, operands_, team_);
  const bool is_unclear = team_.hints().has_different_codecs() && !operands_.asked->spec;
  const std::uint64_t hash = operands_.asked->hash();
  const std::array told{Word{Combine::max, hash}, Word{Combine::max, ~hash},
                        Word{Combine::bit_or, spec_.codec != Codec::none ? 1u : 0u},
                        Word{Combine::bit_or, is_unclear ? 1u : 0u}};
  agreement_ = team_.agreements().combine(told);
  state_ = State::asking;
}

void Routing::hear() {
  if (agreement_->failed()) return decide(Server::failed);
  const auto& told = agreement_->result();
  const bool are_same = told[0] == ~told[1] && told[3] == 0;
  if (!are_same && call_.reduces) {
    failure_ = job_.hints_code;
    return decide(Server::failed);
  }
  // Blocks describe themselves, so each origin has its own.
  if (!are_same) spec_ = Spec{.codec = told[2] != 0 ? Codec::automatic : Codec::none};
  go_on();
}

/// It is known what all members ask for.
void Routing::go_on() {
  const bool pays = may_compress_ && (call_.has_own_counts ? may_pay_pairs(job_, team_, operands_)
                                                           : may_pay(job_, team_, spec_));
  selection_.call.codec = spec_.codec;
  selection_.call.encodes = (pays && !call_.has_own_counts) || selection_.call.is_reproducible;
  selection_.call.encodes_pairs = pays && call_.has_own_counts;
  const bool is_persistent = form_ == Form::persistent;
  const bool has_modes = may_be_on_devices_ && selection_.call.team.may_see_devices;
  if (!selection_.call.encodes && !has_modes && !(selection_.call.encodes_pairs && is_persistent)) {
    return choose();
  }
  const std::uint64_t made = is_persistent ? team_.order().next_persistent() : 0;
  if (is_persistent) served_.tag = CallOrder::persistent_tag(made);
  bool tells = false;
  // Also of what is served in any case: it travels by another algorithm between devices.
  if (has_modes) {
    // By which way devices reach each other members find out by trying.
    const bool may_change =
        !mode_.has_devices || std::ranges::any_of(mode_.attempts, &Attempts::has_failed);
    tells = may_change && (tells_mode(++mode_.calls) || is_persistent);
    if (!mode_.has_devices && !mode_.has_had_device) note_devices(job_, operands_, mode_);
    selection_.call.on_devices = mode_.has_devices;
  }
  // Members free persistent calls when they like.
  const bool may_share_tag = is_persistent && made >= CallOrder::persistent_tags;
  if (!tells && !may_share_tag) return choose();
  const bool is_taken = is_persistent && team_.order().is_taken(served_.tag);
  const std::array told{Word{Combine::bit_or, mode_.has_had_device ? 1u : 0u},
                        Word{Combine::bit_or, is_taken ? 1u : 0u},
                        Word{Combine::max, slowest_link()}};
  agreement_ = team_.agreements().combine(told);
  state_ = State::agreeing;
}

void Routing::agree() {
  if (agreement_->failed()) return decide(Server::failed);
  if (agreement_->result()[0] != 0) selection_.call.on_devices = mode_.has_devices = true;
  team_.modes().set_between_devices(link::kind_at(agreement_->result()[2]));
  selection_.call.team = facts_of(job_, team_);
  if (agreement_->result()[1] != 0) {
    return leave_to_mpi("there are too many persistent ones");
  }
  choose();
}

/// All is known that members have to know alike.
void Routing::choose() {
  selection_.begin();
  state_ = State::beginning;
}

/// What the program's stream holds, where the call has one, is done.
bool Routing::has_reached() const { return !operands_.order() || operands_.order()->is_reached(); }

/// Offers what members offer each other, and decides for anything else. False while that waits: for
/// the team's last kernel that waits for others, and for what the program's stream holds, where
/// the algorithm's work does not begin behind that by itself. Callers wait for that where MPI has a
/// part.
bool Routing::begin() {
  if (!selection_.is_offered()) {
    const bool is_mpis =
        selection_.chosen() == AlgorithmId::by_mpi || selection_.chosen() == AlgorithmId::pairs;
    if (!is_mpis && !has_reached()) return false;
    decide();
    return true;
  }
  const Algorithm& chosen = algorithm(selection_.chosen());
  if (chosen.has_kernels && JointMemories::are_busy(job_, team_)) return false;
  if (!offered_ && (chosen.has_kernels || has_reached())) {
    offered_ = chosen.offer(call_here(job_, operands_, team_, selection_.call));
    // A call whose members have counts of their own waits for it on the host.
    follows_stream_ = !call_.has_own_counts && offered_->follow(operands_.order());
  }
  if (!offered_ || !(follows_stream_ || has_reached())) return false;
  agreement_ = team_.agreements().gather(would_encode() ? OfferedCall::offer_to_encode()
                                                        : offered_->offer());
  state_ = State::offering;
  return true;
}

/// Would this member encode what it brings to a call that kernels could bring as it is?
bool Routing::would_encode() const {
  if (spec_.codec == Codec::none) return false;
  std::optional<Contribution> what = offered_->contribution(spec_of(job_, operands_, team_));
  if (!what) return false;
  team_.take_hints();
  // A broadcast is encoded segment by segment, by which its ratio is learned.
  if (!call_.reduces) what->data.bytes /= static_cast<std::size_t>(method(true).segments);
  return engine::would_encode(job_, call_, *what, team_, true);
}

/// By which blocks travel, of a call that mpress serves whole.
schedule::Method Routing::method(bool compresses) const {
  return method_of(job_, schedule_op(call_),
                   {selection_.call.bytes, compresses, mode_.has_devices, spec_}, team_);
}

void Routing::accept() {
  state_ = State::beginning;
  if (OfferedCall::is_to_be_encoded(agreement_->result())) {
    served_.encodes = true;
    selection_.encode();
  } else if (selection_.conclude(offered_->accept(agreement_->result()))) {
    return decide();
  }
  offered_.reset();
}

std::unique_ptr<CollectiveOperation> Routing::operation() {
  if (offered_) return std::move(offered_);
  CallHere here = call_here(job_, operands_, team_, selection_.call);
  return algorithm(served_.algorithm).make(here, served_);
}

void Routing::decide() {
  served_.algorithm = selection_.chosen();
  if (served_.algorithm == AlgorithmId::by_mpi) return leave_to_mpi(selection_.why_by_mpi());
  if (offered_) return decide(Server::mpress);
  if (form_ != Form::persistent) served_.tag = team_.order().next_tag();
  served_.is_blocking = form_ == Form::blocking;
  const bool is_by_pairs = served_.algorithm == AlgorithmId::pairs;
  served_.method = is_by_pairs || operands_.topology ? LongPairs::method(schedule_op(call_))
                                                     : method(selection_.call.encodes);
  decide(is_by_pairs ? Server::both : Server::mpress);
}

void Routing::leave_to_mpi(const char* why) {
  if (selection_.call.is_reproducible) tell_unserved(job_, operands_, why);
  job_.record.count_left(call_.op, why);
  decide(Server::mpi);
}

void Routing::decide(Server server) {
  server_ = server;
  state_ = State::decided;
}

}  // namespace mpress::engine
