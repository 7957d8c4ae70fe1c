#include "mpi/objects/type_info.hpp"

#include "mpi/error_handlers.hpp"
#include "mpi/objects/construction.hpp"
#include "mpi/objects/handle_cache.hpp"
#include "mpi/objects/immortal.hpp"
#include "mpi/objects/self_comm.hpp"

namespace mpress::mpi {
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
    calls().Type_create_keyval(copy_nothing, forget, &made, nullptr);
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

MPI_Count size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  calls().Type_size_x(type, &size);
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
    const MPI_Count length = made.numbers[1 + i] * size_of(made.parts[i]);
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
  const Calls& mpi = calls();
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
  return self_comm() != MPI_COMM_NULL &&
         calls().Send(&unread, 1, type, MPI_PROC_NULL, 0, self_comm()) == MPI_SUCCESS;
}

std::shared_ptr<TypeInfo> make_info(MPI_Datatype type) {
  const HeldError error;           // the program's call has its own
  MPI_Count size = MPI_UNDEFINED;  // and so it stays where MPI has no answer; see comm_info.cpp
  if (calls().Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  const bool predefined = Construction(type).predefined();
  if (!predefined && !is_committed(type)) return nullptr;
  auto info = std::make_shared<TypeInfo>();
  info->size = static_cast<std::size_t>(size);
  info->is_predefined = predefined;
  info->contiguous = is_contiguous(type);
  info->element = element_of(type);
  info->leading_floats = leading_floats(type);
  MPI_Count true_lb = 0, true_extent = 0;
  calls().Type_get_true_extent_x(type, &true_lb, &true_extent);
  info->first_byte = static_cast<std::ptrdiff_t>(true_lb);
  info->handle = type;
  if (!info->contiguous) info->runs = std::make_shared<TypeInfo::KnownRuns>();
  if (!predefined) calls().Type_set_attr(type, keyval(), nullptr);
  return info;
}

}  // namespace

std::shared_ptr<TypeInfo> lasting(std::shared_ptr<TypeInfo> info) {
  if (info->contiguous || info->is_predefined) return info;
  struct Lasting : TypeInfo {
    explicit Lasting(const TypeInfo& of) : TypeInfo(of), kept(of.handle, of.is_predefined) {
      handle = kept.get();
    }
    const KeptType kept;
  };
  return std::make_shared<Lasting>(*info);
}

KeptType::KeptType(MPI_Datatype type, bool is_predefined) : type_(type) {
  if (is_predefined || calls().Type_contiguous(1, type, &own_) != MPI_SUCCESS) {
    own_ = MPI_DATATYPE_NULL;
  } else {
    calls().Type_commit(&own_);
  }
}

KeptType::~KeptType() {
  int finalized = 0;
  if (own_ != MPI_DATATYPE_NULL) calls().Finalized(&finalized);
  if (own_ != MPI_DATATYPE_NULL && !finalized) calls().Type_free(&own_);
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

}  // namespace mpress::mpi
