// A block as it travels: its origin encodes it once, whoever passes it on sends it as it came, and
// each reader decodes it once. So all readers get the same bits, whatever the links between them.
//
// An opaque block keeps the chunks of a block in memory of this process: those that its origin
// encodes, or those that came. Each is a payload shorter than its elements, or the elements; by any
// link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/loss.hpp"

namespace mpress::engine {

struct Runtime;

class OpaqueBlock final : private Slots {
 public:
  explicit OpaqueBlock(Runtime& runtime) : runtime_(runtime) {}
  OpaqueBlock(const OpaqueBlock&) = delete;
  OpaqueBlock& operator=(const OpaqueBlock&) = delete;
  ~OpaqueBlock();

  // At the origin.

  /// Slots of a link that are the block's memory: a device encodes straight to them, and publishes
  /// what is there. Until the block's end they are not used again.
  struct Home {
    link::Link* link = nullptr;  ///< null: the block has memory of its own
    link::Transfer transfer = {};
  };

  /// Begins to encode a region, whose elements stay valid until advance() returns true, or lie in
  /// `packed`. `cut.spec` names a codec. False where memory is short, or the device refuses. Where
  /// there are a home and a `batch`, the device may get it with that.
  bool encode(const Chunking& cut, const Region& region, memory::Buffer packed, const Home& home,
              LaunchBatch* batch = nullptr);

  /// The same with chunks that `made_by` makes, of any sources, which outlive that: in memory of
  /// `device`, or the host's.
  using MakeEncoder = std::function<std::unique_ptr<Encoder>(const Chunking& cut, Slots& slots)>;
  bool make(const Chunking& cut, int device, const Home& home, const MakeEncoder& made_by);

  /// Elements on a device as they are, to be copied once for several readers. They stay valid while
  /// the block is sent.
  void hold(const Chunking& cut, const Region& region);

  /// To be told what encoding gave, in bytes, and took, once it is over without an error.
  void when_encoded(std::function<void(std::size_t bytes, std::uint64_t took_ns)> told) {
    told_ = std::move(told);
  }

  /// What encoding it loses, as far as whoever has it encoded knows: for reports.
  void set_loss(const Loss& loss) { loss_ = loss; }
  const Loss& loss() const { return loss_; }

  /// Makes chunks that are ready; where the calling thread encodes, one. Never waits. True when no
  /// more will be, nor come: see is_whole() and status(). Thread-safe.
  bool advance();

  /// Does a device publish in home() what is left to come? Of a block that is received: what this
  /// process gives it to copy there, which comes from other ranks.
  bool is_published_by_device() const { return is_published_by_device_; }

  /// Where the readers find it, if all of them do in one place. Nothing else is sent then.
  const Home& home() const { return home_; }

  /// Readers have heard of home(), or will.
  void announce() { is_announced_ = true; }

  // Where it is received.

  /// Before begin(): what finds it a home, in which those that it is passed on to find each chunk
  /// as soon as it is there; of a link whose slots devices publish.
  using FindHome = std::function<Home(const Chunking& cut, int device)>;
  void pass_on_from(FindHome find_home) { find_home_ = std::move(find_home); }

  /// Chunks follow, for a buffer of `device` or the host. `cut.may_be_elements`: of those that
  /// come. `is_homeless`: they go to no home.
  void begin(const Chunking& cut, int device, bool is_homeless);

  /// Where a chunk is brought, of at most cut().room() bytes; null: there is no memory.
  std::byte* place_for(std::uint64_t chunk, std::size_t bytes);

  /// For who brings a chunk of `bytes` bytes there: what its device publishes it by, in stream
  /// order; null: nothing.
  std::uint32_t* flag_for(std::uint64_t chunk, std::size_t bytes);

  /// The next chunk is there.
  void note(std::uint64_t chunk, std::size_t bytes, bool is_elements);

  /// It will not be whole, and no more is brought. `status`: which status() gives.
  void give_up(Status status);

  // What there is.

  struct Chunk {
    const std::byte* data;  ///< in memory of lies_on()
    std::size_t bytes;
  };
  const Chunking& cut() const { return cut_; }
  int device() const { return device_; }
  std::uint64_t ready() const { return ready_.load(std::memory_order_acquire); }
  Chunk chunk(std::uint64_t i) const { return {data_of(i), chunks_[i].bytes}; }
  /// The device that reaches the chunks, or the host where they lie in its memory.
  int lies_on() const { return home_.transfer.is_on_host ? gpu::host : device_; }
  /// Do they lie in memory of device() itself?
  bool lies_near() const { return home_.link ? home_.transfer.is_near : device_ != gpu::host; }
  /// Is it known how it is cut?
  bool has_begun() const { return count_.load(std::memory_order_acquire) > 0; }
  bool is_whole() const { return has_begun() && ready() == count_.load(std::memory_order_relaxed); }
  /// Can it be sent: is it whole, or in a home where what is left to come will be found?
  bool may_leave() const {
    // It may become whole in between.
    const bool comes = has_begun() && home_.link && !is_made_.load(std::memory_order_acquire);
    return comes || is_whole();
  }
  bool is_elements(std::uint64_t i) const { return chunks_[i].is_elements; }
  std::size_t bytes() const { return bytes_; }  ///< of those that are there
  std::size_t longest() const;                  ///< of any chunk, as far as is known
  /// Of one that failed: a status.
  Status status() const { return status_.load(std::memory_order_acquire); }

  /// What encoding took, the first time that it is asked for.
  std::uint64_t claim_took_ns() { return took_ns_.exchange(0, std::memory_order_relaxed); }

  /// Of a whole opaque block of one payload: it, in one message, in host memory. Null where there
  /// is no memory for it or the message would be longer than the elements. Waits for a device that
  /// has to copy. Not thread-safe.
  const std::byte* frame(std::size_t& bytes);

 private:
  struct Kept {
    memory::Buffer memory;
    std::size_t bytes = 0;
    bool is_elements = false;
  };

  std::byte* place(std::uint64_t chunk, std::size_t bytes) override;
  gpu::Report* report(std::uint64_t chunk) override;
  bool is_on_host() const override { return home_.transfer.is_on_host; }
  bool is_near() const override { return device_ != gpu::host; }
  std::byte* room_of(std::uint64_t chunk) const;
  const std::byte* data_of(std::uint64_t chunk) const {
    return held_ ? held_ + cut_.offset(chunk) : room_of(chunk);
  }
  void make_chunks();
  bool encode_next();
  void add(std::uint64_t chunk, std::size_t bytes, bool is_elements);
  void fail_home();
  bool is_received() const { return static_cast<bool>(find_home_); }
  bool make_room(std::uint64_t chunk, std::size_t bytes);
  void end();

  Runtime& runtime_;
  Chunking cut_{};
  Loss loss_;
  int device_ = gpu::host;
  Home home_;
  FindHome find_home_;
  bool is_announced_ = false;
  bool is_home_over_ = false;
  bool is_published_by_device_ = false;
  std::vector<Kept> chunks_;
  std::atomic<std::uint64_t> count_{0};  ///< of them, once they have room: other threads may look
  std::atomic<std::uint64_t> ready_{0};
  std::size_t bytes_ = 0;
  std::atomic<Status> status_{Status()};
  std::mutex making_;
  std::atomic<bool> is_made_{true};  ///< no more will be, nor come
  std::function<void(std::size_t, std::uint64_t)> told_;
  std::atomic<std::uint64_t> took_ns_{0};
  const std::byte* held_ = nullptr;  ///< elements of the program's
  memory::Buffer packed_;            ///< elements without gaps, while they are encoded
  memory::Buffer frame_;             ///< of what lies on a device
  std::size_t frame_bytes_ = 0;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace mpress::engine
