// A queue of a CUDA device: a stream of its own, whose work reports into mapped host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <optional>
#include <vector>

#include "gpu/codec_queue.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/cuda/gather.hpp"
#include "gpu/cuda/tell.hpp"
#include "gpu/queue.hpp"
#include "memory/device.hpp"

namespace mpress::gpu {

class CudaQueue final : public Queue, public CodecQueue, public CollectiveQueue {
 public:
  /// Throws memory::CudaError where the device refuses. No other call throws.
  CudaQueue(int device, Priority priority);
  ~CudaQueue() override;

  CodecQueue& codecs() override { return *this; }
  CollectiveQueue& collectives() override { return *this; }
  using Queue::copy;
  Event copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) override;
  Event copy_ahead(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) override;
  Event write(std::uint32_t* flag, std::uint32_t value) override;
  Event wait(const std::uint32_t* flag, std::uint32_t value) override;
  bool can_wait() const override { return can_wait_; }
  using Queue::copy_near;
  Event copy_near(std::span<const Copy> copies, std::uint32_t* flag) override;
  Event gather(void* packed, const void* buffer, const Runs& runs) override;
  Event scatter(void* buffer, const void* packed, const Runs& runs) override;
  Spec resolve(const Spec& spec, ElementType type, const void* elements,
               std::size_t count) override;
  Event extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
               std::uint32_t sequence) override;
  using CodecQueue::encode;
  Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces, RangeOf range,
               std::span<const Extent> extents) override;
  using CodecQueue::decode;
  Event decode(const Spec& spec, ElementType type, std::span<const Incoming> payloads,
               Combine how) override;
  Event add(const Spec& spec, ElementType type, std::span<const Sum> sums) override;
  Event combine(Combine how, ElementType type, std::span<const void* const> inputs, void* out,
                std::size_t count, bool wide) override;
  Event combine_in_any_order(Combine how, ElementType type, std::span<const void* const> inputs,
                             void* out, std::size_t count, const codec::Grid& grid) override;
  Event combine_jointly(Combine how, ElementType type, const Joint& joint) override;
  Event move_jointly(const JointMove& move) override;
  Event sum_jointly(ElementType type, const JointSum& sum) override;
  void wait_for(const PriorWork& work) override;
  bool signal(void* stream) override;
  State query(Event event, Outcome* outcome) override;
  void drain() override;
  int device() const override { return device_; }
  Priority priority() const override { return priority_; }

 private:
  /// Written by the device, read by the host.
  struct Mapped {
    std::uint32_t done;  ///< low bits of the last event whose work was no codec's
    std::uint32_t told;  ///< the same, as telling_ knows it
    Extent extent;       ///< what resolve() asked for
  };

  /// Where a codec reports: in memory of the queue's own, or that the caller publishes.
  class ReportPlace {
   public:
    explicit ReportPlace(Report* published);
    Report* get() const { return at_; }

   private:
    std::optional<memory::PinnedSlot> own_;
    Report* at_;
  };

  /// Pinned memory from which a list of runs is uploaded.
  struct Upload {
    PlacedRun* runs;
    std::size_t capacity;
    Event last_use;
  };

  template <class Enqueue>
  Event give(Enqueue enqueue, std::size_t pieces = 1);
  Report* report_of(Event event, Report* published = nullptr);
  void order(cudaStream_t earlier, cudaStream_t later);
  template <class T>
  T* as_mapped(T* memory) const;
  void write_value(std::uint32_t* flag, std::uint32_t value) { write_value(flag, value, stream_); }
  void write_value(std::uint32_t* flag, std::uint32_t value, cudaStream_t stream);
  void open_telling();
  void mark(Event event);
  Tell tell(Event event, std::uint32_t* flag = nullptr) const;
  void move_runs(Direction direction, void* buffer, void* packed, const Runs& runs);
  PlacedRun* upload_room(std::size_t count);
  void* workspace(std::size_t bytes);
  void fail(Event event);
  bool is_failed(Event event) const;
  void observe(Event event);

  const int device_;
  const Priority priority_;
  cudaStream_t stream_ = nullptr;
  /// Tells of copies while stream_ is at the next one. Nothing is copied there: the device would
  /// have what follows a copy done by the engine that copies, when that has nothing else to do.
  cudaStream_t telling_ = nullptr;
  cudaEvent_t order_ = nullptr;  ///< of order()
  Mapped* mapped_ = nullptr;
  Mapped* mapped_device_ = nullptr;       ///< as the device sees it
  memory::DeviceBuffer counters_;         ///< zero; see Tell
  memory::DeviceBuffer workspace_;        ///< zero between calls
  std::map<Event, ReportPlace> reports_;  ///< of codecs, until they are asked for
  std::vector<Upload> uploads_;

  bool goes_ahead_ = false;  ///< copy_ahead() was the last; telling_ may be behind
  Event first_ahead_ = 0;    ///< of the last run of those
  Event last_ahead_ = 0;
  bool maps_as_is_ = false;  ///< the device knows mapped memory by the host's address
  bool can_wait_ = false;
  std::uint32_t extents_ = 0;  ///< that resolve() asked for
  Event given_ = 0;
  Event done_ = 0;
  Event failed_from_ = 0;  ///< the first that failed; 0: none
  Event failed_to_ = 0;    ///< the last, once the queue works again
  std::uint32_t looks_ = 0;
};

}  // namespace mpress::gpu
