// A global object that is made at load time and never destroyed: a process may end, or abort,
// while other threads or MPI's own exit handlers still call in.
#pragma once

#include <new>

namespace mpress::mpi {

template <typename T>
class Immortal {
 public:
  Immortal() { new (&value_) T; }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;
  ~Immortal() {}

  T* operator->() { return &value_; }
  T& operator*() { return value_; }

 private:
  union {
    T value_;
  };
};

}  // namespace mpress::mpi
