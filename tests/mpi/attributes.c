/* Attributes of communicators and datatypes: MPI calls the program's callbacks for what the program
 * does alone. Values are copied by its own duplicates, and each is deleted once, with its object.
 *
 * With BOUND (attributes_bound.c) a keyval of communicators comes from a language binding, as MPICH
 * has them. 2 ranks and more. */
#include "check.h"

enum { N = 20000, GAP = 3, MOST = 64 };

static int rank, size;
static float out[GAP * N], in[GAP * N];

struct Value {
  int copies, deletes;
};
struct Keyval {
  int copies_values, fails; /* what callbacks do */
};

static int copy_value(struct Keyval* keyval, struct Value* value, void* copied, int* flag) {
  ++value->copies;
  *flag = keyval->copies_values;
  if (*flag) *(void**)copied = value;
  return MPI_SUCCESS;
}
static int delete_value(struct Keyval* keyval, struct Value* value) {
  if (keyval->fails) return MPI_ERR_OTHER;
  ++value->deletes;
  return MPI_SUCCESS;
}
static int copy_comm(MPI_Comm c, int key, void* keyval, void* value, void* copied, int* flag) {
  return (void)c, (void)key, copy_value(keyval, value, copied, flag);
}
static int delete_comm(MPI_Comm c, int key, void* value, void* keyval) {
  return (void)c, (void)key, delete_value(keyval, value);
}
static int copy_type(MPI_Datatype t, int key, void* keyval, void* value, void* copied, int* flag) {
  return (void)t, (void)key, copy_value(keyval, value, copied, flag);
}
static int delete_type(MPI_Datatype t, int key, void* value, void* keyval) {
  return (void)t, (void)key, delete_value(keyval, value);
}

/* What a binding does: it gives MPI a function that is none of C's, and afterwards another one that
 * calls it. */
#if defined BOUND && defined MPICH_VERSION && !defined MPI_ABI
typedef void BoundCopy(int* comm, int* key, void* keyval, void* value, void* copied, int* flag,
                       int* error);
typedef void BoundDelete(int* comm, int* key, void* value, void* keyval, int* error);
int MPII_Keyval_set_proxy(int, int (*)(BoundCopy*, int, int, void*, int, void*, void**, int*),
                          int (*)(BoundDelete*, int, int, int, void*, void*));

static void bound_copy(int* comm, int* key, void* keyval, void* value, void* copied, int* flag,
                       int* error) {
  *error = copy_comm(*comm, *key, keyval, value, copied, flag);
}
static void bound_delete(int* comm, int* key, void* value, void* keyval, int* error) {
  *error = delete_comm(*comm, *key, value, keyval);
}
static int call_copy(BoundCopy* copy, int comm, int key, void* keyval, int kind, void* value,
                     void** copied, int* flag) {
  int error = MPI_SUCCESS;
  (void)kind;
  copy(&comm, &key, keyval, value, copied, flag, &error);
  return error;
}
static int call_delete(BoundDelete* remove, int comm, int key, int kind, void* value,
                       void* keyval) {
  int error = MPI_SUCCESS;
  (void)kind;
  remove(&comm, &key, value, keyval, &error);
  return error;
}
static void create_bound(int* key, struct Keyval* keyval) {
  CHECK_MPI(MPI_Comm_create_keyval((MPI_Comm_copy_attr_function*)(void (*)(void))bound_copy,
                                   (MPI_Comm_delete_attr_function*)(void (*)(void))bound_delete,
                                   key, keyval));
  MPII_Keyval_set_proxy(*key, call_copy, call_delete);
}
#else
static void create_bound(int* key, struct Keyval* keyval) {
  CHECK_MPI(MPI_Comm_create_keyval(copy_comm, delete_comm, key, keyval));
}
#endif

static void talk(MPI_Comm comm, MPI_Datatype type) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Request request;
  fill_f32(out, GAP * N, rank);
  CHECK_MPI(MPI_Irecv(in, 1, type, previous, 1, comm, &request));
  CHECK_MPI(MPI_Send(out, 1, type, next, 1, comm));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < N; ++i)
    CHECK(in[GAP * i] == (float)(previous + 1) + 1e-3f * (float)(GAP * i));
  CHECK_MPI(MPI_Ibcast(out, 1, type, 0, comm, &request)); /* the first collective call */
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < N; ++i) CHECK(out[GAP * i] == 1 + 1e-3f * (float)(GAP * i));
  for (int i = 0; i < N; ++i) out[i] = (float)(i % 64);
  CHECK_MPI(MPI_Iallreduce(out, in, N, MPI_FLOAT, MPI_SUM, comm, &request));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, out, N, MPI_FLOAT, MPI_SUM, comm));
  for (int i = 0; i < N; ++i) CHECK(in[i] == (float)(size * (i % 64)) && in[i] == out[i]);
}

static MPI_Datatype with_gaps(void) {
  MPI_Datatype type;
  CHECK_MPI(MPI_Type_vector(N, 1, GAP, MPI_FLOAT, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  return type;
}

/* Of several keyvals; the copies that count are those of the program's own duplicates. */
static void copied_and_deleted(void) {
  static struct Value values[MOST];
  struct Keyval copying = {1, 0}, refusing = {0, 0};
  int keys[6], types[2];
  CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_comm, &keys[0], &copying));
  CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_comm, &keys[1], &copying));
  create_bound(&keys[2], &copying);
  CHECK_MPI(MPI_Comm_create_keyval(copy_comm, delete_comm, &keys[3], &refusing));
  CHECK_MPI(MPI_Comm_create_keyval(copy_comm, MPI_COMM_NULL_DELETE_FN, &keys[4], &copying));
  CHECK_MPI(MPI_Keyval_create(copy_comm, delete_comm, &keys[5], &copying));
  CHECK_MPI(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete_type, &types[0], &copying));
  CHECK_MPI(MPI_Type_create_keyval(copy_type, delete_type, &types[1], &copying));
  const int is_copied[] = {1, 0, 1, 0, 1, 1}, asks[] = {0, 0, 1, 1, 1, 1};
  for (int round = 0; round < 2; ++round) {
    MPI_Comm comm, duplicate;
    MPI_Datatype type = with_gaps(), other;
    MPI_Request request;
    memset(values, 0, sizeof values);
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
    for (int k = 0; k < 6; ++k) CHECK_MPI(MPI_Comm_set_attr(comm, keys[k], &values[k]));
    for (int k = 0; k < 2; ++k) CHECK_MPI(MPI_Type_set_attr(type, types[k], &values[6 + k]));
    if (round == 1) { /* attributes outlive their keyvals */
      for (int k = 0; k < 6; ++k) {
        int key = keys[k];
        CHECK_MPI(MPI_Comm_free_keyval(&key));
      }
    }
    talk(comm, type);
    for (int k = 0; k < 8; ++k) CHECK(values[k].copies == 0 && values[k].deletes == 0);
    if (round == 0) {
      CHECK_MPI(MPI_Comm_dup(comm, &duplicate));
    } else {
      CHECK_MPI(MPI_Comm_idup(comm, &duplicate, &request));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK_MPI(MPI_Type_dup(type, &other));
    CHECK(values[6].copies == 0 && values[7].copies == 1);
    for (int k = 0; k < 6; ++k) {
      struct Value* found = NULL;
      int flag = 0;
      CHECK(values[k].copies == asks[k] && values[k].deletes == 0);
      if (round == 1) continue;
      CHECK_MPI(MPI_Comm_get_attr(duplicate, keys[k], &found, &flag));
      CHECK(!flag == !is_copied[k] && (!flag || found == &values[k]));
    }
    talk(duplicate, other);
    CHECK_MPI(MPI_Comm_free(&duplicate));
    CHECK_MPI(MPI_Type_free(&other));
    for (int k = 0; k < 6; ++k)
      CHECK(values[k].copies == asks[k] && values[k].deletes == (k != 4 && is_copied[k]));
    CHECK(values[6].deletes == 1 && values[7].deletes == 1);
    CHECK_MPI(MPI_Comm_free(&comm));
    CHECK_MPI(MPI_Type_free(&type));
    for (int k = 0; k < 6; ++k)
      CHECK(values[k].copies == asks[k] && values[k].deletes == (k != 4) * (1 + is_copied[k]));
    CHECK(values[6].deletes == 2 && values[7].deletes == 2);
  }
  for (int k = 0; k < 2; ++k) CHECK_MPI(MPI_Type_free_keyval(&types[k]));
}

/* Errors of callbacks are the program's to see. */
static void failing(void) {
  struct Keyval keyval = {1, 1};
  struct Value value = {0, 0};
  MPI_Comm comm;
  int key;
  CHECK_MPI(MPI_Comm_create_keyval(copy_comm, delete_comm, &key, &keyval));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
  CHECK_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  CHECK_MPI(MPI_Comm_set_attr(comm, key, &value));
  CHECK(MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS);
  keyval.fails = 0;
  CHECK_MPI(MPI_Comm_delete_attr(comm, key));
  CHECK(value.deletes == 1);
  CHECK_MPI(MPI_Comm_free_keyval(&key));
  CHECK_MPI(MPI_Comm_free(&comm));
}

/* A type that is freed while it is used ends with the last use, and its values with it. */
static void freed_in_use(void) {
  struct Keyval keyval = {1, 0};
  struct Value value = {0, 0};
  int key;
  MPI_Datatype type = with_gaps();
  MPI_Request requests[2];
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  CHECK_MPI(MPI_Type_create_keyval(copy_type, delete_type, &key, &keyval));
  CHECK_MPI(MPI_Type_set_attr(type, key, &value));
  fill_f32(out, N, rank);
  CHECK_MPI(MPI_Irecv(in, 1, type, previous, 2, MPI_COMM_WORLD, &requests[0]));
  CHECK_MPI(MPI_Recv_init(in, 1, type, previous, 3, MPI_COMM_WORLD, &requests[1]));
  CHECK_MPI(MPI_Type_free(&type));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < 2; ++k) {
    if (k == 1) CHECK_MPI(MPI_Start(&requests[1]));
    memset(in, 0, sizeof in);
    CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, next, 2 + k, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
    for (int i = 0; i < N; ++i) CHECK(in[GAP * i] == (float)(previous + 1) + 1e-3f * (float)i);
  }
  CHECK_MPI(MPI_Request_free(&requests[1]));
  CHECK(value.copies == 0 && value.deletes == 1);
  CHECK_MPI(MPI_Type_free_keyval(&key));
}

static int inner_key, outer_key, unlinked = 0;
static MPI_Comm inner, outer;
static int unlink_inner(MPI_Comm c, int key, void* value, void* extra) {
  (void)c, (void)key, (void)value, (void)extra, ++unlinked;
  return MPI_Comm_delete_attr(inner, outer_key);
}
static int unlink_outer(MPI_Comm c, int key, void* value, void* extra) {
  return (void)c, (void)key, (void)value, (void)extra, ++unlinked, MPI_SUCCESS;
}

/* Two communicators that know each other: the end of one deletes what the other has of it. */
static void linked(void) {
  MPI_Datatype type = with_gaps();
  CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, unlink_inner, &inner_key, NULL));
  CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, unlink_outer, &outer_key, NULL));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &outer));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &inner));
  CHECK_MPI(MPI_Comm_set_attr(outer, inner_key, &inner));
  CHECK_MPI(MPI_Comm_set_attr(inner, outer_key, &outer));
  talk(outer, type), talk(inner, type);
  CHECK(unlinked == 0);
  CHECK_MPI(MPI_Comm_free(&outer));
  CHECK(unlinked == 2);
  talk(inner, type);
  CHECK_MPI(MPI_Comm_free(&inner));
  CHECK_MPI(MPI_Type_free(&type));
  CHECK(unlinked == 2);
  CHECK_MPI(MPI_Comm_free_keyval(&inner_key));
  CHECK_MPI(MPI_Comm_free_keyval(&outer_key));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  copied_and_deleted();
  failing();
  freed_in_use();
  linked();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
