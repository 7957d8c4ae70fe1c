// One way out for a parcel: the readers that one link reaches.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "engine/devices.hpp"
#include "engine/pipeline/parcel.hpp"
#include "link/link.hpp"

namespace mpress::engine {

class Job;

class ParcelOutlet {
 public:
  /// `transfer` has slots for all chunks; it is the outlet's from now on. By MPI, `lends`: none has
  /// memory, and the parcel's is sent from.
  ParcelOutlet(Job& job, link::Link& link, const link::Transfer& transfer,
               std::shared_ptr<Parcel> parcel, bool lends)
      : job_(job), link_(link), transfer_(transfer), parcel_(std::move(parcel)), lends_(lends) {}
  ParcelOutlet(const ParcelOutlet&) = delete;
  ParcelOutlet& operator=(const ParcelOutlet&) = delete;
  ~ParcelOutlet();

  /// Publishes what the parcel has, as devices have copied it; readers may have heard of the
  /// transfer, or will. Never waits. True once all is published, or will not come: readers learn of
  /// that, too.
  bool advance();

  /// Must somebody call advance() for the readers to get all?
  bool needs_host() const { return !is_over_ && !is_given(); }

  int code() const { return code_; }  ///< an MPI error code, of this outlet's own

 private:
  /// Has a device been given all of the work, so that it publishes what is left?
  bool is_given() const {
    return link_.devices_publish() && copied_ == parcel_->cut().chunks() && code_ == MPI_SUCCESS;
  }
  bool copy_next();
  void publish_copied();
  void fail();

  Job& job_;
  link::Link& link_;
  const link::Transfer transfer_;
  const std::shared_ptr<Parcel> parcel_;
  const bool lends_;
  std::uint64_t copied_ = 0;     ///< chunks whose copies were given, or that were lent
  std::uint64_t published_ = 0;  ///< of those, or known to have been
  std::deque<gpu::Event> copies_;
  bool is_over_ = false;
  int code_ = MPI_SUCCESS;
  QueueLease queue_;
};

}  // namespace mpress::engine
