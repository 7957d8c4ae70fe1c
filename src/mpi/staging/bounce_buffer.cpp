#include "mpi/staging/bounce_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "core/staging.hpp"
#include "message/message.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"
#include "mpi/objects/type_runs.hpp"

namespace mpress::engine {
namespace {

/// The image keeps the data's addresses modulo this, for whoever loads vectors.
constexpr std::uintptr_t alignment = 64;

/// So many pieces of memory are sooner copied each than packed first.
constexpr std::size_t few_runs = 8;

const std::byte* at(const void* buffer, std::int64_t offset) {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  return reinterpret_cast<const std::byte*>(address + static_cast<std::uintptr_t>(offset));
}

/// Where the first of the blocks of types that matter, and that have data, lies; only absolute
/// addresses may lie in memory of several devices.
template <typename Matters>
int device_of_data(Job& job, const void* buffer, const Blocks& blocks, Matters matters) {
  for (int i = 0; i < blocks.number(); ++i) {
    const Block block = blocks[i];
    if (block.count <= 0) continue;
    const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(block.type);
    if (!type) return gpu::host;
    if (type->size == 0 || !matters(*type)) continue;
    const int device = engine::device_of(job, at(buffer, block.offset), *type);
    if (device != gpu::host || buffer != MPI_BOTTOM) return device;
  }
  return gpu::host;
}

/// Where the data of those types that matter lie.
template <typename Matters>
int device_of_data(Job& job, const Operand& operand, Matters matters) {
  const int device = device_of_data(job, operand.buffer, operand.reads, matters);
  if (device != gpu::host) return device;
  return device_of_data(job, operand.buffer, operand.writes, matters);
}

}  // namespace

int BounceBuffer::device_of(Job& job, const Operand& operand) {
  return device_of_data(job, operand, [](const mpi::TypeInfo&) { return true; });
}

bool BounceBuffer::is_needed(Job& job, const Operand& operand) {
  const int device = device_of_data(
      job, operand, [&](const mpi::TypeInfo& type) { return packs_for_mpi(job, type); });
  return device != gpu::host;
}

/// False where MPI refuses a type.
bool BounceBuffer::list(Job& job, const void* buffer, const Blocks& blocks, Pieces& pieces) {
  for (int i = 0; i < blocks.number(); ++i) {
    const Block block = blocks[i];
    if (block.count <= 0) continue;
    const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(block.type);
    if (!type) return false;
    const std::size_t bytes = type->size * static_cast<std::size_t>(block.count);
    if (bytes == 0) continue;
    const int device = engine::device_of(job, at(buffer, block.offset), *type);
    auto piece = std::find_if(pieces.begin(), pieces.end(),
                              [&](const Piece& other) { return other.device == device; });
    if (piece == pieces.end()) piece = pieces.insert(piece, {device, 0, {}});
    piece->bytes += bytes;
    if (type->contiguous) {
      piece->runs.add(block.offset, bytes);
    } else {
      piece->runs.add(mpi::list_runs(type->handle, block.count), block.offset);
    }
  }
  return true;
}

int BounceBuffer::open(Job& job, const Operand& operand, const void* other) {
  buffer_ = operand.buffer;
  if (!list(job, buffer_, operand.reads, reads_) || !list(job, buffer_, operand.writes, writes_)) {
    return MPI_ERR_TYPE;
  }
  std::uintptr_t first = UINTPTR_MAX;
  std::uintptr_t end = 0;
  std::size_t bytes = 0;
  int device = gpu::host;
  for (const Pieces* pieces : {&reads_, &writes_}) {
    for (const Piece& piece : *pieces) {
      if (piece.device != gpu::host) device = piece.device;
      bytes = std::max(bytes, piece.bytes);
      piece.runs.for_each([&](const gpu::Run& run) {
        const auto begin = reinterpret_cast<std::uintptr_t>(original_of(run));
        first = std::min(first, begin);
        end = std::max<std::uintptr_t>(end, begin + run.bytes);
      });
    }
  }
  const std::uintptr_t odd = first % alignment;
  const std::size_t room = end - first + odd + alignment;
  // Pinned memory is dear: not for what lies between the data.
  image_ = room / 2 > bytes + 4096 ? job.pool.take(room) : job.devices.take_pinned(device, room);
  if (!image_) return MPI_ERR_NO_MEM;
  shift_ = reinterpret_cast<std::uintptr_t>(image_.data()) + odd - first;
  if (address() == other) shift_ += alignment;
  return MPI_SUCCESS;
}

std::byte* BounceBuffer::original_of(const gpu::Run& run) const {
  return const_cast<std::byte*>(at(buffer_, run.offset));
}

std::byte* BounceBuffer::image_of(const gpu::Run& run) const {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(original_of(run)) + shift_);
}

void* BounceBuffer::address() const {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer_) + shift_);
}

int BounceBuffer::await_defaults(Job& job) const {
  for (const Pieces* pieces : {&reads_, &writes_}) {
    for (const Piece& piece : *pieces) {
      const int code = job.code_of(await(job, piece.device, default_work(piece.device)));
      if (code != MPI_SUCCESS) return code;
    }
  }
  return MPI_SUCCESS;
}

int BounceBuffer::fetch(Job& job) { return copy(job, reads_, Way::to_image); }

int BounceBuffer::deliver(Job& job) { return copy(job, writes_, Way::to_device); }

int BounceBuffer::copy(Job& job, const Pieces& pieces, Way way) const {
  for (const Piece& piece : pieces) {
    memory::Buffer packed;
    memory::Buffer aside;
    if (piece.device != gpu::host && piece.runs.size() > few_runs) {
      packed = job.devices.take_pinned(piece.device, piece.bytes);
      aside = job.devices.take(piece.device, piece.bytes);
    }
    // Where memory ran out, each run by itself: slow, but right.
    const int code = packed && aside ? copy_packed(job, piece, way, packed.data(), aside.data())
                                     : copy_each(job, piece, way);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int BounceBuffer::copy_each(Job& job, const Piece& piece, Way way) const {
  const QueueLease queue =
      piece.device == gpu::host ? QueueLease() : job.devices.queue(piece.device);
  if (piece.device != gpu::host && !queue) return job.code_of(refused(job, piece.device));
  gpu::Event last = 0;
  piece.runs.for_each([&](const gpu::Run& run) {
    std::byte* const to = way == Way::to_image ? image_of(run) : original_of(run);
    const std::byte* const from = way == Way::to_image ? original_of(run) : image_of(run);
    if (queue) {
      last = queue->copy(to, from, run.bytes);
    } else {
      std::memcpy(to, from, run.bytes);
    }
  });
  return queue ? job.code_of(job.devices.wait(*queue, last)) : MPI_SUCCESS;
}

int BounceBuffer::copy_packed(Job& job, const Piece& piece, Way way, std::byte* packed,
                              std::byte* aside) const {
  const QueueLease queue = job.devices.queue(piece.device);
  if (!queue) return job.code_of(refused(job, piece.device));
  void* const buffer = const_cast<void*>(buffer_);
  if (way == Way::to_device) {
    piece.runs.for_each([&](const gpu::Run& run) {
      std::memcpy(packed, image_of(run), run.bytes);
      packed += run.bytes;
    });
    queue->copy(aside, packed - piece.bytes, piece.bytes);
    return job.code_of(
        job.devices.wait(*queue, queue->scatter(buffer, aside, gpu::Runs(piece.runs))));
  }
  queue->gather(aside, buffer, gpu::Runs(piece.runs));
  const int code = job.code_of(job.devices.wait(*queue, queue->copy(packed, aside, piece.bytes)));
  if (code != MPI_SUCCESS) return code;
  piece.runs.for_each([&](const gpu::Run& run) {
    std::memcpy(image_of(run), packed, run.bytes);
    packed += run.bytes;
  });
  return code;
}

}  // namespace mpress::engine
