#include "engine/p2p/receive/block_decode.hpp"

#include "core/staging.hpp"
#include "engine/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

BlockDecode::BlockDecode(Job& job, const OpaqueBlock& opaque, const ReceiveArguments& to)
    : job_(job), to_(to), type_(mpi::type_info(to.type)), code_(open(opaque)) {}

int BlockDecode::open(const OpaqueBlock& opaque) {
  if (!type_) return MPI_ERR_TYPE;
  const Chunking& cut = opaque.cut();
  const Location place = locate(job_, to_.buffer, *type_);
  device_ = place.device;
  const bool is_on_device = device_ != gpu::host;
  auto* elements = static_cast<std::byte*>(to_.buffer);
  const bool is_reached = is_on_device || place.is_readable;
  if (!type_->contiguous || !is_reached || !is_aligned(to_.buffer, device_, cut.type)) {
    packed_ = is_on_device ? job_.devices.take(device_, cut.bytes()) : job_.pool.take(cut.bytes());
    if (!packed_) return MPI_ERR_NO_MEM;
    elements = packed_.data();
  }
  const From from = opaque.device() == device_ ? From::near : From::host;
  auto decoder = is_on_device ? device_decoder(job_, cut, device_, elements, from)
                              : host_decoder(job_, cut, elements);
  if (!decoder) return is_on_device ? job_.code_of(refused(job_, device_)) : MPI_ERR_NO_MEM;
  pipeline_.emplace(job_, cut, std::move(decoder), device_);
  pipeline_->open(opaque);
  return MPI_SUCCESS;
}

bool BlockDecode::advance() {
  if (!pipeline_) return true;
  if (!pipeline_->advance()) return false;
  code_ = job_.code_of(pipeline_->status());
  if (code_ == MPI_SUCCESS && packed_) code_ = lay_out(pipeline_->cut().bytes());
  pipeline_.reset();
  return true;
}

int BlockDecode::lay_out(std::size_t bytes) {
  if (device_ != gpu::host) {
    return job_.code_of(
        unpack_to_device(job_, device_, packed_.data(), bytes, to_.buffer, to_.count, *type_));
  }
  const bool is_readable = locate(job_, to_.buffer, *type_).is_readable;
  return job_.code_of(type_->unpack(packed_.data(), bytes, to_.buffer, to_.count, is_readable));
}

}  // namespace mpress::engine
