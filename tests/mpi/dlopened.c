/* A program that is not linked with MPI: it opens a library at run time and looks the calls up in
 * it, as Julia does. Usage: dlopened LIBRARY local|global|deep|default
 * `default` opens the library for all and then looks calls up everywhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 5000 };

static void* library;

static void* look_up(const char* name) {
  void* symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "%s\n", dlerror());
  return symbol;
}

/* The type of a call is that of the function that mpi.h declares. */
#define CALL(name) ((__typeof__(&name))look_up(#name))

#ifdef OPEN_MPI
#define WORLD ((MPI_Comm)look_up("ompi_mpi_comm_world"))
#define FLOAT ((MPI_Datatype)look_up("ompi_mpi_float"))
#else
#define WORLD MPI_COMM_WORLD
#define FLOAT MPI_FLOAT
#endif

int main(int argc, char** argv) {
  static float out[N], in[N];
  int rank, size, count, wrong = 0;
  MPI_Request request;
  MPI_Status status;
  if (argc < 3) return 2;
  const char* how = argv[2];
  int flags = RTLD_LAZY | RTLD_LOCAL;
  if (!strcmp(how, "global") || !strcmp(how, "default")) flags = RTLD_LAZY | RTLD_GLOBAL;
  if (!strcmp(how, "deep")) flags |= RTLD_DEEPBIND;
  library = dlopen(argv[1], flags);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  if (!strcmp(how, "default")) library = RTLD_DEFAULT;
  CALL(MPI_Init)(&argc, &argv);
  CALL(MPI_Comm_rank)(WORLD, &rank);
  CALL(MPI_Comm_size)(WORLD, &size);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int i = 0; i < N; ++i) out[i] = (float)rank + 1e-3f * (float)i;
  CALL(MPI_Irecv)(in, N, FLOAT, previous, 1, WORLD, &request);
  CALL(MPI_Send)(out, N, FLOAT, next, 1, WORLD);
  CALL(MPI_Wait)(&request, &status);
  CALL(MPI_Get_count)(&status, FLOAT, &count);
  for (int i = 0; i < N; ++i) wrong += in[i] != (float)previous + 1e-3f * (float)i;
  printf("rank %d: %d elements, %d wrong\n", rank, count, wrong);
  CALL(MPI_Finalize)();
  return wrong != 0 || count != N;
}
