#include "mpi/collectives/neighbours/raw_messages.hpp"

#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {

void RawMessages::start(std::size_t receives, std::size_t sends) {
  receives_.assign(receives, {});
  sends_.assign(sends, MPI_REQUEST_NULL);
  come_ = sent_ = 0;
  code_ = MPI_SUCCESS;
}

void RawMessages::receive(std::size_t number, const Part& part, int from, bool may_be_shorter) {
  if (part.bytes == 0) return;
  receives_[number].expected = may_be_shorter ? 0 : part.bytes;
  note(mpi::counted::Irecv(part.data, part.count, part.type, from, tag_, comm_of(team_),
                           &receives_[number].request));
}

void RawMessages::send(std::size_t number, const Part& part, int to) {
  if (part.bytes == 0) return;
  note(mpi::counted::Isend(part.data, part.count, part.type, to, tag_, comm_of(team_),
                           &sends_[number]));
}

void RawMessages::send_nothing(std::size_t number, int to) {
  note(mpi::counted::Isend(nullptr, 0, MPI_BYTE, to, tag_, comm_of(team_), &sends_[number]));
}

void RawMessages::count(trace::Direction direction, int peer, std::size_t raw_bytes,
                        std::size_t wire_bytes, Codec codec, trace::Reason reason) {
  if (raw_bytes == 0) return;
  const trace::Key key{direction, called_, team_.world_rank(peer), codec, reason};
  trace::add_message(job_.record.row(key), raw_bytes, wire_bytes);
}

void RawMessages::take(Receive& receive, int code, const MPI_Status& status) {
  note(code);
  if (code != MPI_SUCCESS) return;
  receive.bytes = static_cast<std::size_t>(mpi::counted::bytes_of(status));
  if (receive.bytes == 0) return note(job_.device_code);  // its sender has failed
  if (receive.expected > 0 && receive.bytes != receive.expected) note(MPI_ERR_TRUNCATE);
}

// MPI may call this from within its progress engine, where mpi::test() alone may be asked.

bool RawMessages::have_come(std::size_t most) {
  for (; come_ < most; ++come_) {
    Receive& receive = receives_[come_];
    if (receive.request == MPI_REQUEST_NULL) continue;
    int is_complete = 0;
    MPI_Status status;
    const int code = mpi::test(&receive.request, &is_complete, &status);
    if (code == MPI_SUCCESS && !is_complete) return false;
    take(receive, code, status);
  }
  return true;
}

bool RawMessages::are_sent() {
  for (; sent_ < sends_.size(); ++sent_) {
    if (sends_[sent_] == MPI_REQUEST_NULL) continue;
    int is_complete = 0;
    MPI_Status status;
    const int code = mpi::test(&sends_[sent_], &is_complete, &status);
    if (code == MPI_SUCCESS && !is_complete) return false;
    note(code);
  }
  return true;
}

bool RawMessages::may_wait() const { return job_.progress.idle() && !job_.expects_data(); }

bool RawMessages::wait_for(std::size_t most) {
  if (come_ >= most || !may_wait()) return false;
  for (; come_ < most; ++come_) {
    Receive& receive = receives_[come_];
    if (receive.request == MPI_REQUEST_NULL) continue;
    MPI_Status status;
    take(receive, mpi::calls().Wait(&receive.request, &status), status);
  }
  return true;
}

bool RawMessages::wait_until_sent() {
  if (sent_ == sends_.size() || !may_wait()) return false;
  for (; sent_ < sends_.size(); ++sent_) {
    note(mpi::calls().Wait(&sends_[sent_], MPI_STATUS_IGNORE));
  }
  return true;
}

}  // namespace mpress::engine
