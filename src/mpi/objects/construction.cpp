#include "mpi/objects/construction.hpp"

namespace mpress::mpi {

Construction::Construction(MPI_Datatype type) {
  const Calls& mpi = calls();
  // The large-count form takes types that were made with either.
  if (mpi.Type_get_envelope_c) {
    read_large(mpi, type);
    return;
  }
  int integers = 0, addresses = 0, datatypes = 0;
  mpi.Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
  if (combiner == MPI_COMBINER_NAMED || datatypes == 0) return;
  std::vector<int> some_integers(static_cast<std::size_t>(integers));
  std::vector<MPI_Aint> some_addresses(static_cast<std::size_t>(addresses));
  parts.resize(static_cast<std::size_t>(datatypes));
  mpi.Type_get_contents(type, integers, addresses, datatypes, some_integers.data(),
                        some_addresses.data(), parts.data());
  numbers.assign(some_integers.begin(), some_integers.end());
  numbers.insert(numbers.end(), some_addresses.begin(), some_addresses.end());
}

void Construction::read_large(const Calls& mpi, MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, counts = 0, datatypes = 0;
  mpi.Type_get_envelope_c(type, &integers, &addresses, &counts, &datatypes, &combiner);
  if (combiner == MPI_COMBINER_NAMED || datatypes == 0) return;
  std::vector<int> some_integers(static_cast<std::size_t>(integers));
  std::vector<MPI_Aint> some_addresses(static_cast<std::size_t>(addresses));
  std::vector<MPI_Count> some_counts(static_cast<std::size_t>(counts));
  parts.resize(static_cast<std::size_t>(datatypes));
  mpi.Type_get_contents_c(type, integers, addresses, counts, datatypes, some_integers.data(),
                          some_addresses.data(), some_counts.data(), parts.data());
  numbers.assign(some_integers.begin(), some_integers.end());
  numbers.insert(numbers.end(), some_addresses.begin(), some_addresses.end());
  numbers.insert(numbers.end(), some_counts.begin(), some_counts.end());
  large = counts > 0;
}

Construction::~Construction() {
  for (MPI_Datatype part : parts) {
    if (!Construction(part).predefined()) calls().Type_free(&part);
  }
}

}  // namespace mpress::mpi
