// What takes the place of younger calls that the program's MPI lacks. Programs that look calls up,
// such as language bindings, find them in the front, so they must work: those that ask for the
// status of several requests, and conversions of message handles. For large counts see counted.hpp.

#include <cstring>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {
namespace {

int Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status) {
  bool active = false;
  *index = MPI_UNDEFINED;
  *flag = 0;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    active = true;
    const int code = calls().Request_get_status(requests[i], flag, status);
    if (*flag) *index = i;
    if (code != MPI_SUCCESS || *flag) return code;
  }
  if (active) return MPI_SUCCESS;
  // None to wait for: the empty status, in which Open MPI leaves the error alone.
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
  return calls().Request_get_status(MPI_REQUEST_NULL, flag, status);
}

int Request_get_status_some(int count, const MPI_Request requests[], int* done, int indices[],
                            MPI_Status statuses[]) {
  bool active = false;
  *done = 0;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    active = true;
    int flag = 0;
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[*done];
    const int code = calls().Request_get_status(requests[i], &flag, status);
    if (code != MPI_SUCCESS) return code;
    if (flag) indices[(*done)++] = i;
  }
  if (!active) *done = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

using Fint = decltype(PMPI_Message_c2f(MPI_Message{}));

/// Where handles are integers, MPICH before 5.0 has no function for them.
int Message_toint(MPI_Message message) {
  return calls().Message_c2f ? static_cast<int>(calls().Message_c2f(message))
                             : static_cast<int>(handle_bits(message));
}

MPI_Message Message_fromint(int number) {
  if (calls().Message_f2c) return calls().Message_f2c(number);
  MPI_Message message{};
  std::memcpy(&message, &number, sizeof number);
  return message;
}

Fint Message_c2f(MPI_Message message) { return calls().Message_toint(message); }
MPI_Message Message_f2c(Fint number) { return calls().Message_fromint(static_cast<int>(number)); }

}  // namespace

void stand_in(Calls& calls) {
  const bool integers = calls.Message_toint;  // else they are made of the Fortran forms, if any
  if (!integers) calls.Message_toint = Message_toint;
  if (!integers) calls.Message_fromint = Message_fromint;
  if (integers && !calls.Message_c2f) calls.Message_c2f = Message_c2f;
  if (integers && !calls.Message_f2c) calls.Message_f2c = Message_f2c;
  if (!calls.Request_get_status_any) calls.Request_get_status_any = Request_get_status_any;
  if (!calls.Request_get_status_some) calls.Request_get_status_some = Request_get_status_some;
}

}  // namespace mpress::mpi
