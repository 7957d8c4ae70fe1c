// Requests of mpress's own interface: a request of MPI's each, which mpress completes as it does
// the program's.
#pragma once

#include <mpress/mpress.h>

#include <memory>

#include "api/call.hpp"

/// What a handle points to, from the call that begins until the one that completes it.
struct mpress_request_ {
  MPI_Request request = MPI_REQUEST_NULL;
  mpress_outcome* outcome = nullptr;  ///< of what is persistent: set anew by each start
  std::unique_ptr<mpress::api::EarlyCall> early = nullptr;
};

namespace mpress::api {

/// Begins something by `begin(MPI_Request*)`, whose request becomes the program's. `request` may
/// not be null; `call` is what the program asks for, in `scope`.
template <typename Begin>
int begin(mpress_request* request, const mpress_call* call, Call& scope, Begin begin) {
  *request = MPRESS_REQUEST_NULL;
  auto made = std::make_unique<mpress_request_>();
  if (call && (call->mask & MPRESS_CALL_OUTCOME)) made->outcome = call->outcome;
  const int code = begin(&made->request);
  if (made->request != MPI_REQUEST_NULL) {
    made->early = scope.take_early();
    *request = made.release();
  }
  return code;
}

}  // namespace mpress::api
