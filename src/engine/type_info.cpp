#include "engine/type_info.hpp"

#include <vector>

#include "engine/handle_cache.hpp"
#include "engine/immortal.hpp"
#include "engine/job.hpp"

namespace mpress::engine {
namespace {

Immortal<HandleCache<MPI_Datatype, TypeInfo>> cache;

/// What is known of a type is not its copy's.
int copy_nothing(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int forget(MPI_Datatype type, int, void*, void*) {
  cache->erase(type);
  return MPI_SUCCESS;
}

int keyval() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    link::mpi().Type_create_keyval(copy_nothing, forget, &made, nullptr);
    return made;
  }();
  return key;
}

std::optional<ElementType> float_of(std::size_t size) {
  if (size == 4) return ElementType::f32;
  if (size == 8) return ElementType::f64;
  return std::nullopt;
}

/// Predefined types that are floats of 4 or 8 bytes, or pairs of them.
std::optional<ElementType> named_element(MPI_Datatype type, std::size_t size) {
  // How large Fortran's are is the compiler's choice.
  const bool real =
      type == MPI_REAL || type == MPI_REAL4 || type == MPI_REAL8 || type == MPI_DOUBLE_PRECISION;
  const bool pair = type == MPI_COMPLEX || type == MPI_DOUBLE_COMPLEX || type == MPI_COMPLEX8 ||
                    type == MPI_COMPLEX16 || type == MPI_2REAL || type == MPI_2DOUBLE_PRECISION;
  if (real || pair) return float_of(pair ? size / 2 : size);
  if (type == MPI_FLOAT || type == MPI_C_FLOAT_COMPLEX) return ElementType::f32;
  if (type == MPI_DOUBLE || type == MPI_C_DOUBLE_COMPLEX) return ElementType::f64;
  return std::nullopt;
}

/// How a type was made: its combiner and the types it was made of.
class Construction {
 public:
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Datatype> parts;
  std::vector<MPI_Count> lengths;  ///< of a struct's parts

  /// Not made of other types. MPI's own types that Fortran asks for by precision have no names,
  /// and must not be freed either.
  bool predefined() const {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  }

  explicit Construction(MPI_Datatype type) {
    const link::MpiCalls& mpi = link::mpi();
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
    take_lengths(some_integers);
  }
  Construction(const Construction&) = delete;
  Construction& operator=(const Construction&) = delete;

  /// MPI hands out derived parts as new references.
  ~Construction() {
    for (MPI_Datatype part : parts) {
      if (!Construction(part).predefined()) link::mpi().Type_free(&part);
    }
  }

 private:
  void read_large(const link::MpiCalls& mpi, MPI_Datatype type) {
    MPI_Count integers = 0, addresses = 0, counts = 0, datatypes = 0;
    mpi.Type_get_envelope_c(type, &integers, &addresses, &counts, &datatypes, &combiner);
    if (combiner == MPI_COMBINER_NAMED || datatypes == 0) return;
    std::vector<int> some_integers(static_cast<std::size_t>(integers));
    std::vector<MPI_Aint> some_addresses(static_cast<std::size_t>(addresses));
    std::vector<MPI_Count> some_counts(static_cast<std::size_t>(counts));
    parts.resize(static_cast<std::size_t>(datatypes));
    mpi.Type_get_contents_c(type, integers, addresses, counts, datatypes, some_integers.data(),
                            some_addresses.data(), some_counts.data(), parts.data());
    take_lengths(some_integers);
    take_lengths(some_counts);
  }

  /// A struct's integers, or its large counts, are the number of its parts and their lengths.
  template <typename Integer>
  void take_lengths(const std::vector<Integer>& values) {
    if (combiner != MPI_COMBINER_STRUCT || values.empty()) return;
    lengths.assign(values.begin() + 1, values.begin() + 1 + static_cast<long>(parts.size()));
  }
};

MPI_Count size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  link::mpi().Type_size_x(type, &size);
  return size;
}

/// The one float type of all leaves.
std::optional<ElementType> element_of(MPI_Datatype type) {
  const Construction made(type);
  if (made.combiner == MPI_COMBINER_NAMED) {
    return named_element(type, static_cast<std::size_t>(size_of(type)));
  }
  if (made.combiner == MPI_COMBINER_F90_REAL)
    return float_of(static_cast<std::size_t>(size_of(type)));
  if (made.combiner == MPI_COMBINER_F90_COMPLEX)
    return float_of(static_cast<std::size_t>(size_of(type)) / 2);
  std::optional<ElementType> common;  // a type without parts has none
  for (MPI_Datatype part : made.parts) {
    const std::optional<ElementType> element = element_of(part);
    if (!element || (common && common != element)) return std::nullopt;
    common = element;
  }
  return common;
}

/// Bytes of one float type at the beginning of the type map, or a few more. A message of so many
/// floats may be received with this type.
std::size_t leading_floats(MPI_Datatype type) {
  if (element_of(type)) return static_cast<std::size_t>(size_of(type));
  const Construction made(type);
  if (made.parts.empty()) return 0;
  if (made.combiner != MPI_COMBINER_STRUCT) return leading_floats(made.parts[0]);
  std::size_t bytes = 0;
  std::optional<ElementType> common;
  for (std::size_t i = 0; i < made.parts.size(); ++i) {
    const MPI_Count length = made.lengths[i] * size_of(made.parts[i]);
    if (length == 0) continue;
    const std::optional<ElementType> element = element_of(made.parts[i]);
    if (!element) return bytes + leading_floats(made.parts[i]);
    if (common && common != element) return bytes;
    common = element;
    bytes += static_cast<std::size_t>(length);
  }
  return bytes;
}

/// No gaps, and the order of the type map is that of memory. Constructors that list
/// displacements may permute, so they count as scattered; packing them is always right.
bool is_contiguous(MPI_Datatype type) {
  const link::MpiCalls& mpi = link::mpi();
  MPI_Count lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  mpi.Type_get_extent_x(type, &lb, &extent);
  mpi.Type_get_true_extent_x(type, &true_lb, &true_extent);
  const MPI_Count size = size_of(type);
  if (extent != size || true_extent != size || true_lb != 0) return false;
  const Construction made(type);
  switch (made.combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER: return true;
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_SUBARRAY: return made.parts.size() == 1 && is_contiguous(made.parts[0]);
    default: return false;
  }
}

/// MPI checks the arguments of a send to nobody like those of any other.
bool is_committed(MPI_Datatype type) {
  const char unread = 0;
  const Job* job = active_job();
  return job && link::mpi().Send(&unread, 1, type, MPI_PROC_NULL, 0, job->self) == MPI_SUCCESS;
}

std::shared_ptr<TypeInfo> make_info(MPI_Datatype type) {
  MPI_Count size = MPI_UNDEFINED;  // and so it stays where MPI has no answer; see comm_info.cpp
  if (link::mpi().Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  const bool predefined = Construction(type).predefined();
  if (!predefined && !is_committed(type)) return nullptr;
  auto info = std::make_shared<TypeInfo>();
  info->size = static_cast<std::size_t>(size);
  info->contiguous = is_contiguous(type);
  info->element = element_of(type);
  info->leading_floats = leading_floats(type);
  if (!info->contiguous && link::mpi().Type_dup(type, &info->layout) != MPI_SUCCESS) return nullptr;
  if (!predefined) link::mpi().Type_set_attr(type, keyval(), nullptr);
  return info;
}

}  // namespace

TypeInfo::~TypeInfo() {
  if (layout == MPI_DATATYPE_NULL) return;
  int finalized = 0;
  link::mpi().Finalized(&finalized);
  if (!finalized) link::mpi().Type_free(&layout);
}

std::shared_ptr<TypeInfo> type_info(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  return cache->find(type, [type] { return make_info(type); });
}

std::shared_ptr<const TypeInfo> glance_at_type(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  return cache->borrow(type, [type] { return make_info(type); });
}

void forget_types() { cache->clear(); }

}  // namespace mpress::engine
