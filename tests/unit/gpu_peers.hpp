// Memory of a GPU that processes share.
#pragma once

/// Forks the processes that use `library`, so the caller has not used a GPU yet.
void check_peers(const char* library);
