// A queue of a simulated device: does its work in order, but late.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "gpu/codec_queue.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/queue.hpp"
#include "memory.hpp"

namespace mpress::simulated {

/// The device refuses all work after the next `pieces` pieces.
void set_failing(int device, unsigned pieces);
bool is_failed(int device);

/// Decoders wait until `*flag` is not 0; null: for nothing.
void hold_decoders(const int* flag);

/// Calls of Queue::encode() until now.
std::size_t encode_calls();
/// The same of Queue::extent().
std::size_t range_calls();

/// How far a queue is, for others that wait for it. Outlives it.
struct Progress {
  std::atomic<gpu::Event> done{0};
  std::atomic<bool> failed{false};
};

/// Work of queues of the program's.
class Given final : public gpu::PriorWork {
 public:
  void add(std::shared_ptr<Progress> progress, gpu::Event event) {
    marks_.push_back({std::move(progress), event});
  }
  gpu::State query() const override;

 private:
  friend class Queue;
  struct Mark {
    std::shared_ptr<Progress> progress;
    gpu::Event event;
  };
  std::vector<Mark> marks_;
};

/// Who may call a queue, and whether somebody does.
struct Calls {
  const int member = own_member();
  std::atomic<bool> is_under_way{false};
};

/// Where a joint sum left off.
struct SumLeftOff {
  std::size_t round = 0;
  bool has_contributed = false;
  std::size_t added_up = 0;  ///< units of the own part
};

class Queue final : public gpu::Queue, public gpu::CodecQueue, public gpu::CollectiveQueue {
 public:
  /// `is_programs`: of the program's default stream, which no failure of the device concerns.
  Queue(int device, gpu::Priority priority, bool is_programs = false);
  ~Queue() override;

  gpu::CodecQueue& codecs() override { return *this; }
  gpu::CollectiveQueue& collectives() override { return *this; }
  using gpu::Queue::copy;
  gpu::Event copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) override;
  gpu::Event copy_ahead(void* to, const void* from, std::size_t bytes,
                        std::uint32_t* flag) override;
  gpu::Event write(std::uint32_t* flag, std::uint32_t value) override;
  gpu::Event wait(const std::uint32_t* flag, std::uint32_t value) override;
  bool can_wait() const override { return true; }
  using gpu::Queue::copy_near;
  gpu::Event copy_near(std::span<const gpu::Copy> copies, std::uint32_t* flag) override;
  gpu::Event gather(void* packed, const void* buffer, const gpu::Runs& runs) override;
  gpu::Event scatter(void* buffer, const void* packed, const gpu::Runs& runs) override;
  Spec resolve(const Spec& spec, ElementType type, const void* elements,
               std::size_t count) override;
  gpu::Event extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
                    std::uint32_t sequence) override;
  using gpu::CodecQueue::encode;
  gpu::Event encode(const Spec& spec, ElementType type, std::span<const gpu::Piece> pieces,
                    gpu::RangeOf range, std::span<const Extent> extents) override;
  using gpu::CodecQueue::decode;
  gpu::Event decode(const Spec& spec, ElementType type, std::span<const gpu::Incoming> payloads,
                    gpu::Combine how) override;
  gpu::Event add(const Spec& spec, ElementType type, std::span<const gpu::Sum> sums) override;
  gpu::Event combine(gpu::Combine how, ElementType type, std::span<const void* const> inputs,
                     void* out, std::size_t count, bool wide) override;
  gpu::Event combine_in_any_order(gpu::Combine how, ElementType type,
                                  std::span<const void* const> inputs, void* out, std::size_t count,
                                  const codec::Grid& grid) override;
  gpu::Event combine_jointly(gpu::Combine how, ElementType type, const gpu::Joint& joint) override;
  gpu::Event move_jointly(const gpu::JointMove& move) override;
  gpu::Event sum_jointly(ElementType type, const gpu::JointSum& sum) override;
  void wait_for(const gpu::PriorWork& work) override;
  bool signal(void* stream) override;
  gpu::State query(gpu::Event event, gpu::Outcome* outcome) override;
  void drain() override;
  int device() const override { return device_; }
  gpu::Priority priority() const override { return priority_; }

  /// As a stream of the program's does it: several threads may call it.
  void copy_for_program(void* to, const void* from, std::size_t bytes);
  void copy_for_program(void* to, std::vector<std::byte> data);
  void drain_for_program();
  void add_to(Given& work);
  bool is_idle();
  void follow(Queue& earlier) { give_wait(earlier); }
  void wait_for_program(const int* flag) {
    use_thread();
    give_wait(flag);
  }

 private:
  template <class Combining>
  gpu::Event combine_by(Combining combine, ElementType type, std::span<const void* const> inputs,
                        void* out, std::size_t count);
  using Work = std::function<std::optional<gpu::Outcome>()>;
  struct Piece {
    gpu::Event event;
    std::vector<Access> accesses;
    Work work;
    unsigned looks;     ///< until it is done, where no thread does it
    bool is_wait;       ///< for a flag
    bool is_under_way;  ///< what it does with memory is in others' way
  };

  gpu::Event give(std::vector<Access> accesses, Work work, bool is_wait = false);
  gpu::Event give_copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag);
  void give_wait(Queue& earlier);
  void give_wait(const Given::Mark& mark);
  void give_wait(const int* flag);
  gpu::Event last();
  const void* name() const { return progress_.get(); }  ///< as Memory knows the queue
  gpu::Event give_write(std::uint32_t* flag, std::uint32_t value);
  void prepare(gpu::Report* report);
  void publish(gpu::Report* report, gpu::Event event, const gpu::Outcome& outcome);
  void use_thread();
  void begin(Piece& piece);
  void do_first(std::unique_lock<std::mutex>& lock);
  void finish();
  void run(std::mt19937::result_type seed);

  const int device_;
  const gpu::Priority priority_;
  const bool is_programs_;
  std::mt19937 random_;  ///< the caller's; a thread has its own
  Calls calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::map<gpu::Event, gpu::Outcome> outcomes_;  ///< not yet asked for
  gpu::Event given_ = 0;
  gpu::Event done_ = 0;
  std::uint32_t sequence_ = UINT32_MAX - 3;  ///< of the last published report
  SumLeftOff sum_left_off_;                  ///< of the last joint sum; its work alone uses it
  bool failed_ = false;
  bool goes_ahead_ = false;  ///< copy_ahead() was the last
  bool stopping_ = false;
  std::size_t waits_ = 0;  ///< for flags, among the pieces
  std::thread thread_;     ///< of some queues
};

}  // namespace mpress::simulated
