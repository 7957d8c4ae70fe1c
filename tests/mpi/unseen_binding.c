/* A Fortran binding, as a library, that goes past MPI's entry points: receives start by MPI_Irecv,
 * which mpress sees, and are completed inside MPI. (Only the names are Fortran's.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

void mpi_comm_rank_(MPI_Comm* comm, int* rank, int* ierror) {
  *ierror = MPI_Comm_rank(*comm, rank);
}

void mpi_irecv_(void* buffer, int* count, MPI_Datatype* type, int* source, int* tag, MPI_Comm* comm,
                MPI_Request* request, int* ierror) {
  *ierror = MPI_Irecv(buffer, *count, *type, *source, *tag, *comm, request);
}

void mpi_wait_(MPI_Request* request, MPI_Status* status, int* ierror) {
  Dl_info info;
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_processor_name"), &info);
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  int (*wait)(MPI_Request*, MPI_Status*) =
      (int (*)(MPI_Request*, MPI_Status*))dlsym(library, "PMPI_Wait");
  *ierror = wait(request, status);
}
