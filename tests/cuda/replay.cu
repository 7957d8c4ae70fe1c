// Encoding, decoding and, of szp, adding captured into a CUDA graph, with the payload's size known
// on the device only.
#include "codec/szp/format.hpp"
#include "cuda/twins.hpp"

namespace mpress::test {

int replay(const Spec& spec, ElementType type) {
  const std::size_t count = 300007;
  const std::size_t bytes = count * element_size(type);
  std::mt19937_64 random(7);
  Device elements(bytes), output(bytes), payload(codec::max_payload_bytes(spec, type, count));
  Workspace encode_work(codec::cuda::workspace_bytes(spec, type, count, 1));
  Workspace decode_work(codec::cuda::workspace_bytes(spec, type, count, 1));
  const bool sums = spec.codec == Codec::szp;
  const int calls = sums ? 3 : 2;
  Results results(calls);
  const EncodeSegment in{elements.data(), count, payload.data(), &results.host[0]};
  const DecodeSegment out{payload.data(),   codec::max_payload_bytes(spec, type, count),
                          output.data(),    count,
                          &results.host[1], &results.host[0]};
  Device sum(codec::max_payload_bytes(spec, type, count));
  const codec::cuda::Summand own{payload.data(), out.bytes, &results.host[0]};
  const codec::cuda::Summand pair[] = {own, own};
  const AddSegment twice{pair, count, sum.data(), &results.host[2]};
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  require(codec::cuda::encode(spec, type, {&in, 1}, encode_work.data, stream), "encode");
  require(codec::cuda::decode(spec, type, {&out, 1}, Combine::replace, decode_work.data, stream),
          "decode");
  if (sums) {
    require(codec::cuda::add(spec, type, {&twice, 1}, decode_work.data, stream), "add");
  }
  require(cudaStreamEndCapture(stream, &graph), "capture");
  require(cudaGraphInstantiate(&exec, graph, 0), "a graph");
  std::uint32_t sequences[3] = {0, 0, 0};
  for (int pattern = 0; pattern < patterns; ++pattern) {
    const Bytes field = type == ElementType::f32 ? generate<float>(pattern, count, random)
                                                 : generate<double>(pattern, count, random);
    elements.put(field.data(), field.size());
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaStreamSynchronize(stream), "replay");
    Bytes want(codec::max_payload_bytes(spec, type, count));
    want.resize(codec::encode(spec, type, field.data(), count, want.data()));
    Bytes decoded(bytes);
    codec::decode(spec, type, want.data(), want.size(), decoded.data(), count);
    const std::string name = "pattern " + std::to_string(pattern) + ": ";
    if (results.host[0].bytes != want.size()) fail(name + "another size than the host's");
    if (payload.get(want.size()) != want) fail(name + "other bytes than the host's");
    if (results.host[1].status != codec::Status::ok) fail(name + status_text(results.host[1].status));
    if (output.get(bytes) != decoded) fail(name + "other values than the host's");
    if (sums) {
      Bytes added(codec::max_payload_bytes(spec, type, count));
      std::size_t size = 0;
      const codec::Summand wanted{want.data(), want.size()};
      const codec::Summand summands[] = {wanted, wanted};
      const codec::Status status = codec::szp::add(type, summands, count, added.data(), size);
      added.resize(size);
      const Result r = results.host[2];
      if (r.status != status || r.bytes != size || sum.get(size) != added) {
        fail(name + "another sum than the host's");
      }
    }
    for (int i = 0; i < calls; ++i) {
      if (results.host[i].sequence == sequences[i]) fail(name + "the sequence number stayed");
      sequences[i] = results.host[i].sequence;
    }
  }
  std::printf("%s %s: %d replays, %d failures\n", to_string(spec).c_str(), element_name(type),
              patterns, failures);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return failures != 0;
}

}  // namespace mpress::test
