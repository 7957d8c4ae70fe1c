// How MPI made a datatype: of which types, and with which numbers.
#pragma once

#include <vector>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

class Construction {
 public:
  explicit Construction(MPI_Datatype type);
  Construction(const Construction&) = delete;
  Construction& operator=(const Construction&) = delete;
  /// MPI hands out derived parts as new references, which it takes back.
  ~Construction();

  /// Not made of other types. MPI's own types that Fortran asks for by precision have no names,
  /// and must not be freed either.
  bool predefined() const {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  }

  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Datatype> parts;
  /// The arguments of the constructor in its own order, without the types: the same whether they
  /// were ints and addresses or large counts; of a sub-array made with `large` counts, the number
  /// of dimensions and the order come first.
  std::vector<MPI_Count> numbers;
  bool large = false;

 private:
  void read_large(const Calls& mpi, MPI_Datatype type);
};

}  // namespace mpress::mpi
