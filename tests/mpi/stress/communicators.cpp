#include "communicators.hpp"

#include "failure.hpp"

namespace stress {

void Communicators::prepare(const std::vector<Comm>& plan, int epoch) {
  if (epoch != epoch_) {
    free_all();
    plan_ = plan;
    handles_.assign(plan.size(), MPI_COMM_NULL);
    exists_.assign(plan.size(), false);
    handles_[0] = MPI_COMM_WORLD;
    handles_[1] = root_;
    exists_[0] = exists_[1] = true;
    epoch_ = epoch;
  }
  // Those of one creation come from one call: where some are missing the others go too.
  for (std::size_t k = 2; k < plan_.size(); ++k) {
    if (exists_[k]) continue;
    for (std::size_t other = 2; other < plan_.size(); ++other) {
      if (plan_[other].creation == plan_[k].creation) free(static_cast<int>(other));
    }
  }
  for (std::size_t k = 2; k < plan_.size(); ++k) {
    if (!exists_[k]) make(static_cast<int>(k));
  }
}

namespace {

bool has_threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

/// Whatever a rank chooses for itself, its messages arrive bit by bit.
void choose_codec(MPI_Comm comm, Random random) {
  MPI_Info info;
  must(MPI_Info_create(&info), "MPI_Info_create");
  const char* const codecs[] = {"none", "auto", "mpc", "mpc:dim=2", "mpc:dim=3"};
  const char* const thresholds[] = {"0", "4K", "64K"};
  const char* const chunks[] = {"8K", "64K", "1M"};
  MPI_Info_set(info, "mpress_codec", codecs[random.below(5)]);
  if (random.chance(50)) MPI_Info_set(info, "mpress_threshold", thresholds[random.below(3)]);
  if (random.chance(50)) MPI_Info_set(info, "mpress_chunk", chunks[random.below(3)]);
  must(MPI_Comm_set_info(comm, info), "MPI_Comm_set_info");
  must(MPI_Info_free(&info), "MPI_Info_free");
}

}  // namespace

/// Makes all communicators of one creation.
void Communicators::make(int comm) {
  const Comm& plan = plan_[static_cast<std::size_t>(comm)];
  MPI_Comm made = MPI_COMM_NULL;
  int mine = comm;
  for (std::size_t k = 0; k < plan_.size(); ++k) {
    if (plan_[k].creation != plan.creation) continue;
    exists_[k] = true;
    if (plan_[k].has(rank_)) mine = static_cast<int>(k);
  }
  const Comm& own = plan_[static_cast<std::size_t>(mine)];
  Random random(plan.seed);
  switch (plan.kind) {
    case Comm::Kind::split:
      must(MPI_Comm_split(root_, mine, own.rank_of(rank_), &made), "MPI_Comm_split");
      break;
    case Comm::Kind::cart: {
      int dims[2] = {0, 0}, periods[2] = {random.below(2), random.below(2)};
      must(MPI_Dims_create(static_cast<int>(own.group.size()), 2, dims), "MPI_Dims_create");
      must(MPI_Cart_create(root_, 2, dims, periods, 0, &made), "MPI_Cart_create");
      break;
    }
    case Comm::Kind::merged:
    case Comm::Kind::inter: made = make_halves(own); break;
    default:
      // MPICH 5.0 fails an assertion of its own (contextid.c) where one thread is in MPI_Comm_idup
      // and others make communicators.
      if (random.chance(50) || has_threads()) {
        must(MPI_Comm_dup(root_, &made), "MPI_Comm_dup");
      } else {
        MPI_Request request;
        must(MPI_Comm_idup(root_, &made, &request), "MPI_Comm_idup");
        must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
      }
  }
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  if (own.hinted()) {
    choose_codec(made, Random(mix(plan.seed, static_cast<std::uint64_t>(rank_))));
  }
  int rank = -1;
  must(MPI_Comm_rank(made, &rank), "MPI_Comm_rank");
  expect_equal(rank, own.rank_of(rank_), "the rank in a new communicator");
  handles_[static_cast<std::size_t>(mine)] = made;
}

MPI_Comm Communicators::make_halves(const Comm& comm) const {
  int size = 0;
  MPI_Comm_size(root_, &size);
  // The low half of the ranks is the group, or begins it.
  const bool inter = comm.kind == Comm::Kind::inter;
  const int first = inter ? static_cast<int>(comm.group.size()) : (size + 1) / 2;
  const bool low = rank_ < first;
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  must(MPI_Comm_split(root_, low, rank_, &half), "MPI_Comm_split");
  must(MPI_Intercomm_create(half, 0, root_, low ? first : 0, lonely_tag + 1, &both),
       "MPI_Intercomm_create");
  MPI_Comm_free(&half);
  if (inter) return both;
  must(MPI_Intercomm_merge(both, !low, &merged), "MPI_Intercomm_merge");
  MPI_Comm_free(&both);
  return merged;
}

void Communicators::free(int comm) {
  const auto at = static_cast<std::size_t>(comm);
  exists_[at] = false;
  if (handles_[at] == MPI_COMM_NULL) return;
  must(MPI_Comm_free(&handles_[at]), "MPI_Comm_free");
  expect(handles_[at] == MPI_COMM_NULL, "MPI_Comm_free leaves a handle");
}

void Communicators::forget(const std::vector<int>& freed) {
  for (int comm : freed) exists_[static_cast<std::size_t>(comm)] = false;
}

void Communicators::free_all() {
  for (std::size_t k = 2; k < handles_.size(); ++k) free(static_cast<int>(k));
}

}  // namespace stress
