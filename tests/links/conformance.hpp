// Cases that every link has to pass: member 0 sends, members 1 and 2 read.
#pragma once

#include "links/ends.hpp"

namespace mpress::links {

void conforms(End& end);

/// Those of a link over a channel beside: it times transfers.
void conforms(ByChannel& end);

/// The sender ends in the middle, as soon as this returns true: the readers read what came, and
/// find that the rest will not come.
bool loses_sender(End& end);

/// The sender's process ends in the middle: the readers read what came, and no call waits for the
/// rest. They end by `shut_down`. Does not return.
void loses(End& end, void (*shut_down)(End&));

}  // namespace mpress::links
