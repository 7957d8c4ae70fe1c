/* attributes.c with a language binding, linked into the program. */
#define BOUND
#include "attributes.c"
