#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpress/codec.h>

#include "stencil.h"

const char* options_help(void) {
  return "usage: stencil [options]\n"
         "Heat, or Poisson's equation by Jacobi, on a grid over the processes of MPI.\n"
         "\n"
         "  --problem heat|jacobi      (default heat)\n"
         "  --points 5|9|7             of the stencil: 5 or 9 in 2-D, 7 in 3-D\n"
         "                             (default 5 or 7)\n"
         "  --grid NXxNY[xNZ]          cells (default 200x200)\n"
         "  --border periodic|fixed    fixed: 1 before the first cells of x, else 0\n"
         "                             (default periodic)\n"
         "  --depth K                  cells of halo, and steps for each exchange (default 1)\n"
         "  --steps N                  (default 100)\n"
         "  --rate R                   of heat: diffusivity x time step / cell^2\n"
         "                             (default: 0.9 of what is stable)\n"
         "  --exchange iso|mpi         mpress_iso_neighbor_alltoallw of Moore neighbours, or\n"
         "                             MPI_Neighbor_alltoallw of a graph of them (default iso)\n"
         "  --codec SPEC               none, auto, mpc, szp:abs=1e-6 ... (default: MPRESS_CODEC)\n"
         "  --check                    compare with a run of depth 1 without a codec\n"
         "  --output FILE              write the last values, raw f64, the last axis fastest\n"
         "  --help                     print this\n";
}

/* A whole number of at least `least`. */
static int parse_number(const char* text, long least, int* value, const char** end) {
  char* behind;
  errno = 0;
  long number = strtol(text, &behind, 10);
  if (behind == text || errno || number < least || number > INT_MAX) return 0;
  *value = (int)number;
  *end = behind;
  return 1;
}

static int parse_grid(const char* text, Options* o) {
  int cells[AXES], n = 0;
  for (;; ++text) {
    if (n == AXES || !parse_number(text, 1, &cells[n++], &text)) return 0;
    if (*text != 'x') break;
  }
  if (*text || n < 2) return 0;
  o->dims = n;
  o->grid[0] = 1;
  memcpy(o->grid + AXES - n, cells, (size_t)n * sizeof *cells);
  return 1;
}

/* One of two words. */
static int parse_either(const char* text, const char* no, const char* yes, int* value) {
  *value = !strcmp(text, yes);
  return *value || !strcmp(text, no);
}

/* 1 when it was understood, 0 when its value is wrong, -1 when there is none such. */
static int parse_option(const char* name, const char* value, Options* o) {
  const char* end = "";
  if (!strcmp(name, "--problem")) return parse_either(value, "heat", "jacobi", &o->is_jacobi);
  if (!strcmp(name, "--border")) return parse_either(value, "fixed", "periodic", &o->is_periodic);
  if (!strcmp(name, "--exchange")) return parse_either(value, "iso", "mpi", &o->is_mpi);
  if (!strcmp(name, "--grid")) return parse_grid(value, o);
  if (!strcmp(name, "--points")) return parse_number(value, 5, &o->points, &end) && !*end;
  if (!strcmp(name, "--depth")) return parse_number(value, 1, &o->depth, &end) && !*end;
  if (!strcmp(name, "--steps")) return parse_number(value, 1, &o->steps, &end) && !*end;
  if (!strcmp(name, "--rate")) {
    char* behind;
    o->rate = strtod(value, &behind);
    return behind != value && !*behind && isfinite(o->rate) && o->rate > 0;
  }
  if (!strcmp(name, "--codec")) return *(o->codec = value) != 0;
  if (!strcmp(name, "--output")) return *(o->output = value) != 0;
  return -1;
}

static int check(Options* o, char* error) {
  if (!o->points) o->points = o->dims == 2 ? 5 : 7;
  if (o->dims == 2 ? o->points != 5 && o->points != 9 : o->points != 7) {
    snprintf(error, MESSAGE_LENGTH, "--points %d: a grid of %d dimensions takes %s", o->points,
             o->dims, o->dims == 2 ? "5 or 9" : "7");
    return -1;
  }
  const char* problem = o->codec ? mpress_codec_problem(o->codec, MPRESS_F64) : NULL;
  if (problem) {
    snprintf(error, MESSAGE_LENGTH, "--codec %s: %s", o->codec, problem);
    return -1;
  }
  double most = 1 / stencil_weight(o->points);
  if (o->rate == 0) o->rate = 0.9 * most;
  if (o->rate > most) { /* beyond it values can leave the range of their neighbours' */
    snprintf(error, MESSAGE_LENGTH, "--rate %g is not stable: %d points take at most %.4g", o->rate,
             o->points, most);
    return -1;
  }
  return 0;
}

int options_parse(int argc, char** argv, Options* options, char* error) {
  *options =
      (Options){.dims = 2, .grid = {1, 200, 200}, .is_periodic = 1, .depth = 1, .steps = 100};
  for (int i = 1; i < argc; ++i) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return OPTIONS_HELP;
    if (!strcmp(name, "--check")) {
      options->is_checked = 1;
      continue;
    }
    int understood = parse_option(name, value, options);
    if (understood < 0) {
      snprintf(error, MESSAGE_LENGTH, "unknown option '%s' (--help lists them)", name);
      return OPTIONS_WRONG;
    }
    if (++i == argc) {
      snprintf(error, MESSAGE_LENGTH, "%s needs a value", name);
      return OPTIONS_WRONG;
    }
    if (!understood) {
      snprintf(error, MESSAGE_LENGTH, "%s: '%s' is not a valid value (see --help)", name, value);
      return OPTIONS_WRONG;
    }
  }
  return check(options, error) ? OPTIONS_WRONG : OPTIONS_RUN;
}
