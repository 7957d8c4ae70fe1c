/* The C side of mixed.F90. */
#include <mpi.h>

static void convert(MPI_Status* status, MPI_Fint* converted) {
  MPI_Status again;
  MPI_Status_c2f(status, converted);
  MPI_Status_f2c(converted, &again);
  MPI_Status_c2f(&again, converted);
}

MPI_Fint c_isend(const double* x, int n, int peer, int tag, MPI_Fint comm) {
  MPI_Request request;
  MPI_Isend(x, n, MPI_DOUBLE, peer, tag, MPI_Comm_f2c(comm), &request);
  return MPI_Request_c2f(request);
}

void c_wait(MPI_Fint* handle, MPI_Fint* converted) {
  MPI_Request request = MPI_Request_f2c(*handle);
  MPI_Status status;
  MPI_Wait(&request, &status);
  *handle = MPI_Request_c2f(request);
  convert(&status, converted);
}

void c_send(const double* x, int n, int peer, int tag, MPI_Fint comm) {
  MPI_Send(x, n, MPI_DOUBLE, peer, tag, MPI_Comm_f2c(comm));
}

void c_recv(double* x, int n, int peer, int tag, MPI_Fint comm, MPI_Fint* converted) {
  MPI_Status status;
  MPI_Recv(x, n, MPI_DOUBLE, peer, tag, MPI_Comm_f2c(comm), &status);
  convert(&status, converted);
}

void c_mrecv(double* x, int n, MPI_Fint* handle, MPI_Fint* converted) {
  MPI_Message message = MPI_Message_f2c(*handle);
  MPI_Status status;
  message = MPI_Message_f2c(MPI_Message_c2f(message));
  MPI_Mrecv(x, n, MPI_DOUBLE, &message, &status);
  *handle = MPI_Message_c2f(message);
  convert(&status, converted);
}

/* Doubles that a status of Fortran tells of. */
int c_count(const MPI_Fint* converted) {
  MPI_Status status;
  int count;
  MPI_Status_f2c(converted, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  return count;
}
