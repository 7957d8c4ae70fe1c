// Ranks that are threads, with all of messages below the binding: links, protocols, pipelines,
// simulated GPUs. In the place of MPI's matching is a queue of envelopes.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "links/ends.hpp"
#include "loopback/loopback.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "simulated_gpu/simulated_gpu.h"

namespace mpress::loopback {

/// A rank's messages.
class Rank final : public engine::Messaging {
 public:
  /// All members make one. `limit`: bytes that each link may hold. `link`: as MPRESS_LINK has it.
  Rank(links::Member& member, link::Channel& channel, std::size_t limit,
       const std::string& link = "auto")
      : Messaging(engine::Progress::Rounds{}) {
    links::choose_simulated_gpu();
    rank = member.rank;
    size = member.size;
    nonce = links::nonce;
    config.force = true;
    config.pool_limit = limit;
    policy.configure(true, {});
    record.open({});  // in memory
    policy::DeviceChunks device_chunks;
    device_chunks.fill(chunk);
    chunks.open(channel, chunk, chunk, device_chunks);
    const auto addresses =
        member.of_all(links.open(nonce, rank, [&](const link::Attributes& about) {
          return link == "auto" || link == about.name;
        }));
    const auto ranks = member.of_all(link::RankProcess{rank, links::own_thread()});
    links.set_ranks(ranks, addresses, {limit});
    endpoints.open(size, ranks);
  }

  /// Before its end, by all members.
  void close() { CHECK(chunks.close()); }

  static constexpr std::size_t chunk = 16 << 10;
};

/// Items of `run` bytes, each at the beginning of `stride` bytes.
class Strided final : public engine::Layout {
 public:
  Strided(ElementType type, std::size_t run, std::size_t stride)
      : stride_(stride), first_(list(run, stride, INT64_MAX, wire::min_frame_bytes)) {
    size = run;
    contiguous = run == stride;
    element = type;
  }
  using Layout::runs_of;
  std::shared_ptr<const gpu::Runs> runs_of(std::int64_t count, std::size_t bytes) const override {
    return std::make_shared<const gpu::Runs>(list(count, bytes));
  }
  bool pack(const void* from, std::int64_t count, bool is_readable, std::byte* to,
            std::size_t bytes) const override {
    CHECK(is_readable);
    list(count, bytes).for_each([&](const gpu::Run& run) {
      std::memcpy(std::exchange(to, to + run.bytes),
                  static_cast<const std::byte*>(from) + run.offset, run.bytes);
    });
    return true;
  }
  Status unpack(const std::byte* packed, std::size_t bytes, void* buffer, std::int64_t count,
                bool is_readable) const override {
    CHECK(is_readable);
    list(count, bytes).for_each([&](const gpu::Run& run) {
      std::memcpy(static_cast<std::byte*>(buffer) + run.offset,
                  std::exchange(packed, packed + run.bytes), run.bytes);
    });
    return Status::ok;
  }
  const gpu::RunList& first_runs() const override { return first_; }
  Status fetch(const void*, std::byte*, std::size_t) const override {
    CHECK(!"memory that the CPU does not reach");
    return Status::copy_failed;
  }
  /// Bytes of a buffer of `count` items.
  std::size_t extent(std::int64_t count) const { return static_cast<std::size_t>(count) * stride_; }

 private:
  /// The runs of the first `bytes` bytes of `count` items.
  static gpu::RunList list(std::size_t run, std::size_t stride, std::int64_t count,
                           std::size_t bytes) {
    gpu::RunList list;
    const auto items = std::min(static_cast<std::size_t>(count), bytes / run);
    list.add(0, run, static_cast<std::int64_t>(stride), items);
    if (items < static_cast<std::size_t>(count) && bytes % run != 0) {
      list.add(static_cast<std::int64_t>(items * stride), bytes % run);
    }
    return list;
  }
  gpu::RunList list(std::int64_t count, std::size_t bytes) const {
    return list(size, stride_, count, bytes);
  }

  const std::size_t stride_;
  const gpu::RunList first_;
};

/// Memory of the program's, of a device or of the host, which may lie at any address.
class Memory {
 public:
  Memory(int device, std::size_t bytes, std::size_t offset) : device_(device) {
    if (device == gpu::host) {
      host_.resize(bytes + offset);
      data_ = host_.data() + offset;
    } else {
      block_ = static_cast<std::byte*>(sim_malloc(device, bytes + offset));
      CHECK(block_ != nullptr);
      data_ = block_ + offset;
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (block_) sim_free(block_);
  }

  std::byte* data() const { return data_; }
  int device() const { return device_; }

  /// As cudaMemcpy: a device gets it later, behind what its default stream holds.
  void write(const std::byte* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (device_ == gpu::host) {
      std::memcpy(data_, from, bytes);
    } else {
      sim_copy_in(data_, from, bytes);
    }
  }
  /// As cudaMemset.
  static constexpr std::byte filling{0x55};
  void fill(std::size_t bytes) {
    if (device_ == gpu::host) {
      std::fill_n(data_, bytes, filling);
    } else if (bytes > 0) {
      sim_set(data_, static_cast<int>(filling), bytes);
    }
  }
  std::vector<std::byte> read(std::size_t bytes) const {
    std::vector<std::byte> result(bytes);
    if (bytes == 0) return result;
    if (device_ == gpu::host) {
      std::memcpy(result.data(), data_, bytes);
    } else {
      sim_copy_out(result.data(), data_, bytes);
    }
    return result;
  }

 private:
  const int device_;
  std::vector<std::byte> host_;
  std::byte* block_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace mpress::loopback
