#include "engine/coll/reduced_call.hpp"

#include <algorithm>
#include <utility>

#include "engine/job.hpp"
#include "engine/pipeline/sum_encoder.hpp"
#include "mpi/type_info.hpp"
#include "policy/methods.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {
namespace {

/// Elements that are combined between two looks at all else.
constexpr std::int64_t stride = 1 << 18;

/// Products bear no loss: what an error of one factor does to them depends on all the others. Where
/// the order of the ranks is not to matter, szp's sums do.
Spec spec_for(const Reduction& reduction, const Spec& agreed, bool is_reproducible) {
  const bool bears_loss =
      reduction.how != codec::Combine::prod &&
      (!is_reproducible || (agreed.codec == Codec::szp && reduction.how == codec::Combine::sum));
  return agreed.lossy() && !bears_loss ? Spec{.codec = Codec::mpc} : agreed;
}

}  // namespace

ReducedCall::ReducedCall(Job& job, const Collective& call, const Operands& operands,
                         mpi::CommInfo& comm, Context& context, const Served& served)
    : job_(job),
      call_(call),
      operands_(operands),
      comm_(comm),
      context_(context),
      served_(served),
      tag_(context, served.tag),
      goal_(call.family == Family::allreduce ? Goal::all
            : call.family == Family::reduce  ? Goal::root
                                             : Goal::each),
      reduction_(*reduction_of(operands)),
      is_reproducible_(context.is_reproducible() && reduction_.how != codec::Combine::prod),
      spec_(spec_for(reduction_, context.spec().value_or(job.config.spec), is_reproducible_)),
      begins_(pieces_of(call, operands, reduction_, context.size())) {}

void ReducedCall::start() {
  code_ = MPI_SUCCESS;
  phase_ = Phase::waiting;
  pass_on_hints(comm_, context_);
  begin();
}

/// Unless another call has its tag.
void ReducedCall::begin() {
  if (!tag_.take()) return;
  coding_ = Coding{spec_};
  adds_quanta_ = false;
  has_payloads_ = false;
  note(open());
  if (spec_.codec == Codec::szp) {
    begin_measuring();
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
  const std::size_t bytes = static_cast<std::size_t>(reduction_.count) * width();
  aligned_ = take(bytes);
  if (!aligned_) return short_of_memory(job_, home_);
  const auto count = static_cast<MPI_Count>(reduction_.count);
  const Part from{const_cast<std::byte*>(input_), count, reduction_.mpi_type(), bytes};
  input_ = aligned_.data();
  return copy_part(job_, from, {aligned_.data(), count, reduction_.mpi_type(), bytes});
}

/// Of the device that the input lies on, or of the host.
memory::Buffer ReducedCall::take(std::size_t bytes) {
  return home_ == gpu::host ? job_.pool.take(bytes) : job_.devices.take(home_, bytes);
}

bool ReducedCall::is_aligned(const void* data) const {
  return reinterpret_cast<std::uintptr_t>(data) % width() == 0;
}

const std::byte* ReducedCall::own_input() const {
  const auto first = begins_[static_cast<std::size_t>(context_.rank())];
  return input_ + static_cast<std::size_t>(first) * width();
}

std::unique_ptr<Movement> ReducedCall::movement(bool shares, schedule::Op op, const Operand& send,
                                                const Operand& receive, schedule::Schedule schedule,
                                                const Coding* coding) const {
  Operands operands;
  operands.comm = context_.comm();
  operands.root = operands_.root;
  operands.send = send;
  operands.receive = receive;
  const Movement::Of of{job_, called(), call_.family, context_, tag_.of_blocks(), code_, coding};
  auto made = std::make_unique<Movement>(of, op, shares, operands, std::move(schedule));
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
  if (phase_ == Phase::measuring && !is_measured()) return false;
  if (phase_ == Phase::exchanging) {
    if (!has_moved()) return false;
    conclude_exchange();
    begin_contributions();
  }
  if (phase_ == Phase::contributing) {
    if (!advance_contributions() && !may_combine()) return false;
    begin_combining();
  }
  if (phase_ == Phase::combining) {
    if (!combine()) return false;
    begin_sharing();
  }
  if (phase_ == Phase::sharing) {
    const bool has_contributed = advance_contributions();
    const bool has_sum = !sum_ || sum_->advance();
    const bool is_shared = !movement_ || has_shared(movement_->runner());
    const bool has_own = !own_ || (has_sum && own_->advance());
    if (!has_contributed || !has_sum || !is_shared || !has_own) return false;
    if (sum_) note(sum_->code());
    finish();
  }
  return phase_ == Phase::over;
}

/// True once none is under way.
bool ReducedCall::advance_contributions() {
  const auto me = static_cast<std::size_t>(context_.rank());
  const bool has_own = opaque_.empty() || opaque_[me]->advance();
  if (has_own && !opaque_.empty()) note(opaque_[me]->code());
  if (contributions_ && contributions_->runner().advance()) {
    note(contributions_->runner().code());
    contributions_.reset();
  }
  return !contributions_ && has_own;
}

/// Payloads are added as they come, once it is known who brings some. No block of the results is
/// taken for a contribution then: MPI has matched those. A sum of one chunk may be sent as a frame,
/// for which it has to be there. In place, an MPI that takes memory of devices could write a header
/// of the results where a device has not begun to encode.
bool ReducedCall::may_combine() const {
  if (!has_payloads_ || code_ != MPI_SUCCESS || cut_of_own().chunks() == 1) return false;
  if (reduction_.is_in_place && job_.gpu_aware) return false;
  if (!contributions_) return true;
  const Runner& runner = contributions_->runner();
  return runner.code() == MPI_SUCCESS && runner.is_all_coming();
}

void ReducedCall::await(bool is_awaited) {
  is_awaited_ = is_awaited;
  if (movement_) movement_->runner().await(is_awaited);
  if (contributions_) contributions_->runner().await(is_awaited);
}

void ReducedCall::wait_in_mpi() {
  const bool works_here = phase_ == Phase::waiting || phase_ == Phase::measuring ||
                          phase_ == Phase::combining ||
                          (phase_ == Phase::contributing && adds_quanta_) || has_payloads_;
  const std::unique_ptr<Movement>& moving = contributions_ ? contributions_ : movement_;
  if (moving && !works_here) moving->runner().wait_in_mpi();
}

/// The own piece is decoded while those of others come: each has a place of its own.
bool ReducedCall::has_shared(Runner& runner) {
  const bool has_moved = runner.advance();
  return runner.advance_own() && has_moved;
}

void ReducedCall::begin_contributions() {
  const int me = context_.rank();
  const int ranks = context_.size();
  const auto own_bytes = static_cast<std::size_t>(own_elements()) * width();
  // One behind the other, as kernels read them well.
  const auto grain = static_cast<std::int64_t>(256 / width());
  const std::int64_t stride = (own_elements() + grain - 1) / grain * grain;
  counts_.clear();
  places_.assign(begins_.begin(), begins_.end() - 1);
  in_counts_.assign(static_cast<std::size_t>(ranks), own_elements());
  in_places_.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    counts_.push_back(elements_of(rank));
    in_places_.push_back((rank < me ? rank : rank - 1) * stride);
  }
  in_places_[static_cast<std::size_t>(me)] = 0;
  in_counts_[static_cast<std::size_t>(me)] = 0;
  counts_[static_cast<std::size_t>(me)] = 0;
  if (own_bytes > 0) {
    brought_ = take(static_cast<std::size_t>(stride * (ranks - 1)) * width());
    if (!brought_) note(short_of_memory(job_, home_));
  }
  const MPI_Datatype type = reduction_.mpi_type();
  const Operand send{input_, {ranks, counts_.data(), places_.data(), type}, {}};
  const Operand receive{brought_.data(), {}, {ranks, in_counts_.data(), in_places_.data(), type}};
  const schedule::Task task{schedule::Op::alltoall, ranks};
  const schedule::Method method{schedule::Algorithm::scattered, 1,
                                std::min(policy::most_at_once, ranks - 1)};
  opaque_.clear();
  phase_ = Phase::contributing;
  movement_.reset();
  contributions_ = movement(adds_quanta_, task.op, send, receive,
                            schedule::make(method, task, me, context_.hosts()), &coding_);
  // What is shorter than any frame comes as it is.
  has_payloads_ = adds_quanta_ && own_bytes >= wire::min_frame_bytes && code_ == MPI_SUCCESS;
  if (!has_payloads_) return;
  for (int rank = 0; rank < ranks; ++rank) {
    opaque_.push_back(std::make_shared<OpaqueBlock>(job_));
    if (rank == me) continue;
    const auto block = static_cast<schedule::Block>(rank) * static_cast<schedule::Block>(ranks) +
                       static_cast<schedule::Block>(me);
    contributions_->runner().shared().leave_in(block, opaque_.back());
  }
  contributions_->runner().advance();  // others wait for what it encodes
  const Region region{reduction_.type, own_input(), static_cast<std::uint64_t>(own_elements()),
                      home_};
  if (!opaque_[static_cast<std::size_t>(me)]->encode(cut_of_own(), region, {}, {})) {
    note(short_of_memory(job_, home_));
  }
}

Chunking ReducedCall::cut_of_own() const {
  const auto own_bytes = static_cast<std::size_t>(own_elements()) * width();
  return {coding_.spec,
          reduction_.type,
          static_cast<std::uint64_t>(own_elements()),
          coding_.chunk_of(own_bytes),
          job_.rank,
          trace::no_number};
}

/// Where the program has its results of the own piece, if it wants any.
Part ReducedCall::own_results() const {
  const auto bytes = static_cast<std::size_t>(own_elements()) * width();
  const bool is_wanted = bytes > 0 && (goal_ != Goal::root || is_at_root());
  const std::int64_t first =
      goal_ == Goal::each ? 0 : begins_[static_cast<std::size_t>(context_.rank())];
  std::byte* const data =
      is_wanted ? results() + static_cast<std::size_t>(first) * width() : nullptr;
  return {data, static_cast<MPI_Count>(own_elements()), reduction_.mpi_type(), bytes};
}

/// Finds where the results of the own piece go, if they are wanted here, or passed on as elements:
/// where the program has them, if that is where they are made.
void ReducedCall::begin_combining() {
  phase_ = Phase::combining;
  if (goal_ != Goal::each) {
    const schedule::Task task{schedule_op(call_), context_.size(), operands_.root};
    sharing_ = schedule::make(served_.method, task, context_.rank(), context_.hosts());
  }
  combined_ = own_elements();
  result_ = nullptr;
  if (code_ != MPI_SUCCESS || own_elements() == 0) return;
  const Part wanted = own_results();
  const auto type = mpi::type_info(wanted.type);
  const bool is_overlapped = goal_ == Goal::each && reduction_.is_in_place;
  if (wanted.data && type && !is_overlapped && is_aligned(wanted.data) &&
      locate(job_, wanted.data, *type).device == home_) {
    result_ = static_cast<std::byte*>(wanted.data);
  } else if (wanted.data || !has_payloads_) {
    aside_ = take(wanted.bytes);
    result_ = aside_.data();
    if (!aside_) note(short_of_memory(job_, home_));
  }
  if (code_ != MPI_SUCCESS) return;
  if (has_payloads_) return begin_sum();
  combined_ = 0;
}

void ReducedCall::begin_sum() {
  std::vector<Summand> summands;
  for (int rank = 0; rank < context_.size(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const bool is_encoded = opaque_[i]->has_begun();
    summands.push_back(is_encoded ? Summand{opaque_[i]} : Summand{nullptr, brought_by(rank)});
  }
  sum_ = std::make_shared<OpaqueBlock>(job_);
  const Chunking cut = cut_of_own();
  const auto make = [&](const Chunking& all, Slots& slots) {
    return sum_encoder(job_, all, home_, slots, std::move(summands), is_reproducible_);
  };
  const bool is_made = sum_->make(cut, home_, home_of_sum(cut), make);
  if (is_made) return;
  sum_.reset();
  note(short_of_memory(job_, home_));
}

/// In slots of its readers, where one link by which kernels write reaches them all in one round.
OpaqueBlock::Home ReducedCall::home_of_sum(const Chunking& cut) const {
  std::vector<int> readers;
  int round = -1;
  for (const schedule::Transfer& transfer : sharing_.sends) {
    const auto blocks = sharing_.blocks_of(transfer);
    if (std::ranges::find(blocks, static_cast<schedule::Block>(context_.rank())) == blocks.end()) {
      continue;
    }
    if (!readers.empty() && transfer.round != round) return {};
    round = transfer.round;
    readers.push_back(context_.world_rank(transfer.peer));
  }
  const link::Kind kind =
      readers.empty() ? link::Kind::mpi : link_to(job_, home_, cut.bytes(), readers);
  return kind == link::Kind::peer ? find_home(job_, cut, home_, kind, readers)
                                  : OpaqueBlock::Home{};
}

/// Elements of the own piece that a rank has brought.
const std::byte* ReducedCall::brought_by(int rank) const {
  if (rank == context_.rank()) return own_input();
  const auto i = static_cast<std::size_t>(rank);
  return brought_.data() + static_cast<std::size_t>(in_places_[i]) * width();
}

/// The bound of contributions that are added in quanta; 0: they are not.
double ReducedCall::grid() const { return adds_quanta_ ? coding_.spec.value : 0; }

/// Some of the elements, in the order of the ranks, where that matters. True once all are.
bool ReducedCall::combine() {
  if (combined_ == own_elements()) return true;
  if (home_ != gpu::host) return combine_on_device();
  const std::int64_t count = std::min(stride, own_elements() - combined_);
  const std::size_t offset = static_cast<std::size_t>(combined_) * width();
  std::vector<const void*> inputs;
  for (int rank = 0; rank < context_.size(); ++rank) inputs.push_back(brought_by(rank) + offset);
  if (is_reproducible_) {
    codec::combine_in_any_order(reduction_.how, reduction_.type, inputs, result_ + offset,
                                static_cast<std::size_t>(count), grid());
  } else {
    codec::combine_all(reduction_.how, reduction_.type, inputs, result_ + offset,
                       static_cast<std::size_t>(count));
  }
  combined_ += count;
  return combined_ == own_elements();
}

/// True once the device has done it, or failed.
bool ReducedCall::combine_on_device() {
  if (!queue_) {
    queue_ = job_.devices.queue(home_);
    if (!queue_) {
      note(refused(job_, home_));
      return true;
    }
    if (!is_reproducible_) {
      give_in_order();
    } else if (!give_in_any_order()) {
      note(short_of_memory(job_, home_));
      queue_ = {};
      return true;
    }
  }
  const gpu::State state = queue_->query(event_);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) note(refused(job_, home_));
  queue_ = {};
  combined_ = own_elements();
  return true;
}

/// Of more than a launch takes, what is there so far is the first of the next.
void ReducedCall::give_in_order() {
  std::vector<const void*> inputs;
  for (int rank = 0; rank < context_.size(); ++rank) {
    if (inputs.size() == gpu::Queue::most_inputs) {
      give_combining(inputs);
      inputs.assign(1, result_);
    }
    inputs.push_back(brought_by(rank));
  }
  give_combining(inputs);
}

/// All at once, however many. False: there is no memory.
bool ReducedCall::give_in_any_order() {
  const auto ranks = static_cast<std::size_t>(context_.size());
  inputs_ = job_.devices.take_pinned(home_, ranks * sizeof(const void*));
  if (!inputs_) return false;
  auto* const inputs = reinterpret_cast<const void**>(inputs_.data());
  for (int rank = 0; rank < context_.size(); ++rank) inputs[rank] = brought_by(rank);
  event_ = queue_->combine_in_any_order(reduction_.how, reduction_.type, {inputs, ranks}, result_,
                                        static_cast<std::size_t>(own_elements()), grid());
  return true;
}

void ReducedCall::give_combining(std::span<const void* const> inputs) {
  event_ = queue_->combine(reduction_.how, reduction_.type, inputs, result_,
                           static_cast<std::size_t>(own_elements()), false);
}

void ReducedCall::begin_sharing() {
  if (!has_payloads_) brought_.reset();
  phase_ = Phase::sharing;
  const int ranks = context_.size();
  const MPI_Datatype type = reduction_.mpi_type();
  counts_.clear();
  for (int rank = 0; rank < ranks; ++rank) counts_.push_back(elements_of(rank));
  const Operand all{results(), {}, {ranks, counts_.data(), places_.data(), type}};
  const Operand own{result_, {1, own_elements(), type}, {}};
  if (goal_ != Goal::each) {
    const bool is_gather = goal_ == Goal::root;
    movement_ =
        movement(!is_gather || adds_quanta_, schedule_op(call_), own,
                 is_gather && !is_at_root() ? Operand{} : all, std::move(sharing_), &coding_);
    if (sum_) movement_->runner().shared().provide(sum_);
  }
  if (sum_ && result_ && goal_ != Goal::all) {
    own_.emplace(
        job_, *sum_,
        ReceiveArguments{result_, static_cast<MPI_Count>(own_elements()), type, context_.comm()});
  }
}

/// What was not made where the program has it is brought there.
void ReducedCall::finish() {
  if (own_) note(own_->code());
  bool has_results = own_ || !sum_;
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
  sum_.reset();
  opaque_.clear();
  brought_.reset();
  inputs_.reset();
  aside_.reset();
  aligned_.reset();
  tag_.give();
  phase_ = Phase::over;
}

}  // namespace mpress::engine
