#include "link/mpi/mpi_link.hpp"

#include <array>
#include <string>

#include "mpi/calls/counted.hpp"
#include "trace/message.hpp"
#include "trace/timeline.hpp"

namespace mpress::link {
namespace {

/// Whether it is worth waiting on at the end, where all ranks have to do their part.
class Watch {
 public:
  /// False once nothing has moved for too long: `moved` changes with every step.
  bool goes_on(const MpiLink::Parting& parting, const std::array<std::uint64_t, 3>& moved) {
    const std::uint64_t now_ns = trace::now_ns();
    if (moved != moved_ || moved_ns_ == 0) {
      moved_ = moved;
      moved_ns_ = now_ns;
      return true;
    }
    const std::uint64_t silence_ns = now_ns - moved_ns_;
    if (silence_ns < least_silence_ns || now_ns < looked_ns_ + look_ns) return true;
    looked_ns_ = now_ns;
    const int ended = parting.find_ended();
    if (ended < 0 && silence_ns < longest_silence_ns) return true;
    trace::say("MPI_Finalize waits no longer for " +
               (ended < 0 ? "other ranks: nothing has moved for ten minutes"
                          : "rank " + std::to_string(ended) + ", whose process has ended"));
    return false;
  }

 private:
  /// Whoever has just said farewell may have ended before that is known here.
  static constexpr std::uint64_t least_silence_ns = 2'000'000'000;
  static constexpr std::uint64_t look_ns = 100'000'000;
  /// A rank of another host that is alive may be late by as much as its program computes.
  static constexpr std::uint64_t longest_silence_ns = 600'000'000'000;

  std::array<std::uint64_t, 3> moved_{};
  std::uint64_t moved_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace

void MpiLink::open(MPI_Comm comm, std::uint64_t tags, Memory& memory, Pacer& pacer) {
  comm_ = comm;
  tags_ = tags - 1;
  memory_ = &memory;
  pacer_ = &pacer;
  int ranks = 0;
  mpi::calls().Comm_size(comm_, &ranks);
  outbox.open(ranks);
}

bool MpiLink::drain_one(memory::BufferPool& pool) {
  const mpi::Calls& mpi = mpi::calls();
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpi.Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &status);
  if (!found) return false;
  const MPI_Count bytes = mpi::counted::bytes_of(status);
  // Without memory for it MPI truncates it, which is as good.
  const memory::Buffer nowhere = pool.take(static_cast<std::size_t>(bytes));
  mpi.Mrecv(nowhere.data(), nowhere ? static_cast<int>(bytes) : 0, MPI_BYTE, &message,
            MPI_STATUS_IGNORE);
  received();
  return true;
}

/// A block may be sent before anybody asks for it, so only the number of those that were sent to
/// this rank tells that all have come.
bool MpiLink::say_farewell(Parting& parting) {
  const mpi::Calls& mpi = mpi::calls();
  Watch watch;
  const auto wait_until = [&](const auto& done) {
    while (!done()) {
      parting.proceed();
      if (!watch.goes_on(parting, {received_blocks(), outbox.size(), parting.pending()})) {
        return false;
      }
    }
    return true;
  };
  MPI_Request request = MPI_REQUEST_NULL;
  const auto finish = [&](int code) {
    int done = 0;
    const auto is_over = [&] {
      code = mpi.Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0 || code != MPI_SUCCESS;
    };
    return code == MPI_SUCCESS && wait_until(is_over) && code == MPI_SUCCESS;
  };
  is_parting_.store(true, std::memory_order_relaxed);
  outbox.take_back();
  std::uint64_t sent_to_us = 0;
  if (!finish(mpi.Ireduce_scatter_block(outbox.sent().data(), &sent_to_us, 1, MPI_UINT64_T, MPI_SUM,
                                        comm_, &request))) {
    return false;
  }
  if (!wait_until([&] { return parting.is_idle() && received_blocks() >= sent_to_us; }))
    return false;
  parting.close_others();  // before any rank frees what it shares
  // A sender's MPI may wait for word that its block was received, which MPICH does not give from
  // MPI_Finalize any more.
  return finish(mpi.Ibarrier(comm_, &request));
}

}  // namespace mpress::link
