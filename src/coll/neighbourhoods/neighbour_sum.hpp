// Reductions of include/mpress/iso.h: what all sources sent, combined in this process.
#pragma once

#include <memory>
#include <optional>

#include "codec/grid.hpp"
#include "coll/collective_operation.hpp"
#include "coll/neighbourhoods/exchange.hpp"
#include "coll/neighbourhoods/fold.hpp"
#include "coll/neighbourhoods/neighbour_call.hpp"
#include "coll/neighbourhoods/packed_sums.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/sum_encoder.hpp"

namespace mpress::engine {

/// Either straight: an exchange to memory of this process's own, from where what came is combined
/// in the order of the list, or, of sums with szp, added up in quanta; or by message combining,
/// with partial results (packed_sums).
class NeighbourSum final : public CollectiveOperation {
 public:
  /// As NeighbourCall. `exchange` has a sum. Where there is no memory others get all that this
  /// process has for them, or an error.
  NeighbourSum(Messaging& messaging, const Collective& call, const Exchange& exchange, Team& team,
               const Served& served);

  void start(FloatModes modes) override;
  bool advance() override;
  bool needs_host() const override { return straight_ && straight_->needs_host(); }
  void await(bool is_awaited) override {
    if (straight_) straight_->await(is_awaited);
  }
  bool wait() override { return straight_ ? straight_->wait() : packed_->wait(); }
  trace::Called called() const override;
  Status status() const override { return status_; }
  double bound() const override { return bound_; }

 private:
  /// Of a sum in quanta.
  struct Quanta {
    codec::Grid grid;  ///< of each vector
    double bound;      ///< of the result
  };
  static std::optional<Quanta> quanta_of(const Spec& spec, const Exchange& exchange);

  Coding coding_of(const Spec& spec) const;
  void prepare_straight(Team& team, const Served& served);
  bool place_vectors();
  BlockData vector(std::size_t place) const;
  void begin_sum();
  bool add_some();
  void finish();
  Status fold();

  Messaging& messaging_;
  Collective call_;
  const Exchange& exchange_;
  Fold& fold_;
  Coding coding_{.spec = {.codec = Codec::none}};  ///< of each source's vector
  Exchange staged_;
  memory::Buffer memory_;
  std::optional<NeighbourCall> straight_;  ///< one of these
  std::optional<PackedSums> packed_;
  std::optional<Quanta> quanta_;
  std::optional<HostSum> sum_;  ///< in quanta, under way
  std::uint64_t added_ = 0;     ///< chunks of it
  bool has_come_ = false;
  Status status_;
  double bound_ = 0;
};

/// May vectors of a reduction be encoded, as all members know alike?
bool may_encode_sum(const Messaging& messaging, const Exchange& exchange);

/// Combines, in a process that is alone, what it has for itself.
Status fold_own(Messaging& messaging, const Exchange& exchange);

}  // namespace mpress::engine
