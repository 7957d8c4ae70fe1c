// A lane of a simulated device: does its work in order, but late.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "memory.hpp"

namespace mpress::simulated {

/// The device refuses all work after the next `pieces` pieces.
void set_failing(int device, unsigned pieces);
bool is_failed(int device);

class Lane final : public gpu::Lane {
 public:
  Lane(int device, gpu::Priority priority);
  ~Lane() override;

  using gpu::Lane::copy;
  gpu::Ticket copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) override;
  gpu::Ticket copy_near(void* to, const void* from, std::size_t bytes) override;
  gpu::Ticket gather(void* packed, const void* buffer, std::span<const gpu::Run> runs) override;
  gpu::Ticket scatter(void* buffer, const void* packed, std::span<const gpu::Run> runs) override;
  Spec resolve(const Spec& spec, ElementType type, const void* elements,
               std::size_t count) override;
  using gpu::Lane::encode;
  gpu::Ticket encode(const Spec& spec, ElementType type,
                     std::span<const gpu::Piece> pieces) override;
  gpu::Ticket decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                     void* elements, std::size_t count) override;
  gpu::State look(gpu::Ticket ticket, gpu::Outcome* outcome) override;
  void drain() override;
  int device() const override { return device_; }
  gpu::Priority priority() const override { return priority_; }

 private:
  using Work = std::function<std::optional<gpu::Outcome>()>;
  struct Piece {
    gpu::Ticket ticket;
    std::vector<Access> accesses;
    Work work;
    unsigned looks;  ///< until it is done, where no thread does it
  };

  gpu::Ticket add(std::vector<Access> accesses, Work work);
  gpu::Ticket tell(std::uint32_t* flag);
  void do_first(std::unique_lock<std::mutex>& lock);
  void finish();
  void run(std::mt19937::result_type seed);

  const int device_;
  const gpu::Priority priority_;
  std::mt19937 random_;  ///< the caller's; a thread has its own
  std::atomic<bool> in_call_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  std::map<gpu::Ticket, gpu::Outcome> outcomes_;  ///< not yet asked for
  gpu::Ticket given_ = 0;
  gpu::Ticket done_ = 0;
  bool failed_ = false;
  bool stopping_ = false;
  std::thread thread_;  ///< of some lanes
};

}  // namespace mpress::simulated
