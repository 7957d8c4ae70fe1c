// Starts of persistent requests that follow a stream, which the program named when it made them.
#pragma once

namespace mpress::engine {

/// While it lives, this thread starts such a request, if `follows`: what default streams hold is no
/// concern of its.
class FollowedStream {
 public:
  explicit FollowedStream(bool follows) : outer_(is_any_) { is_any_ = follows; }
  FollowedStream(const FollowedStream&) = delete;
  FollowedStream& operator=(const FollowedStream&) = delete;
  ~FollowedStream() { is_any_ = outer_; }

  static bool is_any() { return is_any_; }

 private:
  inline static thread_local bool is_any_ = false;
  const bool outer_;
};

}  // namespace mpress::engine
