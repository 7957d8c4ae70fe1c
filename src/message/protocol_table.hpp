// Which protocol carries messages of which sizes, as this rank knows its links and data now: what
// `mpress info --protocols` prints.
#pragma once

namespace mpress::engine {

struct CommSettings;
struct Layout;
struct Messaging;

/// To the file that MPRESS_PROTOCOLS names, which is set, rank 0 writes the table of its messages
/// of floats in MPI_COMM_WORLD to a rank of its host and to one of another, from memory of the host
/// and, where a GPU is in use, of that: as JSON, whose fields docs/ways.md names. It says so where
/// the file cannot be written. `floats`: items of one each; `world`: the settings of
/// MPI_COMM_WORLD.
void keep_protocol_table(Messaging& messaging, const Layout& floats, const CommSettings& world);

}  // namespace mpress::engine
