// How a message's elements lie in memory: the MPI datatype, and independently of MPI the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi_calls.hpp"
#include "random.hpp"

namespace stress {

enum class Element : std::uint8_t { f32, f64, c32, c64, i32, i64, chars, bytes, mixed, count_ };

enum class Shape : std::uint8_t {
  basic,
  contiguous,
  vector,
  hvector,
  indexed,
  indexed_block,
  hindexed,
  subarray,
  resized,
  columns,    ///< items are the columns of a matrix that lies by rows
  structure,  ///< of one kind of elements; of several where the element is `mixed`
  nested,
  absolute,  ///< addresses, with MPI_BOTTOM
  leading,   ///< a structure that begins with the elements and goes on with others
  count_
};

/// `items` of a type of `per_item` elements each. What is random about it follows from `seed`.
struct LayoutSpec {
  Element element = Element::f32;
  Shape shape = Shape::basic;
  std::size_t per_item = 1;
  std::size_t items = 0;
  std::uint64_t seed = 0;

  std::size_t elements() const { return per_item * items; }
};

std::size_t element_bytes(Element element);
const char* name_of(Element element);
std::string text_of(const LayoutSpec& spec);

/// A layout of exactly `elements` elements. `basic_only`: without derived types.
LayoutSpec choose_layout(Random& random, Element element, std::size_t elements, bool basic_only);

class Layout {
 public:
  explicit Layout(const LayoutSpec& spec);

  const LayoutSpec& spec() const { return spec_; }
  std::size_t data_bytes() const { return item_bytes_ * spec_.items; }
  std::size_t item_bytes() const { return item_bytes_; }

  /// Basic elements, as MPI_Get_elements counts them, in `bytes` bytes of data.
  int basic_elements(std::size_t bytes) const;

  /// Size of a buffer for it, with margins around the data.
  std::size_t memory_bytes() const;

  /// What to give to MPI for a buffer at `memory`.
  void* address(std::byte* memory) const;
  int count() const { return static_cast<int>(spec_.items); }

  /// A committed type for the buffer at `memory`; to be freed where derived().
  MPI_Datatype make_type(std::byte* memory) const;
  bool derived() const { return spec_.shape != Shape::basic || spec_.element == Element::mixed; }

  /// Copies the first `bytes` bytes of a message into the buffer, or out of it.
  void scatter(const std::byte* data, std::size_t bytes, std::byte* memory) const;
  void gather(std::byte* data, std::size_t bytes, const std::byte* memory) const;

 private:
  struct Run {
    std::ptrdiff_t offset;
    std::size_t bytes;
  };
  static constexpr std::size_t margin = 64;

  template <typename Visit>
  void visit(std::size_t bytes, Visit&& visit) const;
  void choose_blocks(Random& random, bool equal);
  void describe(Random& random);
  void describe_struct(Random& random);
  MPI_Datatype make_inner_type(std::byte* memory) const;

  LayoutSpec spec_;
  std::vector<Run> runs_;  ///< one item, in the order of the type map
  std::ptrdiff_t extent_ = 0;
  std::size_t item_bytes_ = 0;
  // What the constructors of MPI are given.
  int blocks_ = 1, block_ = 1, stride_ = 1, repeat_ = 1;
  std::ptrdiff_t lower_ = 0;
  bool variant_ = false;
  std::vector<int> lengths_;
  std::vector<MPI_Aint> displacements_;  ///< in bytes
  std::vector<MPI_Datatype> kinds_;
};

/// The MPI type of one element that is not `mixed`.
MPI_Datatype basic_type(Element element);

}  // namespace stress
