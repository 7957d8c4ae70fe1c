#include <array>
#include <string>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/chunk_receive.hpp"
#include "link/route.hpp"
#include "mpi/counted.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

namespace {

class MpiChunkReceive final : public ChunkReceive {
 public:
  MpiChunkReceive(Job& job, const wire::Header& header, int source, std::unique_ptr<ChunkSink> sink,
                  std::uint64_t travel_begin_ns)
      : ChunkReceive(header, source, std::move(sink)), travel_begin_ns_(travel_begin_ns) {
    post(job);
  }

  trace::Way way() const override { return trace::Way::chunks; }
  bool advance(Job& job) override;

 private:
  void post(Job& job);
  void take(Job& job, int result, MPI_Status& status);
  int refuse(Job& job, std::size_t bytes) const;
  MPI_Request& request_of(std::uint64_t chunk) { return requests_[chunk % requests_.size()]; }

  std::uint64_t posted_ = 0;
  std::array<MPI_Request, 16> requests_;
  std::array<std::uint64_t, 16> posted_ns_;  ///< when; for the timeline
  bool waited_ = false;  ///< the next chunk was not there when it was looked for
  const std::uint64_t travel_begin_ns_;
};

/// Keeps receives posted for the chunks that come next, as far as the sink has room.
void MpiChunkReceive::post(Job& job) {
  while (posted_ < chunks_ && posted_ < taken_ + requests_.size()) {
    std::byte* place = sink_->place_of(job, posted_, header_.chunk_raw_bytes(posted_));
    if (!place) return;
    posted_ns_[posted_ % posted_ns_.size()] = trace::timeline.now();
    const int code =
        mpi::calls().Irecv(place, static_cast<int>(header_.chunk_raw_bytes(posted_)), MPI_BYTE,
                           source_, static_cast<int>(link::Route(header_.route).number),
                           job.chunks.comm(), &request_of(posted_));
    if (code != MPI_SUCCESS) {
      mpi::fatal("rank " + std::to_string(job.rank) +
                 ": MPI refused to receive a chunk from rank " + std::to_string(source_));
    }
    ++posted_;
  }
}

bool MpiChunkReceive::advance(Job& job) {
  post(job);
  while (taken_ < posted_) {
    int arrived = 0;
    MPI_Status status;
    const int result = mpi::calls().Test(&request_of(taken_), &arrived, &status);
    if (result == MPI_SUCCESS && !arrived) {
      waited_ = true;
      return false;
    }
    take(job, result, status);
  }
  return sink_->settled(job) == chunks_;
}

/// One chunk has come, with `result`. What went wrong is told at the end, when nothing of the
/// message is left to come.
void MpiChunkReceive::take(Job& job, int result, MPI_Status& status) {
  const std::size_t raw_bytes = header_.chunk_raw_bytes(taken_);
  std::size_t bytes = 0;
  if (result == MPI_SUCCESS) {
    bytes = static_cast<std::size_t>(mpi::counted::bytes_of(status));
    if (job.pacer.active()) {
      const bool on_its_way = travel_begin_ns_ && !waited_;
      job.pacer.arrive(bytes, on_its_way ? travel_begin_ns_ : trace::now_ns());
    }
    wire_bytes_ += bytes;
    note_chunk(trace::Kind::arrive, header_, source_, taken_,
               posted_ns_[taken_ % posted_ns_.size()], bytes);
    // An empty one stands for a chunk that its sender could not make.
    if (bytes == 0 || (bytes < raw_bytes && header_.spec.codec == Codec::none)) {
      result = refuse(job, bytes);
    }
  }
  if (result == MPI_SUCCESS) {
    const std::byte* const place = sink_->place_of(job, taken_, raw_bytes);
    sink_->take(job, taken_, {place, bytes, bytes < raw_bytes});
  } else {
    if (code_ == MPI_SUCCESS) code_ = result;
    sink_->skip(job, taken_);
  }
  job.chunks.received();
  waited_ = false;
  ++taken_;
  post(job);
}

/// Says, once, that a chunk is none; returns the error code of that.
int MpiChunkReceive::refuse(Job& job, std::size_t bytes) const {
  if (code_ == MPI_SUCCESS) {
    trace::say("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(taken_) + " of " +
               std::to_string(chunks_) + " from rank " + std::to_string(source_) +
               (bytes == 0 ? " could not be made there" : " is too short"));
  }
  return bytes == 0 ? job.device_code : job.corrupt_code;
}

}  // namespace

std::unique_ptr<ChunkReceive> receive_chunks(Job& job, const wire::Header& header, int source,
                                             std::unique_ptr<ChunkSink> sink,
                                             std::uint64_t travel_begin_ns) {
  return std::make_unique<MpiChunkReceive>(job, header, source, std::move(sink), travel_begin_ns);
}

}  // namespace mpress::engine
