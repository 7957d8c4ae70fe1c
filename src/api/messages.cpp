// Messages, and what completes requests.

#include <algorithm>
#include <vector>

#include "api/call.hpp"
#include "api/entries.hpp"
#include "api/request.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/start_together.hpp"

using namespace mpress;
using api::Call;
using api::Kind;

namespace {

/// Is a place given for what the call tells? `null` says what is wrong where none is.
int check_place(MPI_Comm comm, const void* place, const char* null) {
  return place ? MPI_SUCCESS : api::raise(comm, MPI_ERR_ARG, null);
}
constexpr const char* no_request = "request is null; expected where to put one";
constexpr const char* no_message = "message is null; expected where one is put";
constexpr const char* no_flag = "flag is null; expected where to tell whether there is a message";

/// Makes a call whose requests MPI knows by handles of its own, and takes those back.
class Handles {
 public:
  Handles(int count, mpress_request* requests) : requests_(requests) {
    handles_.reserve(static_cast<std::size_t>(std::max(count, 0)));
    for (int i = 0; i < count; ++i) {
      handles_.push_back(requests[i] ? requests[i]->request : MPI_REQUEST_NULL);
    }
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  MPI_Request* data() { return handles_.data(); }

  /// What MPI has let go of ends here, too.
  int end(int code) {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      mpress_request& one = requests_[i];
      if (!one) continue;
      one->request = handles_[i];
      if (handles_[i] != MPI_REQUEST_NULL) continue;
      delete one;
      one = MPRESS_REQUEST_NULL;
    }
    return code;
  }

 private:
  mpress_request* const requests_;
  std::vector<MPI_Request> handles_;
};

/// Of a call on requests alone.
void enter_with_requests() {
  api::set_error_text({});
  engine::wait_for_start_together();
}

int check_all(int count, const mpress_request* requests) {
  enter_with_requests();
  if (count < 0) {
    return api::raise(MPI_COMM_NULL, MPI_ERR_COUNT,
                      "count is " + std::to_string(count) + "; expected 0 or more requests");
  }
  if (count > 0 && !requests) {
    return api::raise(MPI_COMM_NULL, MPI_ERR_ARG, "requests is null; expected an array of them");
  }
  return MPI_SUCCESS;
}

/// What a persistent request told of its last round. MPI may have it.
void forget_outcome(mpress_request request) {
  if (request && request->outcome) *request->outcome = {0, 0};
}

/// A call on one request, without memory of its own.
template <typename Complete>
int on_one(mpress_request* request, Complete complete) {
  enter_with_requests();
  if (!request) return api::raise(MPI_COMM_NULL, MPI_ERR_ARG, "request is null; expected one");
  MPI_Request handle = *request ? (*request)->request : MPI_REQUEST_NULL;
  const int code = complete(&handle);
  if (!*request) return code;
  (*request)->request = handle;
  if (handle == MPI_REQUEST_NULL) {
    delete *request;
    *request = MPRESS_REQUEST_NULL;
  }
  return code;
}

/// What a start came to.
int started(int code) {
  const engine::Job* const job = engine::active_job();
  if (code != MPI_SUCCESS && job && code == job->device_code) {
    api::set_error_text(
        "mpress: call.stream: the device refuses it, or it is being captured into a graph");
  }
  return code;
}

}  // namespace

extern "C" {

int mpress_send(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                MPI_Comm comm, const mpress_call* call) {
  const Call scope(Kind::send, comm, call, {buffer});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  return MPI_Send_c(buffer, count, type, destination, tag, comm);
}

int mpress_recv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                MPI_Comm comm, MPI_Status* status, const mpress_call* call) {
  const Call scope(Kind::receive, comm, call, {buffer});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  return MPI_Recv_c(buffer, count, type, source, tag, comm, status);
}

int mpress_sendrecv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, int destination,
                    int sent_tag, void* received, MPI_Count received_count,
                    MPI_Datatype received_type, int source, int received_tag, MPI_Comm comm,
                    MPI_Status* status, const mpress_call* call) {
  const Call scope(Kind::receive, comm, call, {sent, received});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  return MPI_Sendrecv_c(sent, sent_count, sent_type, destination, sent_tag, received,
                        received_count, received_type, source, received_tag, comm, status);
}

#define MPRESS_BEGUN(kind, name, Name, Buffer)                                                     \
  int mpress_##name(Buffer buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,          \
                    MPI_Comm comm, mpress_request* request, const mpress_call* call) {             \
    Call scope(Kind::kind, comm, call, {buffer});                                                  \
    if (scope.code() != MPI_SUCCESS) return scope.code();                                          \
    if (const int code = check_place(comm, request, no_request); code != MPI_SUCCESS) return code; \
    return api::begin(request, call, scope, [&](MPI_Request* begun) {                              \
      return MPI_##Name(buffer, count, type, peer, tag, comm, begun);                              \
    });                                                                                            \
  }
MPRESS_BEGUN(send, isend, Isend_c, const void*)
MPRESS_BEGUN(receive, irecv, Irecv_c, void*)
MPRESS_BEGUN(send, send_init, Send_init_c, const void*)
MPRESS_BEGUN(receive, recv_init, Recv_init_c, void*)

int mpress_probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const Call scope(Kind::receive, comm, nullptr, {});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  return MPI_Probe(source, tag, comm, status);
}

int mpress_iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const Call scope(Kind::receive, comm, nullptr, {});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  if (const int code = check_place(comm, flag, no_flag); code != MPI_SUCCESS) return code;
  return MPI_Iprobe(source, tag, comm, flag, status);
}

int mpress_mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  const Call scope(Kind::receive, comm, nullptr, {});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  if (const int code = check_place(comm, message, no_message); code != MPI_SUCCESS) return code;
  return MPI_Mprobe(source, tag, comm, message, status);
}

int mpress_improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                   MPI_Status* status) {
  const Call scope(Kind::receive, comm, nullptr, {});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  if (const int code = check_place(comm, flag, no_flag); code != MPI_SUCCESS) return code;
  if (const int code = check_place(comm, message, no_message); code != MPI_SUCCESS) return code;
  return MPI_Improbe(source, tag, comm, flag, message, status);
}

int mpress_mrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                 MPI_Status* status, const mpress_call* call) {
  Call scope(Kind::receive, MPI_COMM_NULL, call, {buffer});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  if (const int code = check_place(MPI_COMM_NULL, message, no_message); code != MPI_SUCCESS)
    return code;
  return MPI_Mrecv_c(buffer, count, type, message, status);
}

int mpress_imrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                  mpress_request* request, const mpress_call* call) {
  Call scope(Kind::receive, MPI_COMM_NULL, call, {buffer});
  if (scope.code() != MPI_SUCCESS) return scope.code();
  if (const int code = check_place(MPI_COMM_NULL, message, no_message); code != MPI_SUCCESS)
    return code;
  if (const int code = check_place(MPI_COMM_NULL, request, no_request); code != MPI_SUCCESS)
    return code;
  return api::begin(request, call, scope, [&](MPI_Request* begun) {
    return MPI_Imrecv_c(buffer, count, type, message, begun);
  });
}

int mpress_wait(mpress_request* request, MPI_Status* status) {
  return on_one(request, [&](MPI_Request* handle) { return MPI_Wait(handle, status); });
}

int mpress_test(mpress_request* request, int* flag, MPI_Status* status) {
  return on_one(request, [&](MPI_Request* handle) { return MPI_Test(handle, flag, status); });
}

int mpress_start(mpress_request* request) {
  if (request) forget_outcome(*request);
  return started(on_one(request, [](MPI_Request* handle) { return MPI_Start(handle); }));
}

int mpress_cancel(mpress_request* request) {
  return on_one(request, [](MPI_Request* handle) { return MPI_Cancel(handle); });
}

int mpress_request_free(mpress_request* request) {
  if (request && *request && (*request)->early) {
    int is_over = 0;
    mpi::calls().Request_get_status((*request)->request, &is_over, MPI_STATUS_IGNORE);
    if (!is_over) (*request)->early->stays();
  }
  return on_one(request, [](MPI_Request* handle) { return MPI_Request_free(handle); });
}

int mpress_waitall(int count, mpress_request* requests, MPI_Status* statuses) {
  if (const int code = check_all(count, requests); code != MPI_SUCCESS) return code;
  Handles handles(count, requests);
  return handles.end(MPI_Waitall(count, handles.data(), statuses));
}

int mpress_waitany(int count, mpress_request* requests, int* index, MPI_Status* status) {
  if (const int code = check_all(count, requests); code != MPI_SUCCESS) return code;
  Handles handles(count, requests);
  return handles.end(MPI_Waitany(count, handles.data(), index, status));
}

int mpress_testall(int count, mpress_request* requests, int* flag, MPI_Status* statuses) {
  if (const int code = check_all(count, requests); code != MPI_SUCCESS) return code;
  Handles handles(count, requests);
  return handles.end(MPI_Testall(count, handles.data(), flag, statuses));
}

int mpress_startall(int count, mpress_request* requests) {
  if (const int code = check_all(count, requests); code != MPI_SUCCESS) return code;
  std::for_each(requests, requests + count, forget_outcome);
  Handles handles(count, requests);
  return started(handles.end(MPI_Startall(count, handles.data())));
}

}  // extern "C"
