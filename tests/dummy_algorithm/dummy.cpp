// An algorithm of the tests' own: MPI_Alltoall by a message to each member, and one from each.

#include <memory>

#include "coll/algorithms/conditions.hpp"
#include "coll/blocks/copy_block.hpp"
#include "coll/blocks/served.hpp"
#include "coll/call_tag.hpp"
#include "coll/collective_operation.hpp"
#include "coll/neighbourhoods/raw_messages.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

class DummyAlltoall final : public CollectiveOperation {
 public:
  DummyAlltoall(const CallHere& here, const Served& served)
      : messaging_(here.messaging),
        team_(here.team),
        called_(here.agreed.call.op),
        sent_(here.sent),
        received_(here.received),
        tag_(here.team, served.tag),
        messages_(messaging_, called_, team_, tag_.of_blocks()) {}

  void start(FloatModes) override { begin(); }
  bool advance() override {
    if (!is_under_way_ && !begin()) return false;
    if (!messages_.have_come(received_.count()) || !messages_.are_sent()) return false;
    is_under_way_ = false;
    tag_.give();
    return true;
  }
  bool needs_host() const override { return false; }
  void await(bool) override {}
  bool wait() override { return false; }
  trace::Called called() const override { return called_; }
  Status status() const override { return messages_.status(); }
  double bound() const override { return 0; }

 private:
  /// Unless another call has its tag.
  bool begin() {
    if (!tag_.take()) return false;
    is_under_way_ = true;
    const auto members = static_cast<std::size_t>(team_.size());
    messages_.start(members, members);
    for (int member = 0; member < team_.size(); ++member) {
      const auto i = static_cast<std::size_t>(member);
      if (member == team_.rank()) {
        messages_.note(copy_block(messaging_, sent_[member], received_[member]));
      } else {
        messages_.receive(i, received_[member], member);
        messages_.send(i, sent_[member], member);
      }
    }
    return true;
  }

  Messaging& messaging_;
  Team& team_;
  const trace::Called called_;
  const BlockList sent_, received_;
  CallTag tag_;
  RawMessages messages_;
  bool is_under_way_ = false;
};

}  // namespace

const Algorithm dummy{
    .name = "dummy",
    .why_not = [](const AgreedCall& call) -> WhyNot {
      if (call.call.op != trace::Op::alltoall) return other_kind;
      if (call.on_devices) return "GPU buffers";
      return why_no_blocks(call);
    },
    .make = [](const CallHere& here, const Served& served) -> std::unique_ptr<CollectiveOperation> {
      return std::make_unique<DummyAlltoall>(here, served);
    }};

}  // namespace mpress::engine
