#include "mpi/collectives/neighbours/program_exchange.hpp"

#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/staging.hpp"
#include "core/stream_order.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/collectives/neighbours/mpi_fold.hpp"
#include "mpi/collectives/reduction.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {
namespace {

const mpi::TypeInfo& type_of(const BlockData& block) {
  return static_cast<const mpi::TypeInfo&>(*block.layout);
}

void add_devices(Job& job, std::span<const BlockData> blocks, std::set<int>& devices) {
  for (const BlockData& block : blocks) {
    if (block.bytes > 0) devices.insert(device_of(job, block.data, *block.layout));
  }
}

}  // namespace

std::shared_ptr<const Layout> ProgramExchange::hold(std::shared_ptr<const Layout> layout) {
  const Layout* const shared = layout.get();
  if (!held_) {
    held_ = std::move(layout);
  } else if (held_ != layout && (more_held_.empty() || more_held_.back() != layout)) {
    more_held_.push_back(std::move(layout));
  }
  return {std::shared_ptr<const Layout>(), shared};
}

void ProgramExchange::combine(const BlockData& result, MPI_Datatype type, MPI_Op op) {
  sum_type_ = type;
  sum_op_ = op;
  const mpi::TypeInfo& known = type_of(result);
  sum.emplace();
  sum->result = result;
  sum->how = combination_of(op);
  // No pair, and not complex.
  const bool is_number =
      known.is_predefined && known.element && known.size == element_size(*known.element);
  if (is_number) sum->element = known.element;
}

void ProgramExchange::open(Job& job) {
  if (!sum) return;
  sum->fold = std::make_shared<MpiFold>(job, sum->result.count, type_of(sum->result).handle,
                                        sum_type_, sum_op_);
}

void ProgramExchange::ask(std::optional<Asked> for_call) {
  asked = std::move(for_call);
  if (asked && asked->spec) coding = Coding{.spec = *asked->spec};
}

void ProgramExchange::keep_types(Job& job) {
  std::map<const Layout*, std::shared_ptr<const Layout>> known;
  const auto keep = [&](BlockData& block) {
    if (!block.layout || type_of(block).is_predefined) return;
    auto [found, is_new] = known.try_emplace(block.layout.get());
    if (is_new) {
      kept_.push_back(std::make_unique<mpi::KeptType>(type_of(block).handle, false));
      found->second = mpi::type_info(kept_.back()->get());
    }
    block.layout = found->second;
  };
  for (BlockData& block : sent) keep(block);
  for (BlockData& block : received) keep(block);
  if (sum) keep(sum->result);
  open(job);
}

std::shared_ptr<StreamOrder> order_behind_defaults(Job& job, const Exchange& exchange) {
  if (!gpu::in_use()) return nullptr;
  std::set<int> devices;
  add_devices(job, exchange.sent, devices);
  if (exchange.sum) {
    add_devices(job, {&exchange.sum->result, 1}, devices);
  } else {
    add_devices(job, exchange.received, devices);
  }
  devices.erase(gpu::host);
  // One place is enough: work behind the others is waited for here.
  std::shared_ptr<StreamOrder> order;
  for (const int device : devices) {
    auto next = StreamOrder::behind_defaults(job, device);
    if (order && next) order->await();
    if (next) order = std::move(next);
  }
  return order;
}

}  // namespace mpress::engine
