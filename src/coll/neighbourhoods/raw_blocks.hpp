// The blocks of a neighbourhood's call as one message each, from where the program has them to
// where it wants them: where all that this process sends is sure to go as it is.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/neighbourhoods/exchange.hpp"
#include "coll/neighbourhoods/raw_messages.hpp"
#include "coll/team.hpp"
#include "config/config.hpp"
#include "core/asked.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// The other end of each block may send it, or receive it, by a Runner; what it has encoded is
/// decoded here. Long blocks with gaps are packed and unpacked here, run by run, where MPI takes
/// several times as long. Raises nothing. One thread at a time calls it.
class RawBlocks {
 public:
  /// `exchange`, `way`, and `coding`, which may be null, outlive it.
  RawBlocks(Messaging& messaging, trace::Called called, Family family, const Team& team, int tag,
            const Exchange& exchange, const Way& way, const Coding* coding)
      : messaging_(messaging),
        called_(called),
        family_(family),
        team_(team),
        exchange_(exchange),
        way_(way),
        coding_(coding),
        messages_(messaging, called, team, tag) {}

  /// Goes all that this process sends on `way`, which passes nothing on, as it is, and lies all in
  /// memory of the host? Before each start().
  bool may_serve();

  /// Posts all. Not while it is under way.
  void start();
  /// Waits for no rank. True once it is over.
  bool advance();
  /// For a call that blocks, between two calls of advance(): see Runner.
  bool wait();
  /// Must this process take what has come for others to get on?
  bool needs_host() const { return messages_.needs_host(); }
  Status status() const { return messages_.status(); }
  /// Once it is over: what the blocks that this process got have lost.
  double bound() const { return outcome_.bound; }

 private:
  bool goes_raw(int peer, const BlockData& data);
  BlockData take_packed(const BlockData& data);
  void receive_all();
  void send_all();
  void finish();

  Messaging& messaging_;
  const trace::Called called_;
  const Family family_;
  const Team& team_;
  const Exchange& exchange_;
  const Way& way_;
  const Coding* const coding_;
  RawMessages messages_;
  std::vector<trace::Reason> reasons_;  ///< why each block that is sent goes as it is
  memory::Buffer packed_;               ///< blocks that have gaps where the program has them
  std::size_t packed_bytes_ = 0, packed_used_ = 0, longest_ = 0;
  std::vector<BlockData> packed_receives_;  ///< where each comes to; without data: elsewhere
  std::size_t least_framed_ = 0;            ///< shorter ones are sent as they are
  Outcome outcome_;
};

}  // namespace mpress::engine
