#include "engine/chunk_receive.hpp"

#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "link/counted.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

ChunkReceive::ChunkReceive(Job& job, const wire::Header& header, int source, std::byte* elements,
                           std::uint64_t travel_begin_ns)
    : header_(header),
      source_(source),
      elements_(elements),
      aside_(job.pool.take(header.chunk_raw_bytes(0))),
      chunks_(header.chunks()),
      travel_begin_ns_(travel_begin_ns) {
  if (!aside_) {
    link::fatal("rank " + std::to_string(job.rank) + ": no memory to receive a chunk of " +
                std::to_string(header.chunk_bytes) + " bytes");
  }
  post(job);
}

std::byte* ChunkReceive::place_of(std::uint64_t chunk) const {
  return elements_ ? elements_ + chunk * header_.chunk_bytes : aside_.data();
}

/// Keeps receives posted for the chunks that come next; one at a time where all go the same place.
void ChunkReceive::post(Job& job) {
  const std::uint64_t ahead = elements_ ? requests_.size() : 1;
  while (posted_ < chunks_ && posted_ < taken_ + ahead) {
    const int code = link::mpi().Irecv(
        place_of(posted_), static_cast<int>(header_.chunk_raw_bytes(posted_)), MPI_BYTE, source_,
        static_cast<int>(header_.chunk_tag), job.chunks.comm(), &request_of(posted_));
    if (code != MPI_SUCCESS) {
      link::fatal("rank " + std::to_string(job.rank) +
                  ": MPI refused to receive a chunk from rank " + std::to_string(source_));
    }
    ++posted_;
  }
}

bool ChunkReceive::advance(Job& job) {
  while (taken_ < chunks_) {
    int arrived = 0;
    MPI_Status status;
    const int result = link::mpi().Test(&request_of(taken_), &arrived, &status);
    if (result == MPI_SUCCESS && !arrived) {
      waited_ = true;
      return false;
    }
    take(job, result, status);
  }
  return true;
}

void ChunkReceive::finish(Job& job) {
  while (!advance(job)) {
    MPI_Status status;
    const int result = link::mpi().Wait(&request_of(taken_), &status);
    take(job, result, status);
  }
}

/// One chunk has come, with `result`. What went wrong is told at the end, when nothing of the
/// message is left to come.
void ChunkReceive::take(Job& job, int result, MPI_Status& status) {
  if (result == MPI_SUCCESS) {
    const auto bytes = static_cast<std::size_t>(link::counted::bytes_of(status));
    if (job.pacer.active()) {
      const bool on_its_way = travel_begin_ns_ && !waited_;
      job.pacer.arrive(bytes, on_its_way ? travel_begin_ns_ : trace::now_ns());
    }
    wire_bytes_ += bytes;
    if (elements_) decode(job, bytes);
  } else if (code_ == MPI_SUCCESS) {
    code_ = result;
  }
  job.chunks.received();
  waited_ = false;
  ++taken_;
  post(job);
}

/// A chunk of the size of its elements was not worth encoding and lies where it belongs.
void ChunkReceive::decode(Job& job, std::size_t bytes) {
  const std::size_t raw_bytes = header_.chunk_raw_bytes(taken_);
  if (bytes == raw_bytes || code_ != MPI_SUCCESS) return;
  const std::uint64_t begin = trace::now_ns();
  std::byte* place = place_of(taken_);
  std::memcpy(aside_.data(), place, bytes);
  const Status status = codec::decode(header_.spec, header_.type, aside_.data(), bytes, place,
                                      raw_bytes / element_size(header_.type));
  decode_ns_ += trace::now_ns() - begin;
  if (status == Status::ok) return;
  code_ = job.corrupt_code;
  trace::say("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(taken_) + " of " +
             std::to_string(chunks_) + " from rank " + std::to_string(source_) + " (" +
             to_string(header_.spec) + ", " + std::to_string(header_.count) + " " +
             element_name(header_.type) + " elements) is corrupt: " + status_text(status));
}

}  // namespace mpress::engine
