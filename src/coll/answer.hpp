// The outcome of an offer among the members of a team.
#pragma once

namespace mpress::engine {

/// All members find the same.
enum class Answer : unsigned char {
  accepted,  ///< the call is under way
  not_yet,   ///< memory is being opened; this call goes otherwise, and the next may go so
  not_now,   ///< a member's data does not allow it
  never,     ///< members share a device
};

}  // namespace mpress::engine
