// Every environment variable that mpress reads, documented once: `mpress info` prints this table,
// and any other MPRESS_* variable is an error.
#pragma once

#include <string>

namespace mpress {

struct Knob {
  const char* name;
  const char* fallback;  ///< what holds when the variable is not set
  const char* meaning;
};

inline constexpr Knob knobs[] = {
    {"MPRESS_CODEC", "auto",
     "Codec spec for messages: none, auto, mpc[:dim=N], zfp:RATE, szp:abs=E, szp:rel=E "
     "(,mode=fast|dense). auto is lossless: mpc where it pays, else none."},
    {"MPRESS_FORCE", "0", "1: compress every eligible message, whether or not it pays."},
    {"MPRESS_SAME_BITS", "0",
     "1: a broadcast that a lossy codec changes writes its root's buffer, too, so that all ranks "
     "have the same bits; for programs whose ranks decide alike by what was broadcast."},
    {"MPRESS_REPRODUCIBLE", "0",
     "1: sums, minima and maxima of floats have the same bits whatever the order of the ranks, the "
     "links and the algorithms; mpress then serves all of these reductions."},
    {"MPRESS_ISO_CHECK", "0",
     "1: mpress_iso_neighborhood_create compares the lists of all processes, and fails on all of "
     "them where they differ."},
    {"MPRESS_MEASURE_ERROR", "0",
     "1: measure what codecs without a bound (zfp) lose, for the report: each rank also decodes "
     "what it encodes with them, on the host."},
    {"MPRESS_THRESHOLD", "64K",
     "Smallest message that is considered, in bytes (suffixes K, M, G; 0 allowed). Unless it is "
     "set, slow links that were measured have a smaller one, down to 4K."},
    {"MPRESS_DISABLE", "0", "1: load, but leave every call alone."},
    {"MPRESS_DISABLE_P2P", "0",
     "1: send no compressed point-to-point message (still decode them)."},
    {"MPRESS_DISABLE_PERSISTENT", "0", "1: compress nothing that MPI_Start or MPI_Startall sends."},
    {"MPRESS_DISABLE_SENDRECV", "0",
     "1: compress nothing that MPI_Sendrecv, MPI_Sendrecv_replace and their non-blocking forms "
     "send."},
    {"MPRESS_DISABLE_DERIVED", "0", "1: compress no message of a datatype with gaps."},
    {"MPRESS_DISABLE_ALLTOALL", "0", "1: leave MPI_Alltoall, _Alltoallv and _Alltoallw to MPI."},
    {"MPRESS_DISABLE_GATHER", "0", "1: leave MPI_Gather and MPI_Gatherv to MPI."},
    {"MPRESS_DISABLE_SCATTER", "0", "1: leave MPI_Scatter and MPI_Scatterv to MPI."},
    {"MPRESS_DISABLE_ALLGATHER", "0", "1: leave MPI_Allgather and MPI_Allgatherv to MPI."},
    {"MPRESS_DISABLE_BCAST", "0", "1: leave MPI_Bcast to MPI."},
    {"MPRESS_DISABLE_NEIGHBOR", "0",
     "1: leave MPI_Neighbor_allgather, _alltoall and their forms to MPI, and encode nothing that "
     "mpress_iso_neighbor_* calls send."},
    {"MPRESS_DISABLE_ALLREDUCE", "0", "1: leave MPI_Allreduce to MPI."},
    {"MPRESS_DISABLE_REDUCE", "0", "1: leave MPI_Reduce to MPI."},
    {"MPRESS_DISABLE_REDUCE_SCATTER", "0",
     "1: leave MPI_Reduce_scatter and MPI_Reduce_scatter_block to MPI."},
    {"MPRESS_DISABLE_ZERO_COPY", "0",
     "1: other ranks never open this program's GPU memory; raw messages from GPU to GPU are copied "
     "to mpress's own first."},
    {"MPRESS_CHUNK", "1M",
     "Compressed messages of at least two chunks of this many bytes travel in chunks, so that "
     "encoding, wire and decoding overlap (a multiple of 4096; 0: in one piece). Unless it is set, "
     "those in memory of GPUs that go by MPI have the profile's."},
    {"MPRESS_POOL_LIMIT", "1G",
     "Bytes that chunks may hold until they are received, of the host's memory and, for messages "
     "from GPU to GPU, of the GPUs', where the default is a 32nd of a GPU's memory if that is "
     "more; "
     "beyond, messages go in one piece, or by MPI. Of the program's own GPU memory, others may "
     "keep "
     "open four times as much."},
    {"MPRESS_HOST_WINDOW", "auto",
     "Bytes that a collective call keeps on their way between GPUs by memory of their host, of all "
     "its ranks, so that they stay in the processor's cache (auto: a ninth of that, 32M at "
     "least)."},
    {"MPRESS_LINK", "auto",
     "How messages in memory of GPUs travel to ranks of the same host: auto (from GPU to GPU where "
     "they reach each other and MPI does not do so itself, else by host memory that both have "
     "pinned), peer (the same under any MPI), host (by host memory, under any MPI) or mpi (through "
     "MPI)."},
    {"MPRESS_JOINT_KERNELS", "auto",
     "Whether a reduction, short blocks or a broadcast of data on linked GPUs may be one kernel on "
     "each, which waits there for the others: auto (where each rank has a GPU to itself), always "
     "(also where ranks share one, which takes a service that runs their kernels at once) or "
     "never."},
    {"MPRESS_PROGRESS", "",
     "Who moves messages that are under way: calls (the program's calls of MPI), or thread (a "
     "thread of mpress's besides, so that they move while the program computes; MPI has to "
     "provide MPI_THREAD_MULTIPLE). Unset: calls, and under MPI_THREAD_MULTIPLE a thread from the "
     "first collective call on that does not block, where such calls need one."},
    {"MPRESS_GPU", "cuda",
     "What serves messages in memory of GPUs: cuda (NVIDIA's, with libmpress_cuda.so), off (they "
     "are left to MPI), or the path of another library, which is loaded at once."},
    {"MPRESS_GPU_AWARE", "auto",
     "Whether MPI takes memory of GPUs itself: what is not compressed is then left to it. auto "
     "asks "
     "it; 0 or 1 where it does not know."},
    {"MPRESS_PROFILE", "",
     "What mpress tune has measured on this machine: a file, or off. Default: that of this "
     "hardware "
     "in the user's cache directory."},
    {"MPRESS_LINK_RATE", "",
     "Pace received messages as if over a link of this rate (10Gbit, 100Mbit, or bytes a second); "
     "a simulation, for study."},
    {"MPRESS_LEARN", "auto",
     "What links cost is measured in MPI_Init, and from the program's messages: auto (where "
     "neither "
     "a profile nor MPRESS_LINK_RATE tells), off (what they do not tell stays raw), or all (they "
     "are not asked)."},
    {"MPRESS_ALGORITHM", "",
     "Algorithms of collective calls that mpress serves, as bcast=two-shot,alltoall=pairwise, in "
     "place of what their costs tell (docs/tuning.md lists them). One that the communicator's "
     "hosts "
     "do not suit is not taken."},
    {"MPRESS_JOB", "",
     "Identity of the job, 32 hexadecimal digits, the same for all ranks. mpress run sets it; "
     "without it the launcher's own job identity serves."},
    {"MPRESS_RECORD", "",
     "Directory where each rank keeps its statistics and announces itself. mpress run sets it."},
    {"MPRESS_TRACE", "0",
     "How many events each rank keeps for the timeline of mpress run --trace, the latest (suffixes "
     "K, M, G; 0: none). A file of 64 bytes an event in MPRESS_RECORD; mpress run --trace sets "
     "256K."},
    {"MPRESS_PROTOCOLS", "",
     "File to which rank 0 writes, in MPI_Finalize, which protocol carries messages of which "
     "sizes, and which algorithm serves collective calls, and why (JSON); mpress info --protocols "
     "and --algorithms print it (--from)."},
    {"MPRESS_REPORT", "", "Where mpress run writes the merged report (JSON)."},
    {"MPRESS_ISA", "best", "Instruction set of the host codecs: portable, avx2 or avx512."},
};

/// The keys of an MPI_Info that a communicator takes; they rule over the environment.
inline constexpr Knob info_keys[] = {
    {"mpress_codec", "MPRESS_CODEC",
     "Codec spec for the messages sent on this communicator; none leaves them raw."},
    {"mpress_threshold", "MPRESS_THRESHOLD",
     "Smallest message on this communicator that is considered, in bytes (suffixes K, M, G; 0 "
     "allowed)."},
    {"mpress_chunk", "MPRESS_CHUNK",
     "Bytes in a chunk of messages that go by MPI on this communicator (a multiple of 4096; 0: in "
     "one piece). What is less than any rank's own counts as the least of these."},
    {"mpress_reproducible", "MPRESS_REPRODUCIBLE",
     "1: sums, minima and maxima of floats on this communicator have the same bits whatever the "
     "order of the ranks; 0: they need not."},
    {"mpress_isomorphic", "false",
     "true, where MPI_Dist_graph_create or _create_adjacent makes a graph of the processes of a "
     "Cartesian communicator: all of them have the same relative neighbours, as far as these "
     "exist. "
     "Then mpress serves its MPI_Neighbor_* calls, by message combining where that pays; keys "
     "iso_* hold as for mpress_iso_neighborhood_create_with_info."},
};

/// Looks through the environment for an MPRESS_* variable that is not a knob. Returns false and
/// an error that names it and the nearest knob.
bool check_knob_names(std::string& error);

/// False, and an error that names the nearest key, for a key that begins with "mpress_" but is
/// none of ours.
bool check_info_key(const std::string& key, std::string& error);

/// The knob whose name is nearest to `name` by edit distance.
const char* nearest_knob(const std::string& name);

}  // namespace mpress
