#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wave.h"

const char* options_help(void) {
  return "usage: wave [options]\n"
         "3-D acoustic wave propagation from a point source, decomposed over the ranks of MPI.\n"
         "\n"
         "  --grid NXxNYxNZ        cells, z is depth (default 128x128x128)\n"
         "  --split PXxPYxPZ       ranks in each direction, 0 where MPI chooses (default 0x0x0)\n"
         "  --spacing METRES       edge of a cell (default 10)\n"
         "  --steps N              time steps (default 300)\n"
         "  --untimed N            steps at the start that the times leave out (default 0)\n"
         "  --device cpu|cuda      where fields are and are computed; GPUs of a host go to its "
         "ranks\n"
         "                         by turns (default cpu)\n"
         "  --dt SECONDS           time step (default: 0.9 of the stability limit)\n"
         "  --frequency HZ         peak of the Ricker wavelet (default: 10 cells a wavelength "
         "where\n"
         "                         the medium is slowest)\n"
         "  --source I,J,K         cell of the source (default: the middle, below the upper "
         "sponge)\n"
         "  --shots NXxNY          sources at once, spread evenly in x and y, in the depth of "
         "--source\n"
         "                         (default: that one)\n"
         "  --amplitude PASCAL     pressure at 1 m from the source (default 1e5)\n"
         "  --sponge CELLS         width of the absorbing layer on all sides (default 16)\n"
         "  --model FILE           velocities, raw little-endian f32, depth fastest\n"
         "                         (default: built-in layers with a salt body)\n"
         "  --model-dims NXxNZ     values in FILE, extruded along y; or NXxNYxNZ; resampled to the "
         "grid\n"
         "  --model-scale FACTOR   makes m/s of the values in FILE (1000 for km/s; default 1)\n"
         "  --output PREFIX        write PREFIX-STEP.f32 and PREFIX-velocity.f32, raw, z fastest\n"
         "  --snapshot-every N     steps between snapshots (default: after the last step only)\n"
         "  --help                 print this\n";
}

/* Integers joined by `separator`, at most `most`; returns how many, 0 when text is anything else.
 */
static int parse_integers(const char* text, char separator, int* values, int most) {
  for (int n = 0; n < most; ++n) {
    char* end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || errno || value < 0 || value > INT_MAX) return 0;
    values[n] = (int)value;
    if (*end == '\0') return n + 1;
    if (*end != separator) return 0;
    text = end + 1;
  }
  return 0;
}

static int parse_positive(const char* text, double* value) {
  char* end;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(*value) && *value > 0;
}

static int parse_dims(const char* text, int dims[3]) {
  int n = parse_integers(text, 'x', dims, 3);
  if (n == 2) {
    dims[2] = dims[1];
    dims[1] = 1;
  }
  return n >= 2 && dims[0] > 0 && dims[1] > 0 && dims[2] > 0;
}

static int parse_path(const char* text, char path[PREFIX_LENGTH]) {
  size_t length = strlen(text);
  if (length == 0 || length >= PREFIX_LENGTH) return 0;
  memcpy(path, text, length + 1);
  return 1;
}

/* One option; 1 when it was understood, 0 when its value is wrong, -1 when there is none such. */
static int parse_option(const char* name, const char* value, Options* o) {
  if (!strcmp(name, "--grid"))
    return parse_integers(value, 'x', o->grid, 3) == 3 && o->grid[0] && o->grid[1] && o->grid[2];
  if (!strcmp(name, "--split")) return parse_integers(value, 'x', o->split, 3) == 3;
  if (!strcmp(name, "--spacing")) return parse_positive(value, &o->spacing);
  if (!strcmp(name, "--steps"))
    return parse_integers(value, '\0', &o->steps, 1) == 1 && o->steps > 0;
  if (!strcmp(name, "--untimed")) return parse_integers(value, '\0', &o->untimed, 1) == 1;
  if (!strcmp(name, "--device")) {
    o->on_gpu = !strcmp(value, "cuda");
    return o->on_gpu || !strcmp(value, "cpu");
  }
  if (!strcmp(name, "--shots"))
    return parse_integers(value, 'x', o->shots, 2) == 2 && o->shots[0] && o->shots[1];
  if (!strcmp(name, "--dt")) return parse_positive(value, &o->time_step);
  if (!strcmp(name, "--frequency")) return parse_positive(value, &o->frequency);
  if (!strcmp(name, "--source")) return parse_integers(value, ',', o->source, 3) == 3;
  if (!strcmp(name, "--amplitude")) return parse_positive(value, &o->amplitude);
  if (!strcmp(name, "--sponge")) return parse_integers(value, '\0', &o->sponge, 1) == 1;
  if (!strcmp(name, "--model")) return parse_path(value, o->model);
  if (!strcmp(name, "--model-dims")) return parse_dims(value, o->model_dims);
  if (!strcmp(name, "--model-scale")) return parse_positive(value, &o->model_scale);
  if (!strcmp(name, "--output")) return parse_path(value, o->output);
  if (!strcmp(name, "--snapshot-every"))
    return parse_integers(value, '\0', &o->snapshot_every, 1) == 1 && o->snapshot_every > 0;
  return -1;
}

static int check(Options* o, char* error, size_t error_size) {
#ifndef WAVE_CUDA
  if (o->on_gpu) {
    snprintf(error, error_size, "--device cuda: this program was built without CUDA");
    return -1;
  }
#endif
  if (o->untimed >= o->steps) {
    snprintf(error, error_size, "--untimed %d leaves none of %d steps", o->untimed, o->steps);
    return -1;
  }
  if (o->model[0] && !o->model_dims[0]) {
    snprintf(error, error_size, "--model needs --model-dims NXxNZ or NXxNYxNZ");
    return -1;
  }
  if (!o->model[0] && o->model_dims[0]) {
    snprintf(error, error_size, "--model-dims without --model");
    return -1;
  }
  for (int d = 0; d < 3; ++d) {
    if (o->grid[d] <= 2 * o->sponge) {
      snprintf(error, error_size,
               "a sponge of %d cells on both sides leaves nothing of the %d "
               "cells along %c",
               o->sponge, o->grid[d], axis_name(d));
      return -1;
    }
    if (o->source[d] < 0) {
      int below_sponge = o->sponge + 2 < o->grid[d] ? o->sponge + 2 : o->grid[d] - 1;
      o->source[d] = d < 2 ? o->grid[d] / 2 : below_sponge;
    }
    if (o->source[d] >= o->grid[d]) {
      snprintf(error, error_size, "the source's %c = %d lies outside of the grid's %d cells",
               axis_name(d), o->source[d], o->grid[d]);
      return -1;
    }
  }
  return 0;
}

int options_parse(int argc, char** argv, Options* options, char* error, size_t error_size) {
  *options = (Options){
      .grid = {128, 128, 128},
      .spacing = 10,
      .steps = 300,
      .source = {-1, -1, -1},
      .shots = {1, 1},
      .amplitude = 1e5,
      .sponge = 16,
      .model_scale = 1,
  };
  for (int i = 1; i < argc; i += 2) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return OPTIONS_HELP;
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    int understood = parse_option(argv[i], value, options);
    if (understood < 0) {
      snprintf(error, error_size, "unknown option '%s' (--help lists them)", argv[i]);
      return OPTIONS_WRONG;
    }
    if (!understood) {
      snprintf(error, error_size,
               i + 1 < argc ? "%s: '%s' is not a valid value (see --help)" : "%s needs a value%s",
               argv[i], value);
      return OPTIONS_WRONG;
    }
  }
  return check(options, error, error_size) ? OPTIONS_WRONG : OPTIONS_RUN;
}
