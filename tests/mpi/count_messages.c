/* A library preloaded beneath mpress that counts the messages that mpress gives to MPI. mpress
 * looks MPI's functions up in MPI's own library, so it is the looking up that is stood in for.
 * Programs find `counted_messages` by its name, and read it between their calls. */
#include "look_up.h"

#include <mpi.h>
#include <string.h>

/* Messages sent, messages received, those of both that a process has sent itself, and the bytes
 * sent. */
long counted_messages[4];

static void count(int is_sent, long items, MPI_Datatype type, int peer, MPI_Comm comm) {
  int size, rank;
  if (peer == MPI_PROC_NULL) return;
  PMPI_Type_size(type, &size);
  PMPI_Comm_rank(comm, &rank);
  ++counted_messages[is_sent ? 0 : 1];
  if (peer == rank) ++counted_messages[2];
  if (is_sent) counted_messages[3] += items * size;
}

#define BLOCKING(name, is_sent, pointer)                                           \
  static int (*own_##name)(pointer, int, MPI_Datatype, int, int, MPI_Comm);        \
  static int name(pointer buffer, int items, MPI_Datatype type, int peer, int tag, \
                  MPI_Comm comm) {                                                 \
    count(is_sent, items, type, peer, comm);                                       \
    return own_##name(buffer, items, type, peer, tag, comm);                       \
  }
#define ENDING_IN(name, is_sent, pointer, Last)                                                   \
  static int (*own_##name)(pointer, int, MPI_Datatype, int, int, MPI_Comm, Last*);                \
  static int name(pointer buffer, int items, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                  Last* last) {                                                                   \
    count(is_sent, items, type, peer, comm);                                                      \
    return own_##name(buffer, items, type, peer, tag, comm, last);                                \
  }
BLOCKING(Send, 1, const void*)
BLOCKING(Ssend, 1, const void*)
ENDING_IN(Isend, 1, const void*, MPI_Request)
ENDING_IN(Issend, 1, const void*, MPI_Request)
ENDING_IN(Recv, 0, void*, MPI_Status)
ENDING_IN(Irecv, 0, void*, MPI_Request)

void* dlsym(void* handle, const char* name) {
  void* const found = look_up(handle, name);
#define STAND_IN(call)                    \
  if (strcmp(name, "PMPI_" #call) == 0) { \
    *(void**)&own_##call = found;         \
    return (void*)call;                   \
  }
  STAND_IN(Send)
  STAND_IN(Ssend)
  STAND_IN(Isend)
  STAND_IN(Issend)
  STAND_IN(Recv)
  STAND_IN(Irecv)
  return found;
}
