// MPI_Probe, MPI_Mprobe and the receives of matched messages.

#include "core/asked.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/receive_calls.hpp"
#include "mpi/messages/receive_request.hpp"
#include "preload/export.hpp"

using namespace mpress;

MPRESS_EXPORT int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  return job ? job->probed.probe(*job, source, tag, comm, flag, status)
             : mpi::calls().Iprobe(source, tag, comm, flag, status);
}

MPRESS_EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  if (!job) return mpi::calls().Probe(source, tag, comm, status);
  int code = MPI_SUCCESS;
  job->progress.wait_until([&] {
    int flag = engine::no_answer;
    code = job->probed.probe(*job, source, tag, comm, &flag, status);
    return code != MPI_SUCCESS || flag;
  });
  return code;
}

MPRESS_EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                              MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  return job ? job->probed.match(*job, source, tag, comm, flag, message, status)
             : mpi::calls().Improbe(source, tag, comm, flag, message, status);
}

MPRESS_EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                             MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  if (!job) return mpi::calls().Mprobe(source, tag, comm, message, status);
  int code = MPI_SUCCESS;
  job->progress.wait_until([&] {
    int flag = engine::no_answer;
    code = job->probed.match(*job, source, tag, comm, &flag, message, status);
    return code != MPI_SUCCESS || flag;
  });
  return code;
}

namespace {

engine::ReceiveArguments arguments(void* buffer, MPI_Count count, MPI_Datatype type) {
  return {buffer, count, type, MPI_COMM_NULL, engine::asked_outcome()};
}

int mrecv(const engine::ReceiveArguments& given, MPI_Message* message, MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  const auto matched = job ? job->probed.claim(*message) : nullptr;
  if (!matched)
    return job ? engine::receive_matched(*job, given, message, status)
               : mpi::counted::Mrecv(given.buffer, given.count, given.type, message, status);
  *message = MPI_MESSAGE_NULL;
  const int code = matched->deliver(*job, trace::Op::mrecv, given, status);
  return code == MPI_SUCCESS ? code : matched->comm->raise(code);
}

int imrecv(const engine::ReceiveArguments& given, MPI_Message* message, MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  const auto matched = job ? job->probed.claim(*message) : nullptr;
  if (!matched) {
    return job ? engine::receive_matched_later(*job, given, message, request)
               : mpi::counted::Imrecv(given.buffer, given.count, given.type, message, request);
  }
  *message = MPI_MESSAGE_NULL;
  auto entry = std::make_shared<engine::ReceiveRequest>(*job);
  engine::ReceiveArguments on_comm = given;
  on_comm.comm = matched->comm->comm;
  entry->receive.describe(trace::Op::imrecv, on_comm);
  const int code = matched->deliver_later(*entry, request);
  if (entry->must_be_kept()) engine::file(*job, *request, std::move(entry));
  return code;
}

}  // namespace

#define MPRESS_MRECV(suffix, Count, ...)                                             \
  MPRESS_EXPORT int MPI_Mrecv##suffix(void* buffer, Count count, MPI_Datatype type,  \
                                      MPI_Message* message, MPI_Status* status) {    \
    return mrecv(arguments(buffer, count, type), message, status);                   \
  }                                                                                  \
  MPRESS_EXPORT int MPI_Imrecv##suffix(void* buffer, Count count, MPI_Datatype type, \
                                       MPI_Message* message, MPI_Request* request) { \
    return imrecv(arguments(buffer, count, type), message, request);                 \
  }
MPRESS_BOTH_COUNTS(MPRESS_MRECV)
