// A reduction that mpress serves, in two shots: each rank combines one piece of the data, to which
// all others bring theirs, and passes on what comes of it. Among several hosts with several ranks
// each, what a host's ranks bring is combined there first (schedule/sums/host_sums).
//
// States (docs/dev/reductions.md has them as a table):
// - waiting, while another call has its tag;
// - measuring: a device finds the range of what this rank brings, where there is a bound on the
//   error;
// - exchanging: then members tell each other the range of what they bring;
// - adding jointly: of szp on a host's devices, one kernel a member does all that follows;
// - contributing: the pieces travel to those who combine them, as an all-to-all does;
// - passing on: pieces of other hosts' ranks are combined and travel on to them;
// - combining: of szp the payloads are added in quanta, of all else the elements;
// - sharing: the results travel as those of an all-gather or of a gather do; MPI_Reduce_scatter has
//   them where they belong. Of szp chunks are shared while others are added, and still come;
// - telling, where errors are measured: members tell each other those of what they have encoded;
// - over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/szp/format.hpp"
#include "core/devices.hpp"
#include "engine/coll/blocks/blocks.hpp"
#include "engine/coll/call_tag.hpp"
#include "engine/coll/collective_operation.hpp"
#include "engine/coll/joint/blind_sums.hpp"
#include "engine/coll/joint/joint_sum.hpp"
#include "engine/coll/reduce/bounded_coding.hpp"
#include "engine/coll/reduce/movement.hpp"
#include "engine/coll/reduce/own_range.hpp"
#include "engine/coll/reduce/pieces.hpp"
#include "engine/coll/reduce/reduction.hpp"
#include "engine/coll/route.hpp"
#include "memory/buffer_pool.hpp"
#include "message/block_decode.hpp"
#include "mpi/messages/send.hpp"
#include "pipeline/loss.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

class ReducedCall final : public CollectiveOperation {
 public:
  ReducedCall(Job& job, const Collective& call, const Operands& operands, mpi::CommInfo& comm,
              Team& team, const Served& served);

  void start(FloatModes modes) override;
  bool advance() override;
  bool needs_host() const override;
  void await(bool is_awaited) override;
  bool wait_in_mpi() override;
  trace::Called called() const override {
    const auto algorithm = is_joint_      ? schedule::Algorithm::one_kernel
                           : is_by_host() ? schedule::Algorithm::by_host
                                          : schedule::Algorithm::two_shot;
    return {call_.op, static_cast<std::uint8_t>(algorithm)};
  }
  int code() const override { return code_; }
  double bound() const override { return agreed_.loss.announced_bound(); }

 private:
  enum class Phase : unsigned char {
    waiting,
    measuring,
    exchanging,
    adding_jointly,
    contributing,
    passing_on,
    combining,
    sharing,
    telling,
    over,
  };
  /// Who gets the result.
  enum class Goal : unsigned char { all, root, each };

  /// The largest errors of what a member has encoded, where they are measured.
  struct Errors {
    double brought = 0, passed_on = 0, result = 0;
  };

  bool is_likely_joint() const;
  double share_in_windows() const;
  void begin();
  int open();
  int use_copy(memory::Buffer copy);
  int leave_device();
  void begin_measuring();
  void begin_exchange();
  void conclude_exchange();
  std::optional<codec::Grid> blind_grid() const;
  BlindSums& blind_sums() const;
  BlindSums::Like like() const {
    return {reduction_.type, static_cast<std::size_t>(reduction_.count)};
  }
  std::optional<codec::szp::Grounds> expected_grounds() const;
  bool may_be_blind() const;
  bool blind_results_stand() const;
  bool is_overwritten() const;
  bool ends_for_failure();
  void begin_after_exchange();
  void offer_jointly(ContributionSummary& told);
  bool have_joint_memory() const;
  bool may_add_jointly() const;
  JointSum::Goal joint_goal() const;
  bool do_quanta_travel() const;
  bool begins_jointly();
  void end_jointly();
  void count_jointly() const;
  void end_without_blocks();
  /// Not where sums of a host, which are rounded, could make a difference.
  bool is_by_host() const { return team_.hosts().is_mixed() && !is_reproducible_; }
  void begin_contributions();
  void make_pieces();
  std::unique_ptr<Movement> contribution(const Operand& send, schedule::Schedule schedule) const;
  bool advance_contributions();
  bool may_overlap(std::span<const std::unique_ptr<PieceSum>> pieces) const;
  void begin_passing_on();
  bool pass_on();
  bool may_combine() const;
  void begin_combining();
  OpaqueBlock::StagingSlots staging_of_sum(const Chunking& cut) const;
  memory::Buffer take(std::size_t bytes);
  bool is_aligned(const void* data) const;
  Part own_results() const;
  void begin_sharing();
  void finish();
  void begin_telling();
  double joined_error() const;
  void end();
  bool pays() const;
  Part own_piece() const;
  std::unique_ptr<Movement> movement(bool shares, schedule::Op op, const Operand& send,
                                     const Operand& receive, schedule::Schedule schedule,
                                     const Coding* coding, BlockMap::Place place = {}) const;
  std::unique_ptr<Movement> share_with_all(void* all, std::size_t bytes) const;
  bool has_moved();
  static bool has_shared(Runner& runner);
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }
  std::size_t width() const { return element_size(reduction_.type); }
  std::size_t bytes() const { return static_cast<std::size_t>(reduction_.count) * width(); }
  std::int64_t elements_of(int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    return begins_[i + 1] - begins_[i];
  }
  std::int64_t own_elements() const { return elements_of(team_.rank()); }
  std::byte* results() const {
    return static_cast<std::byte*>(const_cast<void*>(operands_.receive.buffer));
  }
  bool is_at_root() const { return goal_ == Goal::root && team_.rank() == operands_.root; }

  Job& job_;
  const Collective& call_;
  const Operands& operands_;
  mpi::CommInfo& comm_;
  Team& team_;
  const Served served_;
  FloatModes modes_;  ///< of the call that is under way
  CallTag tag_;
  const Goal goal_;
  Reduction reduction_;
  const bool is_reproducible_;        ///< it has the same bits in any order of the ranks
  const Spec spec_;                   ///< which members share
  std::vector<std::int64_t> begins_;  ///< of pieces, in elements
  const std::byte* input_ = nullptr;
  int home_ = gpu::host;  ///< the device that the input lies on: there pieces are combined
  memory::Buffer copy_;   ///< of the input: aligned, or on the host
  Phase phase_ = Phase::over;
  OwnRange range_;  ///< of what this rank brings
  std::vector<ContributionSummary> told_;
  BoundedCoding agreed_;               ///< of one without a bound, what is known beforehand
  Errors errors_;                      ///< of this rank
  std::vector<Errors> all_errors_;     ///< by rank
  std::optional<JointSum> joint_;      ///< where that may be
  bool is_joint_ = false;              ///< it is
  bool has_blind_results_ = false;     ///< which stand where the grid serves all
  codec::szp::Grounds blind_grounds_;  ///< of those
  std::uint64_t looks_for_failure_at_ns_ = 0;
  std::unique_ptr<Movement> movement_;       ///< of what is told, or of results
  std::unique_ptr<Movement> contributions_;  ///< while any are under way
  std::unique_ptr<Movement> passing_on_;     ///< the same of what hosts have combined
  Pieces pieces_;
  bool has_passed_on_ = false;
  std::vector<std::int64_t> counts_;                 ///< of blocks that move, in elements
  std::vector<std::int64_t> places_;                 ///< where, in elements
  std::vector<std::int64_t> on_counts_, on_places_;  ///< of what is passed on
  memory::Buffer combined_;                          ///< elements that are passed on
  schedule::Schedule sharing_;                       ///< of results
  memory::Buffer aside_;          ///< results that do not lie where the program wants any
  std::byte* result_ = nullptr;   ///< of the own piece; null: it is not wanted here
  std::byte* decoded_ = nullptr;  ///< the same, where the sum of payloads comes there by itself
  std::optional<BlockDecode> own_;
  bool is_awaited_ = false;
  int code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
