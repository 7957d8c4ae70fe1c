// One line on standard error that outlives the process that writes it.
#pragma once

#include <span>
#include <string>

namespace mpress::trace {

/// Writes "mpress: TEXT" as one line. Where standard error is a pipe to a launcher, waits up to a
/// second until the launcher has read it: launchers drop what is unread when a job aborts, and an
/// error is often followed by that.
void say(const std::string& text);

/// Lets say() also leave its lines in `room`, which is empty and stays, as far as they fit. There
/// is one for the process, as for standard error: layers say things that know no rank, and settings
/// are refused before there is one. Of ranks that are threads of one process, the last to open its
/// record has the lines of all.
void keep_what_is_said(std::span<char> room);

}  // namespace mpress::trace
