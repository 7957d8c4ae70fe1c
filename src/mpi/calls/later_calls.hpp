// MPI calls that are younger than the oldest headers that mpress is compiled with, declared as the
// standard does. So one source serves every version of MPI: whether the program's library has a
// call is seen at run time, whatever the headers at hand know.
#pragma once

#include <mpi.h>

extern "C" {

// MPI 4.0: large counts.
#define MPRESS_DECLARE_SEND(name)                                                             \
  int PMPI_##name(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, \
                  MPI_Comm comm);
MPRESS_DECLARE_SEND(Send_c)
MPRESS_DECLARE_SEND(Bsend_c)
MPRESS_DECLARE_SEND(Ssend_c)
MPRESS_DECLARE_SEND(Rsend_c)
#undef MPRESS_DECLARE_SEND

#define MPRESS_DECLARE_REQUEST(name, pointer)                                             \
  int PMPI_##name(pointer buf, MPI_Count count, MPI_Datatype datatype, int peer, int tag, \
                  MPI_Comm comm, MPI_Request* request);
MPRESS_DECLARE_REQUEST(Isend_c, const void*)
MPRESS_DECLARE_REQUEST(Ibsend_c, const void*)
MPRESS_DECLARE_REQUEST(Issend_c, const void*)
MPRESS_DECLARE_REQUEST(Irsend_c, const void*)
MPRESS_DECLARE_REQUEST(Send_init_c, const void*)
MPRESS_DECLARE_REQUEST(Bsend_init_c, const void*)
MPRESS_DECLARE_REQUEST(Ssend_init_c, const void*)
MPRESS_DECLARE_REQUEST(Rsend_init_c, const void*)
MPRESS_DECLARE_REQUEST(Irecv_c, void*)
MPRESS_DECLARE_REQUEST(Recv_init_c, void*)
#undef MPRESS_DECLARE_REQUEST

int PMPI_Recv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                MPI_Comm comm, MPI_Status* status);
int PMPI_Mrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                 MPI_Status* status);
int PMPI_Imrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                  MPI_Request* request);
int PMPI_Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                    int source, int recvtag, MPI_Comm comm, MPI_Status* status);
int PMPI_Sendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                            int sendtag, int source, int recvtag, MPI_Comm comm,
                            MPI_Status* status);
int PMPI_Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                MPI_Count outsize, MPI_Count* position, MPI_Comm comm);
int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers,
                             MPI_Count* num_addresses, MPI_Count* num_large_counts,
                             MPI_Count* num_datatypes, int* combiner);
int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                             MPI_Count max_large_counts, MPI_Count max_datatypes,
                             int array_of_integers[], MPI_Aint array_of_addresses[],
                             MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]);

// MPI 4.0: sessions, communicators and info objects.
#if !defined(MPI_SESSION_NULL)
using MPI_Session = void*;
#endif
int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
int PMPI_Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag);
int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request);
int PMPI_Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info,
                                MPI_Errhandler errhandler, MPI_Comm* newcomm);

// MPI 4.0: the non-blocking exchange.
int PMPI_Isendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                   MPI_Comm comm, MPI_Request* request);
int PMPI_Isendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm comm, MPI_Request* request);
int PMPI_Isendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                           int source, int recvtag, MPI_Comm comm, MPI_Request* request);
int PMPI_Isendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                             int sendtag, int source, int recvtag, MPI_Comm comm,
                             MPI_Request* request);

// Conversions of message handles: macros, functions or missing, by headers.
#if !defined(OPEN_MPI)
#undef MPI_Message_c2f
#undef MPI_Message_f2c
#undef PMPI_Message_c2f
#undef PMPI_Message_f2c
int PMPI_Message_c2f(MPI_Message message);
MPI_Message PMPI_Message_f2c(int message);
#endif
int PMPI_Message_toint(MPI_Message message);
MPI_Message PMPI_Message_fromint(int message);

// MPI 4.1.
int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                                MPI_Status array_of_statuses[]);
int PMPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int* index,
                                int* flag, MPI_Status* status);
int PMPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount,
                                 int array_of_indices[], MPI_Status array_of_statuses[]);

// MPICH's extensions. A stream is an int there.
#if defined(MPICH_VERSION)
using MpressStream = int;
#else
using MpressStream = void*;
#endif
int PMPIX_Request_is_complete(MPI_Request request);
int PMPIX_Stream_progress(MpressStream stream);
int PMPIX_Stream_comm_create(MPI_Comm comm, MpressStream stream, MPI_Comm* newcomm);
int PMPIX_Stream_comm_create_multiplex(MPI_Comm comm, int count, MpressStream array_of_streams[],
                                       MPI_Comm* newcomm);
int PMPIX_Threadcomm_init(MPI_Comm comm, int num_threads, MPI_Comm* newthreadcomm);
}
