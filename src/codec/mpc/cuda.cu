#include "codec/mpc/cuda.hpp"

#include "codec/cuda/support.cuh"
#include "codec/mpc/cuda_decode.cuh"
#include "codec/mpc/cuda_encode.cuh"
#include "codec/mpc/format.hpp"

namespace mpress::codec::mpc::cuda {
namespace {

/// Units a task with which one wave of thread blocks has them all.
template <class Word, class AnySegment>
unsigned units_of_wave(ElementType type, std::span<const AnySegment> segments) {
  std::uint64_t units = 0;
  for (const auto& s : segments) units += unit_count(s.count, element_size(type));
  const std::uint64_t wave = std::uint64_t{multiprocessors()} * resident_blocks<Word>;
  return static_cast<unsigned>(std::max<std::uint64_t>(1, (units + wave - 1) / wave));
}

/// Segments of the longest launch for `segments`.
std::size_t batch_segments(std::size_t segments) {
  return std::min<std::size_t>(segments, max_batch);
}

/// Tasks of `units_a_task` units of a segment, at least 1.
auto tasks_of(ElementType type, unsigned units_a_task) {
  return [=](std::size_t count) {
    const std::size_t units = unit_count(count, element_size(type));
    return std::max<std::size_t>(1, (units + units_a_task - 1) / units_a_task);
  };
}

template <class Word>
cudaError_t encode_words(ElementType type, unsigned dim, std::span<const EncodeSegment> segments,
                         void* workspace, cudaStream_t stream) {
  // As many units a task as make one wave of thread blocks, up to what shared memory holds: a task
  // waits once for the sizes before it.
  const auto units_a_task = std::min(units_of_wave<Word>(type, segments), most_units_a_task);
  Workspace work = workspace_of(workspace, segments.size());
  std::uint64_t* const verdicts = work.slots;
  work.slots += batch_segments(segments.size()) * verdict_words;
  const RawForm form{.type = type};
  const auto launch = [&]<unsigned capacity>(const Batch<capacity>& batch) {
    // A run a thread block, unless these get in the encoding ones' way.
    const unsigned judges =
        dim != 0 ? 0 : std::clamp(2 * multiprocessors() / batch.count, 4u, choice::most_runs);
    encode_units<Word>
        <<<judges * batch.count + batch.first_task[batch.count], unit_threads<Word>,
           units_a_task * kUnitBytes, stream>>>(batch, work, verdicts, judges, units_a_task, dim);
    launch_copy_raw(batch, work, form, type, stream);
  };
  return for_each_batch(segments, tasks_of(type, units_a_task), launch);
}

template <class Word>
cudaError_t decode_words(ElementType type, std::span<const DecodeSegment> segments, Combine combine,
                         void* workspace, cudaStream_t stream) {
  const unsigned units_a_task = units_of_wave<Word>(type, segments);
  const Workspace work = workspace_of(workspace, segments.size());
  const auto launch = [&]<unsigned capacity>(const Batch<capacity>& batch) {
    const unsigned tasks = batch.first_task[batch.count];
    if (combine == Combine::replace) {
      decode_units<Word, false>
          <<<tasks, unit_threads<Word>, 0, stream>>>(batch, work, units_a_task, combine);
    } else {
      decode_units<Word, true>
          <<<tasks, unit_threads<Word>, 0, stream>>>(batch, work, units_a_task, combine);
    }
  };
  return for_each_batch(segments, tasks_of(type, units_a_task), launch);
}

}  // namespace

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments) {
  return codec::cuda::workspace_bytes(unit_count(count, element_size(type)) + segments, segments) +
         batch_segments(segments) * verdict_words * sizeof(std::uint64_t);
}

cudaError_t encode(ElementType type, unsigned dim, std::span<const EncodeSegment> segments,
                   void* workspace, cudaStream_t stream) {
  return type == ElementType::f32
             ? encode_words<std::uint32_t>(type, dim, segments, workspace, stream)
             : encode_words<std::uint64_t>(type, dim, segments, workspace, stream);
}

cudaError_t decode(ElementType type, std::span<const DecodeSegment> segments, Combine combine,
                   void* workspace, cudaStream_t stream) {
  return type == ElementType::f32
             ? decode_words<std::uint32_t>(type, segments, combine, workspace, stream)
             : decode_words<std::uint64_t>(type, segments, combine, workspace, stream);
}

}  // namespace mpress::codec::mpc::cuda
