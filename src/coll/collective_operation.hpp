// A collective call that mpress serves, whatever it does and in whichever form.
#pragma once

#include "codec/float_environment.hpp"
#include "core/operation.hpp"
#include "core/status.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// A blocking call waits for it, a non-blocking one has it once, a persistent one starts it again
/// and again.
class CollectiveOperation : public Operation {
 public:
  /// From now on advance() lets it proceed. Not while it is under way. `modes`: those of the thread
  /// that makes the call, with which raw and lossless sums are made, whichever thread makes them.
  virtual void start(FloatModes modes) = 0;

  /// The program waits for it.
  virtual void await(bool is_awaited) = 0;

  /// For a call that blocks, between two calls of advance(): see Runner.
  virtual bool wait() = 0;

  /// Has a device been given all of it, in such a way that a stream of the program's waits for it?
  /// Then it need not be waited for here.
  virtual bool is_in_stream() const { return false; }

  /// How it is counted.
  virtual trace::Called called() const = 0;

  /// Once it is over: the first failure.
  virtual Status status() const = 0;

  /// Then: what Outcome::bound says.
  virtual double bound() const = 0;
};

}  // namespace mpress::engine
