#include "mpi/collectives/neighbours/exchange.hpp"

#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/staging.hpp"
#include "core/stream_order.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

void add_devices(Job& job, std::span<const Part> parts, std::set<int>& devices) {
  for (const Part& part : parts) {
    if (part.bytes > 0) devices.insert(device_of(job, part.data, *mpi::type_info(part.type)));
  }
}

}  // namespace

void Exchange::keep_types() {
  std::map<MPI_Datatype, MPI_Datatype> known;
  const auto keep = [&](Part& part) {
    if (part.type == MPI_DATATYPE_NULL) return;
    auto [found, is_new] = known.try_emplace(part.type, part.type);
    if (is_new && !mpi::type_info(part.type)->is_predefined) {
      kept_.push_back(std::make_unique<mpi::KeptType>(part.type, false));
      found->second = kept_.back()->get();
    }
    part.type = found->second;
  };
  for (Part& part : sent) keep(part);
  for (Part& part : received) keep(part);
  if (sum) keep(sum->result);
}

int copy_own(Job& job, const Exchange& exchange) {
  int code = MPI_SUCCESS;
  const auto copy = [&](int sent, int received) {
    const Part& from = exchange.to(sent);
    const Part& to = exchange.received[static_cast<std::size_t>(received)];
    if (from.bytes == 0 || to.bytes == 0) return;
    const int copied = copy_part(job, from, to);
    if (code == MPI_SUCCESS) code = copied;
  };
  if (exchange.own_edges) {
    for (const auto& [sent, received] : *exchange.own_edges) copy(sent, received);
    return code;
  }
  for (const int neighbour : exchange.plans->own()) copy(neighbour, neighbour);
  return code;
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
