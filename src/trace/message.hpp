// One line on standard error that outlives the process that writes it.
#pragma once

#include <string>

namespace mpress::trace {

/// Writes "mpress: TEXT" as one line. Where standard error is a pipe to a launcher, waits up to a
/// second until the launcher has read it: launchers drop what is unread when a job aborts, and an
/// error is often followed by that.
void say(const std::string& text);

}  // namespace mpress::trace
