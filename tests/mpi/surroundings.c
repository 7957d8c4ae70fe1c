/* What programs do beside communicating. Usage: surroundings MODE
 *   children   starts processes between messages, by fork and exec, by system and by popen
 *   idle       makes no MPI call
 *   asks       asks what MPI answers before it is initialised, and leaves
 *   quits      exits without MPI_Finalize
 *   aborts     calls MPI_Abort while messages are under way
 *   early      communicates in a constructor, before main
 *   late       communicates while the program exits */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { N = 4000 };

static int rank, size;

static void messages(void) {
  static float out[N], in[N];
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  fill_f32(out, N, rank);
  MPI_Sendrecv(out, N, MPI_FLOAT, next, 1, in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, previous));
}

static void init(void) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
}

static void finish(void) {
  messages();
  MPI_Finalize();
  if (rank == 0) puts("late");
}

__attribute__((constructor)) static void before_main(int argc, char** argv) {
  if (argc < 2 || strcmp(argv[1], "early") != 0) return;
  init();
  messages();
}

static void children(void) {
  char line[16] = "";
  int status;
  for (int round = 0; round < 3; ++round) {
    messages();
    const pid_t child = fork();
    if (child == 0) {
      execlp("sh", "sh", "-c", "exit 3", (char*)NULL);
      _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(WEXITSTATUS(system("exit 4")) == 4);
    FILE* pipe = popen("echo child", "r");
    CHECK(fgets(line, sizeof line, pipe) && strcmp(line, "child\n") == 0 && pclose(pipe) == 0);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int flag = 0;
  if (!strcmp(mode, "idle")) return puts("idle") < 0;
  if (!strcmp(mode, "asks")) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    MPI_Initialized(&flag);
    printf("%d %d\n", flag, length > 0);
    return 0;
  }
  if (!strcmp(mode, "early")) {
    messages();
  } else {
    init();
    messages();
  }
  if (!strcmp(mode, "late")) {
    atexit(finish);
    return 0;
  }
  if (!strcmp(mode, "children")) children();
  /* The launcher ends the others as soon as one has gone. */
  if (!strcmp(mode, "quits") || !strcmp(mode, "aborts")) MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(mode, "quits")) _exit(0);
  if (!strcmp(mode, "aborts") && rank == 0) {
    static float never[N];
    MPI_Request request;
    MPI_Irecv(never, N, MPI_FLOAT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
    MPI_Abort(MPI_COMM_WORLD, 5);
  }
  if (!strcmp(mode, "aborts"))
    MPI_Recv(&flag, 1, MPI_INT, 0, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
