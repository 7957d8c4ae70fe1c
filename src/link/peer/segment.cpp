#include "link/peer/segment.hpp"

namespace mpress::link {

MappedSegment MappedSegment::create(const HostMemory::Nonce& nonce, int rank) {
  MappedSegment made;
  made.memory_ = HostMemory::create(nonce, rank, sizeof(PeerSegment));
  if (!made) return made;
  made->version = PeerSegment::layout;
  made->rank = rank;
  return made;
}

MappedSegment MappedSegment::open(const SegmentAddress& address, const HostMemory::Nonce& nonce,
                                  int rank) {
  MappedSegment found;
  found.memory_ = HostMemory::open(address, nonce, rank, sizeof(PeerSegment));
  if (found && found->version != PeerSegment::layout) return {};
  return found;
}

}  // namespace mpress::link
