#include "codec/cuda/nvtx_range.hpp"

#include <string>

namespace mpress::codec::cuda {

void NvtxRange::push(const char* call, const Spec& spec, ElementType type, std::size_t segments,
                     std::uint64_t bytes) {
  std::string name = std::string(call) + ' ' + to_string(spec);
  name += type == ElementType::f32 ? " f32" : " f64";
  if (segments != 1) name += ", " + std::to_string(segments) + " segments";
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = bytes;
  nvtxDomainRangePushEx(domain(), &attributes);
}

}  // namespace mpress::codec::cuda
