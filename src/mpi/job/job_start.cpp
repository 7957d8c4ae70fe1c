// How mpress starts in a process: the facts that all ranks exchange in MPI_Init, and the links that
// they measure.

#include <dlfcn.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>

#include "core/learning/probe.hpp"
#include "core/learning/tuning.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/calls/fortran_calls.hpp"
#include "mpi/gpu_aware.hpp"
#include "mpi/job/agree_on_costs.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/presence.hpp"
#include "mpi/job/start_together.hpp"
#include "mpi/objects/keyvals.hpp"
#include "mpi/objects/self_comm.hpp"
#include "mpi/open_links.hpp"
#include "mpi/probe_exchange.hpp"
#include "mpi/progress_hook.hpp"
#include "trace/message.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {
namespace {

constexpr std::uint64_t presence_timeout_ns = 20'000'000'000;

std::atomic<bool> waits_together{false};

/// Text that identifies the job without communication; empty where nothing does.
std::string job_identity(const Config& config) {
  if (!config.job.empty()) return config.job;
  // Launchers that give each job a name of its own.
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "FLUX_JOB_ID", "PALS_APID"}) {
    if (const char* value = std::getenv(name)) return std::string(name) + "=" + value;
  }
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* step = std::getenv("SLURM_STEP_ID");
  if (job && step) return std::string("slurm=") + job + "." + step;
  return {};
}

void copy_text(char* to, std::size_t room, const std::string& text) {
  std::snprintf(to, room, "%s", text.c_str());
}

void make_error_codes(Job& job) {
  const mpi::Calls& mpi = mpi::calls();
  int error_class = 0;
  if (mpi.Add_error_class(&error_class) != MPI_SUCCESS) return;
  mpi.Add_error_string(error_class, "mpress error");
  mpi.Add_error_code(error_class, &job.corrupt_code);
  mpi.Add_error_string(job.corrupt_code, "mpress: a compressed message is corrupt");
  mpi.Add_error_code(error_class, &job.spec_code);
  mpi.Add_error_string(job.spec_code,
                       "mpress: the codec spec does not fit the message's element type");
  mpi.Add_error_code(error_class, &job.device_code);
  mpi.Add_error_string(job.device_code, "mpress: a device refuses to work");
  mpi.Add_error_code(error_class, &job.hints_code);
  mpi.Add_error_string(job.hints_code,
                       "mpress: ranks gave a reduction different codecs (mpress_codec, or the "
                       "call's spec), which have to be the same");
  mpi.Add_error_code(error_class, &job.host_only_code);
  mpi.Add_error_string(job.host_only_code,
                       "mpress: memory of a device in a call that takes the host's alone");
}

/// Processes that a program spawned share its job but are ranks of a world of their own.
bool is_spawned() {
  MPI_Comm parent = MPI_COMM_NULL;
  mpi::calls().Comm_get_parent(&parent);
  return parent != MPI_COMM_NULL;
}

int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

pid_t process_of_job = 0;

/// A child that was forked, and comes here by an exit handler of its parent's, has none of what the
/// job waits for, and no part in what the parent records.
int stop_with_self(MPI_Comm, int, void*, void*) {
  if (::getpid() == process_of_job) stop_job();
  return MPI_SUCCESS;
}

/// The first that MPI_Finalize does, whoever calls it, is to delete the attributes of
/// MPI_COMM_SELF, the youngest first, while all of MPI still works. Ours is there from the start,
/// so that the program's own delete callbacks, which may communicate, run before mpress stops.
void stop_at_finalize() {
  process_of_job = ::getpid();
  int key = MPI_KEYVAL_INVALID;
  mpi::calls().Comm_create_keyval(copy_nothing, stop_with_self, &key, nullptr);
  mpi::calls().Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  mpi::calls().Comm_free_keyval(&key);
}

void open_record(Job& job, const Tuning& tuning) {
  // Each host has the directory, be it shared or its own.
  const std::string& directory = job.config.record_directory;
  if (!directory.empty()) ::mkdir(directory.c_str(), 0700);
  const bool kept =
      job.record.open(directory.empty() ? std::string() : record_path(directory, job.rank));
  trace::RecordHeader& header = job.record.header();
  header.simulated_link = job.pacer.active();
  header.gpu_aware = job.gpu_aware;
  header.started_ns = trace::now_ns();
  copy_text(header.settings, sizeof header.settings, agreed_settings(job.config));
  copy_text(header.mpi, sizeof header.mpi, mpi::compiled_mpi());
  copy_text(header.profile, sizeof header.profile, job.config.force ? "" : tuning.source);
  header.rank = job.rank;
  // Set last: a reader takes a header without a size for one that is still being written.
  std::atomic_ref(header.size).store(job.size, std::memory_order_release);
  if (!directory.empty() && !kept) {
    trace::say("rank " + std::to_string(job.rank) + ": no record can be kept in " + directory +
               ": " + std::strerror(errno));
  }
  if (!kept || is_spawned()) return;
  std::string error;
  if (!check_presence(directory, header, presence_timeout_ns, error)) mpi::fatal(error);
}

void open_timeline(const Job& job) {
  const Config& config = job.config;
  if (config.trace == 0) return;
  const std::string path = timeline_path(config.record_directory, job.rank);
  if (trace::timeline.open(path, config.trace, job.rank)) return;
  trace::say("rank " + std::to_string(job.rank) + ": no timeline can be kept in " +
             config.record_directory + ": " + std::strerror(errno));
}

/// Whether mpress sees the MPI calls of all ranks. Where it does not, the first of those ranks says
/// so. `at_init`: all ranks ask now.
bool calls_are_seen(const Job& job, bool at_init) {
  const std::string call = mpi::unseen_fortran_call();
  const std::string problem =
      "the program's Fortran binding calls MPI where mpress cannot see it (" + call + ")";
  int first = call.empty() ? job.size : job.rank;
  if (at_init) {
    mpi::calls().Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  } else if (!call.empty()) {
    // Nothing informs the others, which would send frames that this rank takes for data.
    mpi::fatal(problem + ", and other ranks may compress already: run it with MPRESS_DISABLE=1");
  }
  if (first == job.rank) trace::say("off: " + problem);
  return first == job.size;
}

/// Does this rank want to measure links? Where all is compressed they matter for algorithms alone,
/// and within a host hardly for those.
bool lacks_costs(const Job& job) {
  const policy::LinkModel& links = job.policy.links();
  const bool lacks_within = !links.is_configured({policy::Place::host, policy::Peer::same_host});
  const bool lacks_between = !links.is_configured({policy::Place::host, policy::Peer::other_host});
  return measures_links(job) && ((lacks_within && learns(job)) || lacks_between);
}

/// Does MPI let mpress send and receive while it blocks? Under MPI_THREAD_MULTIPLE MPICH holds a
/// lock meanwhile, and would wait for itself where a message is laid out
/// (mpi/objects/relayout.hpp).
bool hook_runs_messages(const Job& job) {
#if defined(OPEN_MPI)
  constexpr bool may_be_threaded = true;
#else
  constexpr bool may_be_threaded = false;
#endif
  return mpi::has_progress_hook() && (may_be_threaded || !job.threaded);
}

/// May a progress thread be started while the program runs? Not where MPI takes memory of devices,
/// which then only threads of the program hand to it.
bool may_start_thread(const Job& job) {
  return job.config.may_start_thread && job.threaded && job.peek.is_possible() && !job.gpu_aware;
}

/// May MPI_Comm_idup make teams? Not in Open MPI 5, whose tags for it and for other non-blocking
/// calls on the communicator come in the order in which their steps begin, so other calls of the
/// program's there mix with it; nor where threads make communicators meanwhile, see
/// Teams::of_blocking(); nor where it could call the program's copy callbacks.
bool may_duplicate(const Job& job) {
#if defined(OPEN_MPI)
  constexpr bool is_apart = false;
#else
  constexpr bool is_apart = true;
#endif
  return is_apart && !job.threaded && job.saw_init && mpi::hides_private_duplicates();
}

/// Of the facts that there are for each codec, beginning with those of none.
Fact fact_of(Fact first, std::size_t codec) {
  return static_cast<Fact>(static_cast<std::size_t>(first) + codec);
}

/// Bytes of the shortest messages that this rank may send as a frame or a header. What it learns of
/// links may lower the usual threshold; devices send headers from a size of their own on.
std::size_t least_framed(const Job& job, std::size_t least_chunk) {
  const Config& config = job.config;
  if (job.pacer.active() || config.trace > 0) return 0;
  const bool may_learn = !config.is_threshold_set && lacks_costs(job);
  const std::size_t least =
      may_learn ? job.policy.least_bytes_anywhere(config.threshold) : config.threshold;
  if (!gpu::may_come()) return least;
  const bool are_cut = !job.gpu_aware && least_chunk > 0;  // raw messages of devices that MPI has
  return std::min({least, least_by_links(job), are_cut ? 2 * least_chunk : least});
}

/// The facts of this rank that members of a communicator exchange when it gets a team.
Facts facts_of(const Job& job, std::size_t chunk_bytes, const policy::DeviceChunks& device_chunks) {
  Facts facts;
  facts[Fact::least_chunk] = Chunks::least_chunk(chunk_bytes, device_chunks);
  // An MPI that takes memory of devices gets all of it where nothing is compressed.
  const bool sends_from_devices =
      job.policy.links().may_have_raw() || job.policy.may_compress_devices();
  facts[Fact::sends_frames] =
      job.policy.may_compress_host() || (gpu::in_use() && sends_from_devices);
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    facts[fact_of(Fact::none_within, codec)] =
        job.policy.may_compress_host(policy::Peer::same_host, static_cast<Codec>(codec));
    facts[fact_of(Fact::none_between, codec)] =
        job.policy.may_compress_host(policy::Peer::other_host, static_cast<Codec>(codec));
  }
  facts[Fact::measures] = lacks_costs(job);
  facts[Fact::learns] = lacks_costs(job) && learns(job);
  facts[Fact::wants] = 1;
  facts[Fact::reproducible] = job.config.reproducible;
  facts[Fact::settings] = std::hash<std::string>{}(agreed_settings(job.config));
  // The same of a driver that comes late.
  const bool may_send_from_devices = gpu::may_come() && (!job.gpu_aware || sends_from_devices);
  facts[Fact::ever_sends_frames] = job.policy.may_compress_host() || may_send_from_devices ||
                                   job.pacer.active() || job.config.trace > 0;
  facts[Fact::least_framed] = least_framed(job, static_cast<std::size_t>(facts[Fact::least_chunk]));
  facts[Fact::may_see_gpus] = gpu::in_use() || gpu::may_come();
  facts[Fact::gpu_aware] = job.gpu_aware;
  facts[Fact::has_hook] = mpi::has_progress_hook();
  facts[Fact::proceeds] =
      job.config.progress_thread || hook_runs_messages(job) || may_start_thread(job);
  facts[Fact::has_thread] = job.config.progress_thread;
  facts[Fact::duplicates] = may_duplicate(job);
  facts[Fact::hides_duplicates] = mpi::hides_private_duplicates();
  return facts;
}

void configure_policy(Job& job, const policy::Costs& costs) {
  job.policy.configure(job.config.force, costs);
  job.raw_is_mpis = job.gpu_aware && !job.raw_by_link && !job.policy.links().may_have_raw();
}

void start_progress_thread(Job& job) {
  if (!job.threaded || !job.peek.is_possible()) {
    mpi::fatal(std::string("MPRESS_PROGRESS=thread: this MPI ") +
               (job.threaded ? "has no way to look at requests from several threads"
                             : "was not started with MPI_THREAD_MULTIPLE") +
               "; use MPRESS_PROGRESS=calls");
  }
  if (!job.progress_thread.start()) {
    mpi::fatal("MPRESS_PROGRESS=thread: the system gives no thread");
  }
}

/// Exchanges the facts of all ranks by making the team of MPI_COMM_WORLD.
const Team* exchange_facts(Job& job, const Tuning& tuning) {
  job.peek.open(job.threaded);
  const std::size_t chunk_bytes = job.peek.is_possible() ? job.config.chunk : 0;
  job.teams.open(job.nonce, facts_of(job, chunk_bytes, tuning.costs.device_chunks));
  const Team* const world = job.teams.world().get();
  const bool has_facts = world && world->facts().is_true_for_any(Fact::wants);
  // Ranks with other settings have to find the same: that MPI serves a call.
  job.config.reproducible = world && world->facts().is_true_for_any(Fact::reproducible);
  job.teams.set_reproducible(job.config.reproducible);
  job.gets_frames = !has_facts || world->facts().is_true_for_any(Fact::sends_frames);
  job.gets_device_chunks = world && world->facts().is_true_for_any(Fact::gpu_aware);
  if (has_facts) {
    const bool ever_sends = world->facts().is_true_for_any(Fact::ever_sends_frames);
    job.least_framed_bytes = ever_sends ? world->facts().lowest(Fact::least_framed) : Job::never;
  }
  const std::uint64_t least = world ? world->facts().lowest(Fact::least_chunk) : 0;
  if (least > 0 && comm_of(*world) != MPI_COMM_NULL) {
    job.channel.open(comm_of(*world), world->tags());
    job.chunks.open(job.channel, least, chunk_bytes, tuning.costs.device_chunks);
  }
  return world;
}

/// Which collective calls mpress may serve, as far as facts tell. Once chunks are open.
void allow_collectives(Job& job, const AgreedFacts& facts) {
  // An MPI that takes memory of devices moves what is not encoded between them by itself; but
  // such MPIs combine elements on the host.
  job.collectives.reductions = facts.is_true_for_any(Fact::may_see_gpus);
  job.collectives.on_devices =
      job.collectives.reductions && (!facts.is_true_for_any(Fact::gpu_aware) || job.config.force);
  job.collectives.immediate = facts.is_true_for_all(Fact::proceeds);
  job.collectives.in_hook = hook_runs_messages(job);
  job.collectives.need_thread =
      job.collectives.immediate && !job.config.progress_thread && !job.collectives.in_hook;
  job.collectives.makes_teams = facts.is_true_for_all(Fact::duplicates);
  job.collectives.keeps_topologies = facts.is_true_for_all(Fact::hides_duplicates);
  if (job.collectives.keeps_topologies) job.teams.keep_topologies();
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    job.collectives.gains[codec] = {facts.is_true_for_any(fact_of(Fact::none_within, codec)),
                                    facts.is_true_for_any(fact_of(Fact::none_between, codec))};
  }
}

/// Where nothing tells what links are like; then more may be gained. Once chunks are open.
void measure_links(Job& job, const Team& world, Tuning& tuning) {
  const AgreedFacts& facts = world.facts();
  const bool learns = facts.is_true_for_any(Fact::learns);
  if (!facts.is_true_for_any(Fact::measures) || (!learns && world.hosts().count() == 1)) return;
  mpi::ProbeExchange exchange(comm_of(world), job.pacer);
  const GainsByCodec probed = probe_links(job, exchange, world.hosts(), learns);
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    job.collectives.gains[codec].add(probed[codec]);
    job.gets_frames = job.gets_frames || probed[codec].any();
  }
  if (job.gets_frames) job.least_framed_bytes = facts.lowest(Fact::least_framed);
  job.learned = learns;
  if (job.gets_frames && learns) job.timings.open(job.teams.hosts().shared_sheet());
  tuning.lacking[static_cast<std::size_t>(policy::Medium::host)].clear();
}

/// Where nothing tells what links between devices are like. Once links are open.
void measure_linked(Job& job) {
  constexpr policy::Path linked{policy::Place::device, policy::Peer::linked};
  if (!learns(job) || !job.links.peer.is_open() || job.policy.links().is_configured(linked)) return;
  job.linked_rate.open(job.teams.hosts().shared_sheet());
}

/// What all ranks of MPI_COMM_WORLD do in MPI_Init.
void start_together(Job& job, Tuning& tuning) {
  const Team* const world = exchange_facts(job, tuning);
  open_links(job);
  if (job.chunks.is_open()) {
    allow_collectives(job, world->facts());
    measure_links(job, *world, tuning);
    measure_linked(job);
    // Of neighbourhoods, also where nothing is compressed.
    job.agreed_costs = agree_on_costs(job, *world);
  }
  job.collectives.usual = job.collectives.of(job.config.spec);
  for (const Gains& one : job.collectives.gains) job.collectives.most.add(one);
}

}  // namespace

void read_settings() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::string error;
    Config& config = Job::instance_->config;
    if (!load_config(config, error)) mpi::fatal(error);
    if (config.trace > 0 && config.record_directory.empty()) {
      mpi::fatal("MPRESS_TRACE: events are kept in MPRESS_RECORD, which is not set");
    }
    gpu::choose(config.gpu);
    const bool named = config.gpu.find('/') != std::string::npos;
    if (named && !gpu::gpu()) mpi::fatal("MPRESS_GPU='" + config.gpu + "': " + gpu::why_not());
  });
}

bool mpi_takes_devices(const Config& config) {
  return config.gpu_aware == "1" || (config.gpu_aware == "auto" && mpi::takes_device_memory());
}

bool wants_threads() {
  const Config& config = Job::instance_->config;
  return config.progress_thread && !config.disabled;
}

void start_job(bool at_init) {
  static std::mutex starting;
  std::lock_guard lock(starting);
  Job& job = *Job::instance_;
  if (job.state_ != Job::State::unstarted) return;
  read_settings();
  const mpi::Calls& mpi = mpi::calls();
  mpi.Comm_rank(MPI_COMM_WORLD, &job.rank);
  mpi.Comm_size(MPI_COMM_WORLD, &job.size);
  int level = MPI_THREAD_SINGLE;
  mpi.Query_thread(&level);
  job.threaded = level == MPI_THREAD_MULTIPLE;
  trace::counted_by_threads = job.threaded;
  const std::string identity = job_identity(job.config);
  if (job.config.disabled || identity.empty()) {
    if (!job.config.disabled && job.rank == 0) {
      trace::say(
          "off: nothing identifies this job; start it with 'mpress run', or set MPRESS_JOB to the "
          "same 32 hexadecimal digits for all ranks");
    }
    job.lacks_identity_ = !job.config.disabled;
    job.state_ = Job::State::off;
    return;
  }
  job.nonce = wire::make_nonce(identity);
  job.pacer.set_rate(job.config.link_rate);
  mpi::open_self_comm();
  stop_at_finalize();
  make_error_codes(job);
  job.gpu_aware = mpi_takes_devices(job.config);
  if (job.gpu_aware) job.devices.seek();
  // An MPI that takes memory of devices has links of its own for what is not encoded.
  job.raw_by_link = !job.gpu_aware || link::named(job.config.link);
  if (::dlsym(RTLD_DEFAULT, "mpress_call_begin")) job.surroundings.takes_specs = true;
  job.surroundings.mpi = mpi::library_name();
  Tuning tuning = tune(job);
  if (!tuning.error.empty()) mpi::fatal(tuning.error);
  open_record(job, tuning);
  if (!calls_are_seen(job, at_init)) {
    job.state_ = Job::State::off;
    return;
  }
  configure_policy(job, tuning.costs);
  if (at_init) start_together(job, tuning);
  if (!job.chunks.is_open()) {
    tuning.costs.device_chunks = {};
    configure_policy(job, tuning.costs);
  }
  job.lacking_costs = std::move(tuning.lacking);
  open_timeline(job);
  job.state_ = Job::State::active;
  if (job.config.progress_thread) start_progress_thread(job);
}

void wait_for_start_together() { waits_together = true; }
bool waits_for_start_together() { return waits_together; }

void start_job_together() {
  wait_for_start_together();
  Job& job = *Job::instance_;
  read_settings();
  job.surroundings.takes_specs = true;
  if (has_started()) return;
  job.serves_asked_calls_alone = true;
  const mpi::Calls& mpi = mpi::calls();
  int has_identity = !job_identity(job.config).empty();
  mpi.Allreduce(MPI_IN_PLACE, &has_identity, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!has_identity) {
    std::array<unsigned char, 16> drawn{};
    if (::getrandom(drawn.data(), drawn.size(), 0) < 0) {
      const std::uint64_t now = trace::now_ns();
      std::memcpy(drawn.data(), &now, sizeof now);
    }
    mpi::buffer_calls().Bcast(drawn.data(), static_cast<int>(drawn.size()), MPI_BYTE, 0,
                              MPI_COMM_WORLD);
    job.config.job.clear();
    for (const unsigned char byte : drawn) {
      constexpr char digits[] = "0123456789abcdef";
      job.config.job += {digits[byte >> 4], digits[byte & 15]};
    }
  }
  job.lacks_identity_ = false;
  job.state_ = Job::State::unstarted;
  start_job(true);
}

bool has_started() {
  const Job& job = *Job::instance_;
  return job.state_ != Job::State::unstarted && !job.lacks_identity_;
}

}  // namespace mpress::engine
