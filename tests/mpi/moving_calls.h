/* The collective calls that move data. */
#ifndef MPRESS_TESTS_MOVING_CALLS_H
#define MPRESS_TESTS_MOVING_CALLS_H

#define MOVING_CALLS(X) \
  X(alltoall)           \
  X(alltoallv)          \
  X(alltoallw) X(gather) X(gatherv) X(scatter) X(scatterv) X(allgather) X(allgatherv) X(bcast)

#define MOVING_CALL_VALUE(name) name,
enum Op { MOVING_CALLS(MOVING_CALL_VALUE) op_count };

/* Does each rank have a block for each? */
static inline int is_alltoall(enum Op op) { return op <= alltoallw; }

/* Do several ranks get a block? */
static inline int is_same_for_all(enum Op op) {
  return op == bcast || op == allgather || op == allgatherv;
}

/* Does each block have as much? */
static inline int is_even(enum Op op) {
  return op == bcast || op == gather || op == scatter || op == allgather || op == alltoall;
}

#endif
