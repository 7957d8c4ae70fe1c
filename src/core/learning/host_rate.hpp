// A rate that the ranks of a host share, on the sheet of its first rank.
#pragma once

#include <atomic>
#include <cstdint>

#include "codec/float_environment.hpp"
#include "link/board.hpp"
#include "policy/profile.hpp"

namespace mpress::engine {

/// Of one kind of peer, in bytes a second. Thread-safe.
class HostRate {
 public:
  /// `sheet`: null where ranks do not share one. Without open() nothing is published.
  void open(link::Sheet* sheet, policy::Peer peer) {
    if (sheet) shared_ = &sheet->seen[policy::index(peer)];
  }

  /// The rate, where another rank has published one since the last call; 0: none has.
  double take() {
    if (!shared_) return 0;
    const std::uint64_t count = shared_->count.load(std::memory_order_acquire);
    if (taken_.load(std::memory_order_relaxed) == count) return 0;
    if (taken_.exchange(count, std::memory_order_relaxed) == count) return 0;
    return shared_->rate.load(std::memory_order_relaxed);
  }

  void publish(double rate) {
    if (!shared_) return;
    shared_->rate.store(rate, std::memory_order_relaxed);
    count();
  }

  /// Publishes it unless a higher one is there.
  void publish_highest(double rate) {
    if (!shared_) return;
    compute([&] {
      double before = shared_->rate.load(std::memory_order_relaxed);
      while (before < rate && !shared_->rate.compare_exchange_weak(before, rate)) {
      }
    });
    count();
  }

 private:
  void count() {
    std::uint64_t known = shared_->count.fetch_add(1, std::memory_order_acq_rel);
    taken_.compare_exchange_strong(known, known + 1, std::memory_order_relaxed);
  }

  link::Sheet::Seen* shared_ = nullptr;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace mpress::engine
