// MPI's calls with a count of any size: by the ordinary entry point while the count fits an int,
// by the large-count one (MPI 4) beyond.
#pragma once

#include <climits>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi::counted {

// Programs look for the large-count calls of MPI 4 by name and find those of the preload library,
// whatever MPI it is: one that lacks them serves every count that fits an int, and refuses others.
#define MPRESS_IF_LARGE(name, ...) \
  if (count > INT_MAX) return calls().name##_c ? calls().name##_c(__VA_ARGS__) : MPI_ERR_COUNT;

#define MPRESS_COUNTED_SEND(name)                                                          \
  inline int name(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, \
                  int tag, MPI_Comm comm) {                                                \
    MPRESS_IF_LARGE(name, buffer, count, type, destination, tag, comm)                     \
    return calls().name(buffer, static_cast<int>(count), type, destination, tag, comm);    \
  }
MPRESS_COUNTED_SEND(Send)
MPRESS_COUNTED_SEND(Bsend)
MPRESS_COUNTED_SEND(Ssend)
MPRESS_COUNTED_SEND(Rsend)
#undef MPRESS_COUNTED_SEND

#define MPRESS_COUNTED_REQUEST(name, pointer)                                             \
  inline int name(pointer buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,  \
                  MPI_Comm comm, MPI_Request* request) {                                  \
    MPRESS_IF_LARGE(name, buffer, count, type, peer, tag, comm, request)                  \
    return calls().name(buffer, static_cast<int>(count), type, peer, tag, comm, request); \
  }
MPRESS_COUNTED_REQUEST(Isend, const void*)
MPRESS_COUNTED_REQUEST(Ibsend, const void*)
MPRESS_COUNTED_REQUEST(Issend, const void*)
MPRESS_COUNTED_REQUEST(Irsend, const void*)
MPRESS_COUNTED_REQUEST(Send_init, const void*)
MPRESS_COUNTED_REQUEST(Bsend_init, const void*)
MPRESS_COUNTED_REQUEST(Ssend_init, const void*)
MPRESS_COUNTED_REQUEST(Rsend_init, const void*)
MPRESS_COUNTED_REQUEST(Irecv, void*)
MPRESS_COUNTED_REQUEST(Recv_init, void*)
#undef MPRESS_COUNTED_REQUEST

inline int Recv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                MPI_Comm comm, MPI_Status* status) {
  MPRESS_IF_LARGE(Recv, buffer, count, type, source, tag, comm, status)
  return calls().Recv(buffer, static_cast<int>(count), type, source, tag, comm, status);
}

inline int Mrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                 MPI_Status* status) {
  MPRESS_IF_LARGE(Mrecv, buffer, count, type, message, status)
  return calls().Mrecv(buffer, static_cast<int>(count), type, message, status);
}

inline int Imrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                  MPI_Request* request) {
  MPRESS_IF_LARGE(Imrecv, buffer, count, type, message, request)
  return calls().Imrecv(buffer, static_cast<int>(count), type, message, request);
}

inline int Sendrecv_replace(void* buffer, MPI_Count count, MPI_Datatype type, int destination,
                            int send_tag, int source, int receive_tag, MPI_Comm comm,
                            MPI_Status* status) {
  MPRESS_IF_LARGE(Sendrecv_replace, buffer, count, type, destination, send_tag, source, receive_tag,
                  comm, status)
  return calls().Sendrecv_replace(buffer, static_cast<int>(count), type, destination, send_tag,
                                  source, receive_tag, comm, status);
}

/// Packs `count` items into exactly `bytes` bytes.
inline int Pack(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed,
                MPI_Count bytes, MPI_Comm comm) {
  if (calls().Pack_c) {
    MPI_Count position = 0;
    return calls().Pack_c(buffer, count, type, packed, bytes, &position, comm);
  }
  if (count > INT_MAX || bytes > INT_MAX) return MPI_ERR_COUNT;
  int position = 0;
  return calls().Pack(buffer, static_cast<int>(count), type, packed, static_cast<int>(bytes),
                      &position, comm);
}

/// One side of an exchange; `count` first, so that the macro above serves here too.
struct Side {
  MPI_Count count;
  MPI_Datatype type;
  int peer;
  int tag;
};

inline int Sendrecv(const void* out, const Side& send, void* in, const Side& receive, MPI_Comm comm,
                    MPI_Status* status) {
  const MPI_Count count = send.count > receive.count ? send.count : receive.count;
  MPRESS_IF_LARGE(Sendrecv, out, send.count, send.type, send.peer, send.tag, in, receive.count,
                  receive.type, receive.peer, receive.tag, comm, status)
  return calls().Sendrecv(out, static_cast<int>(send.count), send.type, send.peer, send.tag, in,
                          static_cast<int>(receive.count), receive.type, receive.peer, receive.tag,
                          comm, status);
}

inline int Isendrecv(const void* out, const Side& send, void* in, const Side& receive,
                     MPI_Comm comm, MPI_Request* request) {
  const MPI_Count count = send.count > receive.count ? send.count : receive.count;
  MPRESS_IF_LARGE(Isendrecv, out, send.count, send.type, send.peer, send.tag, in, receive.count,
                  receive.type, receive.peer, receive.tag, comm, request)
  return calls().Isendrecv(out, static_cast<int>(send.count), send.type, send.peer, send.tag, in,
                           static_cast<int>(receive.count), receive.type, receive.peer, receive.tag,
                           comm, request);
}

inline int Isendrecv_replace(void* buffer, MPI_Count count, MPI_Datatype type, int destination,
                             int send_tag, int source, int receive_tag, MPI_Comm comm,
                             MPI_Request* request) {
  MPRESS_IF_LARGE(Isendrecv_replace, buffer, count, type, destination, send_tag, source,
                  receive_tag, comm, request)
  return calls().Isendrecv_replace(buffer, static_cast<int>(count), type, destination, send_tag,
                                   source, receive_tag, comm, request);
}

#undef MPRESS_IF_LARGE

/// How many bytes a message had. MPI_Status is open in the two families of MPIs, and asking costs
/// short messages more than reading.
inline MPI_Count bytes_of(const MPI_Status& status) {
#if defined(OPEN_MPI)
  return static_cast<MPI_Count>(status._ucount);
#elif defined(MPICH_VERSION)
  constexpr int bits_of_low = 32;
  const auto low = static_cast<unsigned>(status.count_lo);
  const auto high = static_cast<MPI_Count>(status.count_hi_and_cancelled >> 1);
  return (high << bits_of_low) + low;
#else
  MPI_Count bytes = 0;
  calls().Get_elements_x(&status, MPI_BYTE, &bytes);
  return bytes;
#endif
}

}  // namespace mpress::mpi::counted
