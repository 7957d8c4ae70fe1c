// Under `mpress run` every rank announces itself through its record file, so that a rank without
// mpress, or with other settings, is found before the first message and without communication.
#pragma once

#include <string>

#include "trace/record.hpp"

namespace mpress::engine {

/// The file of this process in the directory that `mpress run` named.
std::string record_path(const std::string& directory, int rank);

/// Where its timeline is.
std::string timeline_path(const std::string& directory, int rank);

/// Waits until every rank of this host has announced itself with the same settings as ours.
/// Returns false and an error that names the rank and what differs, or the ranks that are
/// missing after `timeout_seconds`.
bool check_presence(const std::string& directory, const trace::RecordHeader& own,
                    std::uint64_t timeout_ns, std::string& error);

}  // namespace mpress::engine
