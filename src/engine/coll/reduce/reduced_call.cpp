#include "engine/coll/reduce/reduced_call.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coll/pieces.hpp"
#include "core/staging.hpp"
#include "engine/coll/agreed.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"
#include "policy/methods.hpp"
#include "schedule/algorithms.hpp"
#include "schedule/moves/pairwise.hpp"
#include "schedule/sums/host_sums.hpp"

namespace mpress::engine {

ReducedCall::ReducedCall(Job& job, const Collective& call, const Operands& operands,
                         mpi::CommInfo& comm, Team& team, const Served& served)
    : job_(job),
      call_(call),
      operands_(operands),
      comm_(comm),
      team_(team),
      served_(served),
      tag_(team, served.tag),
      goal_(call.family == Family::allreduce ? Goal::all
            : call.family == Family::reduce  ? Goal::root
                                             : Goal::each),
      reduction_(*reduction_of(operands)),
      is_reproducible_(team.hints().is_reproducible() && reduction_.how != codec::Combine::prod),
      spec_(spec_for(reduction_, spec_of(job, operands, team), is_reproducible_)),
      begins_(pieces_of(agreed_call(call, operands, facts_of(job, team)), is_likely_joint())),
      range_(job) {}

/// Sums of szp that one kernel a member makes overlap; as blocks they hardly do. All members find
/// the same.
bool ReducedCall::is_likely_joint() const {
  return served_.is_blocking && spec_.codec == Codec::szp &&
         reduction_.how == codec::Combine::sum && team_.hosts().count() == 1 &&
         have_joint_memory() && team_.facts().is_true_for_any(Fact::may_see_gpus) &&
         may_have_kernels(job_.config);
}

void ReducedCall::start(FloatModes modes) {
  modes_ = modes;
  code_ = MPI_SUCCESS;
  phase_ = Phase::waiting;
  pass_on_hints(comm_, team_);
  begin();
}

/// Unless another call has its tag.
void ReducedCall::begin() {
  if (!tag_.take()) return;
  agreed_ = {};
  agreed_.coding = Coding{.spec = spec_, .is_decided = served_.encodes};
  agreed_.loss = {spec_.codec == Codec::zfp};
  errors_ = {};
  agreed_.coding.largest_error = &errors_.brought;
  is_joint_ = has_blind_results_ = false;
  joint_.reset();
  range_.forget();
  note(open());
  if (spec_.codec == Codec::szp) {
    may_be_blind() ? begin_exchange() : begin_measuring();
  } else {
    begin_contributions();
  }
}

/// Finds where the input lies.
int ReducedCall::open() {
  input_ = static_cast<const std::byte*>(reduction_.input);
  home_ = gpu::host;
  const auto type = mpi::type_info(reduction_.mpi_type());
  if (!type) return MPI_ERR_TYPE;
  if (reduction_.count == 0) return MPI_SUCCESS;
  const Location place = locate(job_, input_, *type);
  home_ = place.device;
  if (home_ == gpu::host) return place.is_readable ? MPI_SUCCESS : job_.device_code;
  if (is_aligned(input_)) return MPI_SUCCESS;
  memory::Buffer copy = take(bytes());
  return copy ? use_copy(std::move(copy)) : leave_device();
}

/// The input is a copy from now on.
int ReducedCall::use_copy(memory::Buffer copy) {
  const auto count = static_cast<MPI_Count>(reduction_.count);
  const Part from{const_cast<std::byte*>(input_), count, reduction_.mpi_type(), bytes()};
  const int code = copy_part(job_, from, {copy.data(), count, reduction_.mpi_type(), bytes()});
  copy_ = std::move(copy);
  input_ = copy_.data();
  return code;
}

/// The device has no memory left: this rank combines on the host, as one does whose buffers lie
/// there.
int ReducedCall::leave_device() {
  memory::Buffer copy = job_.pool.take(bytes());
  if (!copy) return job_.code_of(short_of_memory(job_, gpu::host));
  home_ = gpu::host;
  return use_copy(std::move(copy));
}

/// Of the device that the input lies on, or of the host.
memory::Buffer ReducedCall::take(std::size_t bytes) {
  return home_ == gpu::host ? job_.pool.take(bytes) : job_.devices.take(home_, bytes);
}

bool ReducedCall::is_aligned(const void* data) const {
  return reinterpret_cast<std::uintptr_t>(data) % width() == 0;
}

std::unique_ptr<Movement> ReducedCall::movement(bool shares, schedule::Op op, const Operand& send,
                                                const Operand& receive, schedule::Schedule schedule,
                                                const Coding* coding, BlockMap::Place place) const {
  Operands operands;
  operands.comm = comm_of(team_);
  operands.root = operands_.root;
  operands.send = send;
  operands.receive = receive;
  const Movement::Of of{job_, called(), call_.family, team_, tag_.of_blocks(), code_, coding};
  auto made =
      std::make_unique<Movement>(of, op, shares, operands, std::move(schedule), std::move(place));
  made->runner().drive(served_.is_blocking);
  made->runner().await(is_awaited_);
  return made;
}

/// Is the movement over? Then what went wrong is noted.
bool ReducedCall::has_moved() {
  if (!movement_->runner().advance()) return false;
  note(movement_->runner().code());
  return true;
}

bool ReducedCall::advance() {
  if (phase_ == Phase::waiting) begin();
  if (phase_ == Phase::measuring) {
    if (!range_.advance()) return false;
    begin_exchange();
  }
  if (phase_ == Phase::exchanging) {
    if (!has_moved()) return ends_for_failure();
    conclude_exchange();
    begin_after_exchange();
  }
  if (phase_ == Phase::adding_jointly) {
    if (!joint_->advance()) return false;
    end_jointly();
  }
  if (phase_ == Phase::contributing) {
    const bool has_contributed = advance_contributions();
    if (!has_contributed && !may_overlap(is_by_host() ? pieces_.passed_on() : pieces_.all()))
      return false;
    is_by_host() ? begin_passing_on() : begin_combining();
  }
  if (phase_ == Phase::passing_on) {
    if (!has_passed_on_ && !pass_on()) return false;
    if (!advance_contributions() && !may_combine()) return false;
    begin_combining();
  }
  if (phase_ == Phase::combining) {
    if (!pieces_.own().sum() && !pieces_.own().advance()) return false;
    note(pieces_.own().code());
    begin_sharing();
  }
  if (phase_ == Phase::sharing) {
    const bool has_contributed = advance_contributions();
    const bool has_sum = !pieces_.own().sum() || pieces_.own().advance();
    const bool is_shared = !movement_ || has_shared(movement_->runner());
    const bool has_own = !own_ || (has_sum && own_->advance());
    if (!has_contributed || !has_sum || !is_shared || !has_own) return false;
    note(pieces_.own().code());
    finish();
  }
  if (phase_ == Phase::telling && movement_->runner().advance()) {
    agreed_.loss.measured = joined_error();
    end();
  }
  return phase_ == Phase::over;
}

/// True once none is under way, also of what hosts have combined.
bool ReducedCall::advance_contributions() {
  bool is_over = true;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.all()) {
    if (piece->sum() && piece->owner() != team_.rank()) is_over = piece->advance() && is_over;
    note(piece->code());
  }
  for (std::unique_ptr<Movement>* movement : {&contributions_, &passing_on_}) {
    if (!*movement) continue;
    if (!(*movement)->runner().advance()) {
      is_over = false;
      continue;
    }
    note((*movement)->runner().code());
    movement->reset();
  }
  return is_over;
}

/// Payloads are added as they come, once it is known who brings some. MPI has matched those, so no
/// block of what follows is taken for a contribution. A sum of one chunk may be sent as a frame,
/// for which it has to be there.
bool ReducedCall::may_overlap(std::span<const std::unique_ptr<PieceSum>> pieces) const {
  if (code_ != MPI_SUCCESS) return false;
  const bool are_apt = std::ranges::all_of(pieces, [](const std::unique_ptr<PieceSum>& piece) {
    return piece->has_payloads() && piece->cut().chunks() > 1;
  });
  const auto are_coming = [](const std::unique_ptr<Movement>& movement) {
    return !movement ||
           (movement->runner().code() == MPI_SUCCESS && movement->runner().is_all_coming());
  };
  return are_apt && are_coming(contributions_) && are_coming(passing_on_);
}

/// In place, MPI could write a header of the results where what this rank brings has still to be
/// encoded, or added to others': in memory of the host, or of devices, if it takes that.
bool ReducedCall::may_combine() const {
  const bool may_be_written = job_.gpu_aware || home_ == gpu::host;
  return !(reduction_.is_in_place && may_be_written) && may_overlap(pieces_.all().first(1));
}

bool ReducedCall::needs_host() const {
  const auto needs = [](const std::unique_ptr<Movement>& movement) {
    return movement && movement->runner().needs_host();
  };
  return needs(movement_) || needs(contributions_) || needs(passing_on_);
}

void ReducedCall::await(bool is_awaited) {
  is_awaited_ = is_awaited;
  for (const auto* movement : {&movement_, &contributions_, &passing_on_}) {
    if (*movement) (*movement)->runner().await(is_awaited);
  }
}

bool ReducedCall::wait_in_mpi() {
  const bool works_here = phase_ == Phase::waiting || phase_ == Phase::measuring ||
                          phase_ == Phase::adding_jointly || phase_ == Phase::combining ||
                          (phase_ == Phase::passing_on && !has_passed_on_) || agreed_.adds_quanta ||
                          has_blind_results_;
  const std::unique_ptr<Movement>& moving = contributions_ ? contributions_
                                            : passing_on_  ? passing_on_
                                                           : movement_;
  return moving && !works_here && moving->runner().wait_in_mpi();
}

/// The own piece is decoded while those of others come: each has a place of its own.
bool ReducedCall::has_shared(Runner& runner) {
  const bool has_moved = runner.advance();
  return runner.advance_own() && has_moved;
}

/// And gives them memory that what others bring comes to.
void ReducedCall::make_pieces() {
  const auto make = [&] {
    const bool adds_quanta = agreed_.adds_quanta && code_ == MPI_SUCCESS;
    pieces_.make({job_, reduction_, agreed_.coding, modes_, adds_quanta, is_reproducible_, home_,
                  team_.rank()},
                 is_by_host() ? &team_.hosts() : nullptr, input_, begins_);
    return pieces_.room() > 0 ? take(static_cast<std::size_t>(pieces_.room()) * width())
                              : memory::Buffer{};
  };
  memory::Buffer memory = make();
  if (!memory && pieces_.room() > 0 && home_ != gpu::host) {
    note(leave_device());
    memory = make();
  }
  if (pieces_.room() == 0) return;
  if (!memory) note(job_.code_of(short_of_memory(job_, home_)));
  pieces_.settle(std::move(memory), width());
}

/// A movement of blocks of an all-to-all, which come to the memory of the pieces.
std::unique_ptr<Movement> ReducedCall::contribution(const Operand& send,
                                                    schedule::Schedule schedule) const {
  return movement(agreed_.adds_quanta, schedule::Op::alltoall, send,
                  pieces_.incoming(reduction_.mpi_type()), std::move(schedule), &agreed_.coding,
                  [this](schedule::Block block) { return pieces_.place_of(block); });
}

void ReducedCall::begin_contributions() {
  const int me = team_.rank();
  const int ranks = team_.size();
  const schedule::Hosts& hosts = team_.hosts();
  phase_ = Phase::contributing;
  movement_.reset();
  has_passed_on_ = false;
  counts_.clear();
  for (int rank = 0; rank < ranks; ++rank) counts_.push_back(elements_of(rank));
  places_.assign(begins_.begin(), begins_.end() - 1);
  make_pieces();
  const schedule::Task task{schedule::Op::alltoall, ranks};
  const int window = std::min(policy::most_at_once, ranks - 1);
  const Operand send{input_, {ranks, counts_.data(), places_.data(), reduction_.mpi_type()}, {}};
  contributions_ =
      contribution(send, is_by_host() ? schedule::host_sums_within(task, me, hosts, window)
                                      : schedule::scattered_alltoall(task, me, window));
  if (code_ != MPI_SUCCESS) return;
  const std::span<const int> near = hosts.members(hosts.host(me));
  for (const std::unique_ptr<PieceSum>& piece : pieces_.all()) {
    piece->expect(contributions_->runner().shared(), is_by_host() ? near : piece->sources(), ranks);
  }
  contributions_->runner().advance();  // others wait for what it encodes
}

/// Begins to combine what this host's ranks bring to pieces of others.
void ReducedCall::begin_passing_on() {
  phase_ = Phase::passing_on;
  on_counts_.assign(static_cast<std::size_t>(team_.size()), 0);
  on_places_.assign(static_cast<std::size_t>(team_.size()), 0);
  std::int64_t elements = 0;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const auto owner = static_cast<std::size_t>(piece->owner());
    on_counts_[owner] = piece->count();
    if (piece->has_payloads()) continue;
    on_places_[owner] = elements;
    elements += piece->stride();
  }
  if (elements > 0) {
    combined_ = take(static_cast<std::size_t>(elements) * width());
    if (!combined_) note(job_.code_of(short_of_memory(job_, home_)));
  }
  if (code_ != MPI_SUCCESS) return;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const auto first =
        static_cast<std::size_t>(on_places_[static_cast<std::size_t>(piece->owner())]);
    if (piece->has_payloads()) {
      piece->add({}, nullptr);
    } else {
      piece->combine(combined_.data() + first * width());
    }
    note(piece->code());
  }
}

/// Once elements are combined, they travel on; sums of payloads as they are made. True once that
/// has begun.
bool ReducedCall::pass_on() {
  bool are_combined = true;
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    are_combined = (piece->has_payloads() || piece->advance()) && are_combined;
    note(piece->code());
  }
  if (!are_combined) return false;
  const int me = team_.rank();
  const int ranks = team_.size();
  const schedule::Hosts& hosts = team_.hosts();
  const bool is_alone = hosts.members_count(hosts.host(me)) == 1;
  const MPI_Datatype type = reduction_.mpi_type();
  const Operand send =
      is_alone ? Operand{input_, {ranks, counts_.data(), places_.data(), type}, {}}
               : Operand{combined_.data(), {ranks, on_counts_.data(), on_places_.data(), type}, {}};
  const schedule::Task task{schedule::Op::alltoall, ranks};
  const int window = std::min(policy::most_at_once, ranks - 1);
  agreed_.coding.largest_error = &errors_.passed_on;
  passing_on_ = contribution(send, schedule::host_sums_between(task, me, hosts, window));
  has_passed_on_ = true;
  if (code_ != MPI_SUCCESS) return true;
  SharedBlocks& shared = passing_on_->runner().shared();
  for (const std::unique_ptr<PieceSum>& piece : pieces_.passed_on()) {
    const auto block = static_cast<schedule::Block>(me) * static_cast<schedule::Block>(ranks) +
                       static_cast<schedule::Block>(piece->owner());
    if (piece->sum()) shared.provide(block, piece->sum(), false);
  }
  std::vector<int> far;
  std::ranges::copy_if(pieces_.own().sources(), std::back_inserter(far),
                       [&](int source) { return !team_.share_host(me, source); });
  pieces_.own().expect(shared, far, ranks);
  return true;
}

/// Where the program has its results of the own piece, if it wants any.
Part ReducedCall::own_results() const {
  const auto bytes = static_cast<std::size_t>(own_elements()) * width();
  const bool is_wanted = bytes > 0 && (goal_ != Goal::root || is_at_root());
  const std::int64_t first =
      goal_ == Goal::each ? 0 : begins_[static_cast<std::size_t>(team_.rank())];
  std::byte* const data =
      is_wanted ? results() + static_cast<std::size_t>(first) * width() : nullptr;
  return {data, static_cast<MPI_Count>(own_elements()), reduction_.mpi_type(), bytes};
}

/// Finds where the results of the own piece go, if they are wanted here, or passed on as elements:
/// where the program has them, if that is where they are made.
void ReducedCall::begin_combining() {
  phase_ = Phase::combining;
  if (goal_ != Goal::each) {
    const schedule::Task task{schedule_op(call_), team_.size(), operands_.root};
    sharing_ = schedule::make(served_.method, task, team_.rank(), team_.hosts());
  }
  result_ = nullptr;
  decoded_ = nullptr;
  if (code_ != MPI_SUCCESS || own_elements() == 0) return;
  const Part wanted = own_results();
  const auto type = mpi::type_info(wanted.type);
  const bool is_overlapped = goal_ == Goal::each && reduction_.is_in_place;
  if (wanted.data && type && !is_overlapped && is_aligned(wanted.data) &&
      locate(job_, wanted.data, *type).device == home_) {
    result_ = static_cast<std::byte*>(wanted.data);
  } else if (wanted.data || !pieces_.own().has_payloads()) {
    aside_ = take(wanted.bytes);
    result_ = aside_.data();
    if (!aside_) note(job_.code_of(short_of_memory(job_, home_)));
  }
  if (code_ != MPI_SUCCESS) return;
  if (pieces_.own().has_payloads()) {
    decoded_ = result_ != pieces_.own().brings() ? result_ : nullptr;
    pieces_.own().add(staging_of_sum(pieces_.own().cut()), decoded_);
  } else {
    pieces_.own().combine(result_);
  }
}

/// In slots of its readers, where one link by which kernels write reaches them all in one round.
OpaqueBlock::StagingSlots ReducedCall::staging_of_sum(const Chunking& cut) const {
  std::vector<int> readers;
  int round = -1;
  for (const schedule::Transfer& transfer : sharing_.sends) {
    const auto blocks = sharing_.blocks_of(transfer);
    if (std::ranges::find(blocks, static_cast<schedule::Block>(team_.rank())) == blocks.end()) {
      continue;
    }
    if (!readers.empty() && transfer.round != round) return {};
    round = transfer.round;
    readers.push_back(team_.world_rank(transfer.peer));
  }
  const link::Kind kind =
      readers.empty() ? link::Kind::channel : link_to(job_, home_, cut.bytes(), readers);
  return kind == link::Kind::peer ? find_staging(job_, cut, home_, kind, readers)
                                  : OpaqueBlock::StagingSlots{};
}

void ReducedCall::begin_sharing() {
  if (!agreed_.adds_quanta) pieces_.leave_room();
  phase_ = Phase::sharing;
  agreed_.coding.largest_error = &errors_.result;
  const int ranks = team_.size();
  const MPI_Datatype type = reduction_.mpi_type();
  const std::shared_ptr<OwnBlock>& sum = pieces_.own().sum();
  const Operand all{results(), {}, {ranks, counts_.data(), places_.data(), type}};
  const Operand own{result_, {1, own_elements(), type}, {}};
  if (goal_ != Goal::each) {
    const bool is_gather = goal_ == Goal::root;
    movement_ = movement(!is_gather || agreed_.adds_quanta, schedule_op(call_), own,
                         is_gather && !is_at_root() ? Operand{} : all, std::move(sharing_),
                         &agreed_.coding);
    if (sum) {
      movement_->runner().shared().provide(static_cast<schedule::Block>(team_.rank()), sum,
                                           decoded_ != nullptr);
    }
  }
  if (sum && result_ && !decoded_ && goal_ != Goal::all) {
    own_.emplace(job_, *sum, result_, static_cast<std::int64_t>(own_elements()),
                 mpi::type_info(type));
  }
}

/// What was not made where the program has it is brought there.
void ReducedCall::finish() {
  if (own_) note(job_.code_of(own_->status()));
  bool has_results = own_ || decoded_ || !pieces_.own().sum();
  if (movement_) {
    note(movement_->runner().code());
    has_results = has_results && !movement_->runner().has_own_by_decoder();
  }
  const Part wanted = own_results();
  if (code_ == MPI_SUCCESS && aside_ && wanted.data && has_results) {
    Part made = wanted;
    made.data = result_;
    note(copy_part(job_, made, wanted));
  }
  own_.reset();
  movement_.reset();
  pieces_.clear();
  combined_.reset();
  aside_.reset();
  copy_.reset();
  measures_error(job_, spec_) ? begin_telling() : end();
}

/// The record tells what the results may err by.
void ReducedCall::end() {
  movement_.reset();
  if (code_ == MPI_SUCCESS) {
    engine::note(job_.record.row({trace::Direction::complete, called(), trace::any_peer}),
                 agreed_.loss);
  }
  tag_.give();
  phase_ = Phase::over;
}

}  // namespace mpress::engine
