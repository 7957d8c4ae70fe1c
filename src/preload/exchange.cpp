// MPI_Sendrecv, MPI_Sendrecv_replace and their non-blocking forms.

#include "mpi/messages/exchange.hpp"

#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "preload/entered.hpp"
#include "preload/export.hpp"

using namespace mpress;

#define MPRESS_SENDRECV(suffix, Count, ...)                                                       \
  MPRESS_EXPORT int MPI_Sendrecv##suffix(const void* out, Count out_count, MPI_Datatype out_type, \
                                         int destination, int send_tag, void* in, Count in_count, \
                                         MPI_Datatype in_type, int source, int receive_tag,       \
                                         MPI_Comm comm, MPI_Status* status) {                     \
    engine::Job* job = engine::enter_call();                                                      \
    if (!job) {                                                                                   \
      return mpi::counted::Sendrecv(out, {out_count, out_type, destination, send_tag}, in,        \
                                    {in_count, in_type, source, receive_tag}, comm, status);      \
    }                                                                                             \
    return engine::exchange(*job,                                                                 \
                            {out, out_count, out_type, destination, comm,                         \
                             preload::asked_spec(*job), engine::asked_outcome()},                 \
                            send_tag, {in, in_count, in_type, comm, engine::asked_outcome()},     \
                            {source, receive_tag}, status);                                       \
  }
MPRESS_BOTH_COUNTS(MPRESS_SENDRECV)

#define MPRESS_SENDRECV_REPLACE(suffix, Count, ...)                                             \
  MPRESS_EXPORT int MPI_Sendrecv_replace##suffix(                                               \
      void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, int source,  \
      int receive_tag, MPI_Comm comm, MPI_Status* status) {                                     \
    engine::Job* job = engine::enter_call();                                                    \
    if (!job) {                                                                                 \
      return mpi::counted::Sendrecv_replace(buffer, count, type, destination, send_tag, source, \
                                            receive_tag, comm, status);                         \
    }                                                                                           \
    return engine::exchange_in_place(*job,                                                      \
                                     {buffer, count, type, destination, comm,                   \
                                      preload::asked_spec(*job), engine::asked_outcome()},      \
                                     send_tag,                                                  \
                                     {buffer, count, type, comm, engine::asked_outcome()},      \
                                     {source, receive_tag}, status);                            \
  }
MPRESS_BOTH_COUNTS(MPRESS_SENDRECV_REPLACE)

#define MPRESS_ISENDRECV(suffix, Count, ...)                                                       \
  MPRESS_EXPORT int MPI_Isendrecv##suffix(const void* out, Count out_count, MPI_Datatype out_type, \
                                          int destination, int send_tag, void* in, Count in_count, \
                                          MPI_Datatype in_type, int source, int receive_tag,       \
                                          MPI_Comm comm, MPI_Request* request) {                   \
    engine::Job* job = engine::enter_call();                                                       \
    if (!job) {                                                                                    \
      return mpi::counted::Isendrecv(out, {out_count, out_type, destination, send_tag}, in,        \
                                     {in_count, in_type, source, receive_tag}, comm, request);     \
    }                                                                                              \
    constexpr engine::SendCall call{trace::Op::isendrecv, Family::sendrecv, true};                 \
    return engine::exchange_later(                                                                 \
        *job,                                                                                      \
        engine::prepare_send(*job, call,                                                           \
                             {out, out_count, out_type, destination, comm,                         \
                              preload::asked_spec(*job), engine::asked_outcome()}),                \
        send_tag, call.op, {in, in_count, in_type, comm, engine::asked_outcome()},                 \
        {source, receive_tag}, request);                                                           \
  }
MPRESS_BOTH_COUNTS(MPRESS_ISENDRECV)

#define MPRESS_ISENDRECV_REPLACE(suffix, Count, ...)                                               \
  MPRESS_EXPORT int MPI_Isendrecv_replace##suffix(                                                 \
      void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, int source,     \
      int receive_tag, MPI_Comm comm, MPI_Request* request) {                                      \
    engine::Job* job = engine::enter_call();                                                       \
    if (!job || destination == MPI_PROC_NULL || source == MPI_PROC_NULL) {                         \
      return mpi::counted::Isendrecv_replace(buffer, count, type, destination, send_tag, source,   \
                                             receive_tag, comm, request);                          \
    }                                                                                              \
    constexpr trace::Op op = trace::Op::isendrecv_replace;                                         \
    return engine::exchange_later(                                                                 \
        *job, engine::set_aside(*job, op, {buffer, count, type, destination, comm}), send_tag, op, \
        {buffer, count, type, comm, engine::asked_outcome()}, {source, receive_tag}, request);     \
  }
MPRESS_BOTH_COUNTS(MPRESS_ISENDRECV_REPLACE)
