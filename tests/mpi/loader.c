/* Knows no MPI: loads a library that does, as interpreters load their modules, and calls its
 * program_main with the remaining arguments. What the library needs is loaded where a global
 * look-up does not reach.
 *   loader LIBRARY ARGS... */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*program)(int, char**);
  if (!library) {
    fprintf(stderr, "loader: %s\n", argc > 1 ? dlerror() : "no library");
    return 2;
  }
  program = (int (*)(int, char**))dlsym(library, "program_main");
  return program(argc - 1, argv + 1);
}
