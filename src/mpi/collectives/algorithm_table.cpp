#include "mpi/collectives/algorithm_table.hpp"

#include <cstddef>
#include <vector>

#include "coll/algorithm.hpp"
#include "coll/blocks/call_blocks.hpp"
#include "coll/collectives.hpp"
#include "coll/team.hpp"
#include "core/json_number.hpp"
#include "core/size_ranges.hpp"
#include "mpi/collectives/agreed.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t most = std::size_t{1} << 30;

struct Call {
  const char* name;
  Collective collective;
};

constexpr Call calls[] = {
    {"MPI_Bcast", collectives::bcast},
    {"MPI_Scatter", collectives::scatter},
    {"MPI_Gather", collectives::gather},
    {"MPI_Allgather", collectives::allgather},
    {"MPI_Alltoall", collectives::alltoall},
    {"MPI_Allreduce", collectives::allreduce},
    {"MPI_Reduce", collectives::reduce},
    {"MPI_Reduce_scatter_block", collectives::reduce_scatter_block},
};

/// The decision about a call of one size.
struct Prediction {
  AlgorithmId algorithm;
  schedule::Method method;       ///< of messages
  double seconds;                ///< that these take on the links; 0: not known
  std::vector<WhyNot> refusals;  ///< of the algorithms before that one

  bool is_like(const Prediction& other) const {
    return algorithm == other.algorithm && method.algorithm == other.method.algorithm &&
           refusals == other.refusals;
  }
};

/// `bytes`: of a block, of a broadcast's data, or of a member's contribution to a reduction.
Prediction decide(Job& job, Team& team, const Collective& call, bool on_devices,
                  std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(team.size());
  const std::size_t block = call.reduces ? bytes / ranks : bytes;
  const Candidate candidate =
      candidate_by_size(job, call, Form::blocking, false, block, call.reduces ? bytes : 0);
  const Spec spec = spec_of(job.config, team);
  AgreedCall agreed{.call = call, .team = facts_of(job, team)};
  agreed.bytes = agreed.longest = block;
  agreed.is_long_enough = candidate.is_long_enough;
  agreed.is_short = candidate.is_short;
  if (call.reduces) {
    agreed.reduction = {codec::Combine::sum, ElementType::f32, bytes / sizeof(float), 1};
  }
  agreed.is_reproducible = call.reduces && team.hints().is_reproducible() && job.chunks.is_open();
  agreed.codec = spec.codec;
  agreed.encodes = (candidate.may_compress && may_pay(job, team, spec)) || agreed.is_reproducible;
  agreed.on_devices = on_devices && candidate.may_be_on_devices;
  Prediction found{first_that_applies(agreed), {}, 0, {}};
  if (job.config.is_disabled(call.family)) found.algorithm = AlgorithmId::by_mpi;
  for (AlgorithmId id{}; id != found.algorithm; id = next(id)) {
    found.refusals.push_back(algorithm(id).why_not(agreed));
  }
  const CallShape shape{block, agreed.encodes, on_devices, spec};
  // Of a reduction the results travel by it, if they travel at all.
  const bool is_scattered = call.family == Family::reduce_scatter;
  if (found.algorithm == AlgorithmId::blocks) {
    found.method = method_of(job, schedule_op(call), shape, team, &found.seconds);
  } else if (found.algorithm == AlgorithmId::reduction_by_blocks && !is_scattered) {
    found.method = method_of(job, schedule_op(call), shape, team);
  }
  return found;
}

std::string text_of(const Prediction& first, std::size_t begin, const Prediction& last,
                    std::size_t end) {
  std::string refusals;
  for (std::size_t i = 0; i < first.refusals.size(); ++i) {
    const WhyNot why = first.refusals[i];
    if (!why || why == other_kind) continue;
    refusals += std::string(refusals.empty() ? "" : ", ") + "{\"algorithm\": \"" +
                algorithms()[i].name + "\", \"why_not\": \"" + why + "\"}";
  }
  const char* const schedule =
      first.method.algorithm == schedule::Algorithm::none ? "" : name(first.method.algorithm);
  return "{\"first\": " + std::to_string(begin) + ", \"last\": " + std::to_string(end) +
         ", \"algorithm\": \"" + algorithm(first.algorithm).name + "\", \"schedule\": \"" +
         schedule + "\", \"refusals\": [" + refusals + "], \"seconds\": [" +
         json_number(first.seconds) + ", " + json_number(last.seconds) + "]}";
}

}  // namespace

std::string algorithm_table(Job& job) {
  std::string text = "\"calls\": [";
  Team* const team = job.teams.world().get();
  if (!team || !team->is_ready()) return text + "]";
  const char* between = "";
  for (const bool on_devices : {false, true}) {
    if (on_devices && !may_see_devices(job, *team)) continue;
    for (const Call& call : calls) {
      const auto at = [&](std::size_t bytes) {
        return decide(job, *team, call.collective, on_devices, bytes);
      };
      text += std::string(between) + "\n {\"call\": \"" + call.name + "\", \"memory\": \"" +
              (on_devices ? "device" : "host") + "\", \"ranges\": [";
      between = ",";
      const auto ranges = size_ranges(sizeof(float), most, sizeof(float), at);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const bool is_last = i + 1 == ranges.size();
        const std::size_t end = is_last ? most : ranges[i + 1].first - sizeof(float);
        text +=
            (i > 0 ? ",\n  " : "\n  ") + text_of(ranges[i].decision, ranges[i].first, at(end), end);
      }
      text += "]}";
    }
  }
  return text + "]";
}

}  // namespace mpress::engine
