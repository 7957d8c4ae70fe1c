/* Windows, files, partitioned messages and attached buffers take memory of the host alone: given a
 * device's they end with an error that says so, told to the handler of what they work on, and the
 * host's they take as ever. For any number of ranks; the argument is a file to write. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "device_memory.h"
#include "simulated_gpu.h"

enum { N = 100, BYTES = N * (int)sizeof(int) };

static int refusals;

static void refused(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  CHECK(strstr(text, "memory of a device") != NULL);
  ++refusals;
}

static void on_comm(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  refused(*code);
}

static void on_window(MPI_Win* win, int* code, ...) {
  (void)win;
  refused(*code);
}

static void on_file(MPI_File* file, int* code, ...) {
  (void)file;
  refused(*code);
}

/* Each refusal is an error code, and told once. */
#define REFUSED(call)              \
  do {                             \
    const int before = refusals;   \
    CHECK((call) != MPI_SUCCESS);  \
    CHECK(refusals == before + 1); \
  } while (0)

static void check_windows(int* device, int* host) {
  const MPI_Aint bytes = BYTES;
  typedef int (*PutLarge)(const void*, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                          MPI_Datatype, MPI_Win);
  const PutLarge put_large = (PutLarge)dlsym(RTLD_DEFAULT, "MPI_Put_c");
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Win win;
  int* base;
  REFUSED(MPI_Win_create(device, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CHECK_MPI(MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_create_errhandler(on_window, &handler);
  MPI_Win_set_errhandler(win, handler);
  CHECK(put_large);
  MPI_Win_lock_all(0, win);
  REFUSED(MPI_Put(device, N, MPI_INT, 0, 0, N, MPI_INT, win));
  REFUSED(put_large(device, N, MPI_INT, 0, 0, N, MPI_INT, win));
  REFUSED(MPI_Get(device, N, MPI_INT, 0, 0, N, MPI_INT, win));
  REFUSED(MPI_Rput(device, N, MPI_INT, 0, 0, N, MPI_INT, win, &request));
  REFUSED(MPI_Rget(device, N, MPI_INT, 0, 0, N, MPI_INT, win, &request));
  REFUSED(MPI_Accumulate(device, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win));
  REFUSED(MPI_Raccumulate(device, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win, &request));
  REFUSED(MPI_Get_accumulate(host, N, MPI_INT, device, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win));
  REFUSED(MPI_Get_accumulate(device, N, MPI_INT, host, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win));
  REFUSED(MPI_Rget_accumulate(device, N, MPI_INT, host, N, MPI_INT, 0, 0, N, MPI_INT, MPI_SUM, win,
                              &request));
  REFUSED(MPI_Fetch_and_op(device, host, MPI_INT, 0, 0, MPI_SUM, win));
  REFUSED(MPI_Fetch_and_op(host, device, MPI_INT, 0, 0, MPI_SUM, win));
  REFUSED(MPI_Compare_and_swap(device, host, host + 1, MPI_INT, 0, 0, win));
  REFUSED(MPI_Compare_and_swap(host, device, host + 1, MPI_INT, 0, 0, win));
  REFUSED(MPI_Compare_and_swap(host, host + 1, device, MPI_INT, 0, 0, win));
  /* what is not looked at, and what the host has */
  CHECK_MPI(MPI_Put(device, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
  CHECK_MPI(
      MPI_Get_accumulate(device, N, MPI_INT, host, N, MPI_INT, 0, 0, N, MPI_INT, MPI_NO_OP, win));
  CHECK_MPI(MPI_Fetch_and_op(device, host, MPI_INT, 0, 0, MPI_NO_OP, win));
  if (check_rank == 0) CHECK_MPI(put_large(host, N, MPI_INT, 0, 0, N, MPI_INT, win));
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  CHECK_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, handler);
  REFUSED(MPI_Win_attach(win, device, bytes));
  MPI_Win_free(&win);
  MPI_Errhandler_free(&handler);
}

static void check_files(const char* path, int* device, int* host) {
  typedef int (*WriteLarge)(MPI_File, MPI_Offset, const void*, MPI_Count, MPI_Datatype,
                            MPI_Status*);
  const WriteLarge write_large = (WriteLarge)dlsym(RTLD_DEFAULT, "MPI_File_write_at_c");
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Status status;
  MPI_File file;
  CHECK_MPI(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
  MPI_File_create_errhandler(on_file, &handler);
  MPI_File_set_errhandler(file, handler);
  const MPI_Offset at = check_rank * BYTES;
  int read[N];
  CHECK(write_large);
  REFUSED(MPI_File_write_at(file, at, device, N, MPI_INT, &status));
  REFUSED(write_large(file, at, device, N, MPI_INT, &status));
  REFUSED(MPI_File_write_at_all(file, at, device, N, MPI_INT, &status));
  REFUSED(MPI_File_read_at(file, at, device, N, MPI_INT, &status));
  REFUSED(MPI_File_read_at_all(file, at, device, N, MPI_INT, &status));
  REFUSED(MPI_File_iwrite_at(file, at, device, N, MPI_INT, &request));
  REFUSED(MPI_File_iread_at_all(file, at, device, N, MPI_INT, &request));
  REFUSED(MPI_File_write(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_write_all(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_read(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_read_all(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_iread(file, device, N, MPI_INT, &request));
  REFUSED(MPI_File_iwrite_all(file, device, N, MPI_INT, &request));
  REFUSED(MPI_File_write_shared(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_read_ordered(file, device, N, MPI_INT, &status));
  REFUSED(MPI_File_write_all_begin(file, device, N, MPI_INT));
  REFUSED(MPI_File_read_at_all_begin(file, at, device, N, MPI_INT));
  CHECK_MPI(write_large(file, at, host, N, MPI_INT, &status));
  CHECK_MPI(MPI_File_read_at_all(file, at, read, N, MPI_INT, &status));
  CHECK(memcmp(read, host, sizeof read) == 0);
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  struct Memory device = memory_on(0, BYTES);
  int host[N];
  for (int i = 0; i < N; ++i) host[i] = i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_comm, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  check_windows((int*)device.data, host);
  check_files(argv[1], (int*)device.data, host);
  MPI_Request request;
#if MPI_VERSION >= 4
  REFUSED(MPI_Psend_init(device.data, 2, N / 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request));
  REFUSED(MPI_Precv_init(device.data, 2, N / 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request));
#endif
  REFUSED(MPI_Buffer_attach(device.data, BYTES));
  MPI_Errhandler_free(&handler);
  drop(&device);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
