// When mpress starts in a program that calls it and was not started by `mpress run`, and which
// calls are mpress's own before and after that.
//
// Blocking collective calls of all ranks start it, as mpress_init() does. Other calls need not have
// a counterpart on all ranks, so those that come earlier ("early" below) are left to MPI. Ranks
// must agree on who serves a call: in the start they exchange whether any has received, or called
// collectively, early.
#pragma once

#include <mpi.h>

#include <memory>

#include "config/config.hpp"

namespace mpress::api {

enum class Kind : unsigned char {
  unknown,  ///< of calls of MPI's in a scope
  send,
  receive,               ///< may receive, or probes
  collective,            ///< and blocks
  immediate_collective,  ///< or persistent
};

/// An early call, or what it has begun, as long as that is under way.
class EarlyCall {
 public:
  explicit EarlyCall(Kind kind) : kind_(kind) {}
  EarlyCall(const EarlyCall&) = delete;
  EarlyCall& operator=(const EarlyCall&) = delete;
  ~EarlyCall();

  /// The program frees the request: nothing says when it is over.
  void stays() { stays_ = true; }

 private:
  const Kind kind_;
  bool stays_ = false;
};

/// As mpress reads it, too; what is wrong has ended the process by then.
const Config& settings();

struct Admission {
  bool is_own;  ///< mpress's, where it is at work; else MPI's alone
  std::unique_ptr<EarlyCall> early = nullptr;
};

/// For a call on `comm` in a process whose MPI runs. May start mpress.
Admission admit(Kind kind, MPI_Comm comm);

/// May a call that is not mpress's own have memory of a device?
bool may_have_device_memory();

/// mpress_init(): all ranks of MPI_COMM_WORLD call it.
void start_by_request();

}  // namespace mpress::api
