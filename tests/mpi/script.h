/* Scripts of collective calls that move data: what a file says, and the data that it speaks of.
 *
 * A line is an action of all ranks:
 *
 *   call OP FORM comm=COMM root=R in_place=0|1 order=N leaf=LEAF data=DATA seed=N starts=N
 *     out=LAYOUTS:PLACES in=LAYOUTS:PLACES counts=N,N,...
 *   wait N
 *   drain
 *
 * LAYOUTS and PLACES have a letter for each rank of MPI_COMM_WORLD: contiguous elements, elements
 * with gaps or in reverse (both in items of four); the host, or a device's number. `counts` are
 * elements: one for all blocks, one for each rank, or a row of the matrix (from, to) after the
 * other, as OP needs it. `wait` completes the Nth of the calls under way, `drain` all. */
#ifndef MPRESS_TESTS_SCRIPT_H
#define MPRESS_TESTS_SCRIPT_H

#include <stdint.h>

#include "check.h"
#include "moving_calls.h"

enum { most_ranks = 9, most_starts = 3, most_actions = 200, guard = 0x5A };

#define MOVING_CALL_NAME(name) #name,
static const char* const op_names[] = {MOVING_CALLS(MOVING_CALL_NAME)};

enum Form { blocking, immediate, persistent, beneath };
static const char* const form_names[] = {"blocking", "immediate", "persistent"};

enum CommName { world, reversed, halves, comm_count };
static const char* const comm_names[] = {"world", "reversed", "halves"};

enum Leaf { f32, f64, i32, leaf_count, mixed = leaf_count };
static const char* const leaf_names[] = {"f32", "f64", "i32", "mixed"};

enum Data { smooth, noise, wild, huge, constant, nothing, data_count };
static const char* const data_names[] = {"smooth", "noise", "wild", "huge", "constant", "nothing"};

enum Layout { contiguous, with_gaps, backwards, layout_count };

struct Action {
  enum { call, wait_for, drain } kind;
  int line, which; /* which: of `wait` */
  enum Op op;
  enum Form form;
  enum CommName comm;
  int root, in_place, order;
  enum Leaf leaf; /* mixed: each pair's its own */
  enum Data data;
  unsigned seed;
  int starts;
  enum Layout out_layout, in_layout; /* of this rank */
  int out_device, in_device;         /* or -1 */
  int count_number;
  int counts[most_ranks * most_ranks];
};

static int named(const char* word, const char* const* names, int count) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(word, names[i]) == 0) return i;
  }
  fprintf(stderr, "the script has a word that is none: %s\n", word);
  CHECK(!"a word of the script");
  return -1;
}

static void read_side(const char* text, int rank, enum Layout* layout, int* device) {
  const char* const places = strchr(text, ':');
  CHECK(places && rank < places - text && rank < (int)strlen(places + 1));
  *layout = text[rank] == 'c' ? contiguous : text[rank] == 'g' ? with_gaps : backwards;
  *device = places[1 + rank] == 'h' ? -1 : places[1 + rank] - '0';
}

static struct Action read_call(FILE* file, int rank) {
  struct Action a = {.kind = call};
  char op[32], form[32], comm[32], leaf[32], data[32], out[64], in[64];
  CHECK(fscanf(file,
               "%31s %31s comm=%31s root=%d in_place=%d order=%d leaf=%31s data=%31s seed=%u "
               "starts=%d out=%63s in=%63s counts=%d",
               op, form, comm, &a.root, &a.in_place, &a.order, leaf, data, &a.seed, &a.starts, out,
               in, &a.counts[0]) == 13);
  for (a.count_number = 1; fscanf(file, ",%d", &a.counts[a.count_number]) == 1;) {
    CHECK(++a.count_number <= most_ranks * most_ranks);
  }
  a.op = (enum Op)named(op, op_names, op_count);
  a.form = (enum Form)named(form, form_names, beneath);
  a.comm = (enum CommName)named(comm, comm_names, comm_count);
  a.leaf = (enum Leaf)named(leaf, leaf_names, leaf_count + 1);
  a.data = (enum Data)named(data, data_names, data_count);
  read_side(out, rank, &a.out_layout, &a.out_device);
  read_side(in, rank, &a.in_layout, &a.in_device);
  CHECK(a.starts >= 1 && a.starts <= most_starts);
  return a;
}

/* Returns the number of actions. */
static int read_script(const char* path, int rank, struct Action* actions) {
  FILE* const file = fopen(path, "r");
  CHECK(file);
  int count = 0;
  char word[32];
  while (fscanf(file, "%31s", word) == 1) {
    CHECK(count < most_actions);
    struct Action* const a = &actions[count];
    if (strcmp(word, "call") == 0) {
      *a = read_call(file, rank);
    } else {
      *a = (struct Action){.kind = strcmp(word, "wait") == 0 ? wait_for : drain};
      if (a->kind == wait_for) CHECK(fscanf(file, "%d", &a->which) == 1);
    }
    a->line = ++count;
  }
  fclose(file);
  return count;
}

/* A leaf in a layout. */
struct Kind {
  MPI_Datatype type;
  int width;    /* bytes of an element */
  int in_item;  /* elements */
  int extent;   /* bytes from an item to the next */
  int place[4]; /* of an item's elements, in elements */
};
static struct Kind kinds[leaf_count][layout_count];

static void make_kinds(void) {
  static const int gaps[4] = {0, 1, 3, 4}, back[4] = {4, 3, 1, 0};
  const MPI_Datatype leaves[] = {MPI_FLOAT, MPI_DOUBLE, MPI_INT};
  for (int leaf = 0; leaf < leaf_count; ++leaf) {
    const int width = leaf == f64 ? 8 : 4;
    kinds[leaf][contiguous] = (struct Kind){leaves[leaf], width, 1, width, {0}};
    for (int layout = with_gaps; layout < layout_count; ++layout) {
      struct Kind* const kind = &kinds[leaf][layout];
      MPI_Datatype four;
      *kind = (struct Kind){MPI_DATATYPE_NULL, width, 4, 6 * width, {0}};
      memcpy(kind->place, layout == with_gaps ? gaps : back, sizeof gaps);
      CHECK_MPI(MPI_Type_create_indexed_block(4, 1, kind->place, leaves[leaf], &four));
      CHECK_MPI(MPI_Type_create_resized(four, 0, kind->extent, &kind->type));
      CHECK_MPI(MPI_Type_commit(&kind->type));
      CHECK_MPI(MPI_Type_free(&four));
    }
  }
}

static void free_kinds(void) {
  for (int leaf = 0; leaf < leaf_count; ++leaf) {
    for (int layout = with_gaps; layout < layout_count; ++layout) {
      CHECK_MPI(MPI_Type_free(&kinds[leaf][layout].type));
    }
  }
}

/* Where element `i` of a block lies, from its beginning. */
static size_t offset_of(const struct Kind* kind, int i) {
  return (size_t)(i / kind->in_item) * (size_t)kind->extent +
         (size_t)(kind->place[i % kind->in_item] * kind->width);
}

static double value(enum Data data, unsigned seed, int from, int to, int i, int width) {
  unsigned bits =
      (unsigned)i * 2654435761u ^ (seed * 31u + (unsigned)from * 7u + (unsigned)to) * 40503u;
  bits = (bits ^ bits >> 15) * 2246822519u;
  bits ^= bits >> 13;
  switch (data) {
    case noise: return ldexp(bits, -20) - 2000.;
    case constant: return seed % 2 ? 3.25 + from : 0;
    case nothing: return NAN;
    case huge: return (bits % 2 ? -1 : 1) * ldexp(1 + bits % 3 / 4., width == 4 ? 127 : 1023);
    case wild:
      switch (bits % 97) {
        case 0: return NAN;
        case 1: return INFINITY;
        case 2: return -INFINITY;
        case 3: return -0.;
        case 4: return ldexp(bits, width == 4 ? -170 : -1090); /* denormal */
        case 5: return 1e30;
        default: break;
      }
      break;
    default: break;
  }
  return 100. * (from + 1) + 10. * to + 10. * sin(1e-2 * i + seed);
}

/* What element `i` of the block from one rank to another is. */
static void write_element(char* at, enum Leaf leaf, const struct Action* a, unsigned seed, int from,
                          int to, int i) {
  const double x = value(a->data, seed, from, to, i, leaf == f64 ? 8 : 4);
  const float single = (float)x;
  const uint32_t payload = 0x7FC00000u + (uint32_t)i % 1000u;
  const int32_t whole =
      (int32_t)((unsigned)i * 40503u + seed * 65537u + (unsigned)(from * 16 + to));
  if (leaf == i32) {
    memcpy(at, &whole, 4);
  } else if (leaf == f64) {
    memcpy(at, &x, 8);
  } else if (isnan(x)) {
    memcpy(at, &payload, 4);
  } else {
    memcpy(at, &single, 4);
  }
}

static double read_element(const char* at, enum Leaf leaf) {
  float single;
  double x;
  if (leaf == f64) {
    memcpy(&x, at, 8);
    return x;
  }
  memcpy(&single, at, 4);
  return single;
}

#endif
