#include "layout.hpp"

#include <algorithm>
#include <cstring>

namespace stress {
namespace {

constexpr std::size_t most_runs = 1 << 14;

/// Leading floats and what follows them in `mixed` and in layouts that are `leading`.
constexpr int mixed_floats = 70;
constexpr int mixed_ints = 3;
constexpr int mixed_doubles = 2;
constexpr std::size_t tail_bytes = mixed_ints * sizeof(int) + mixed_doubles * sizeof(double);

/// Divides `n`, and leaves few enough blocks.
std::size_t choose_block(Random& random, std::size_t n) {
  std::vector<std::size_t> fit;
  for (std::size_t b : {1, 2, 3, 4, 5, 7, 8, 16, 64, 100, 256, 1024, 4096}) {
    if (n % b == 0 && n / b <= most_runs) fit.push_back(b);
  }
  return fit.empty() ? n : random.pick(fit);
}

}  // namespace

std::size_t element_bytes(Element element) {
  switch (element) {
    case Element::f32:
    case Element::i32: return 4;
    case Element::f64:
    case Element::c32:
    case Element::i64: return 8;
    case Element::c64: return 16;
    case Element::mixed: return mixed_floats * sizeof(float) + tail_bytes;
    default: return 1;
  }
}

const char* name_of(Element element) {
  static const char* const names[] = {"f32", "f64",  "c32",  "c64",  "i32",
                                      "i64", "char", "byte", "mixed"};
  return names[static_cast<int>(element)];
}

std::string text_of(const LayoutSpec& spec) {
  static const char* const names[] = {
      "basic",    "contiguous", "vector",  "hvector",   "indexed", "indexed_block", "hindexed",
      "subarray", "resized",    "columns", "structure", "nested",  "absolute",      "leading"};
  return std::string(name_of(spec.element)) + " " + names[static_cast<int>(spec.shape)] + " " +
         std::to_string(spec.items) + "x" + std::to_string(spec.per_item);
}

MPI_Datatype basic_type(Element element) {
  switch (element) {
    case Element::f32: return MPI_FLOAT;
    case Element::f64: return MPI_DOUBLE;
    case Element::c32: return MPI_C_FLOAT_COMPLEX;
    case Element::c64: return MPI_C_DOUBLE_COMPLEX;
    case Element::i32: return MPI_INT;
    case Element::i64: return MPI_INT64_T;
    case Element::chars: return MPI_CHAR;
    default: return MPI_BYTE;
  }
}

LayoutSpec choose_layout(Random& random, Element element, std::size_t elements, bool basic_only) {
  LayoutSpec spec{element, Shape::basic, 1, elements, random.next()};
  if (element == Element::mixed) {
    spec.shape = Shape::structure;
    return spec;
  }
  if (elements == 0 || basic_only || random.chance(40)) return spec;
  spec.shape = static_cast<Shape>(random.between(static_cast<std::size_t>(Shape::contiguous),
                                                 static_cast<std::size_t>(Shape::absolute)));
  std::vector<std::size_t> sizes = {1, elements};
  for (std::size_t size : {2, 3, 4, 5, 8, 16, 62, 63, 64, 100}) {
    if (elements % size == 0 && elements > size) sizes.push_back(size);
  }
  spec.per_item = spec.shape == Shape::absolute ? elements : random.pick(sizes);
  if (spec.shape == Shape::columns && spec.per_item > most_runs) spec.shape = Shape::resized;
  spec.items = elements / spec.per_item;
  return spec;
}

Layout::Layout(const LayoutSpec& spec) : spec_(spec) {
  Random random(spec.seed);
  describe(random);
  for (const Run& run : runs_) item_bytes_ += run.bytes;
}

/// Lengths and displacements of a few blocks in random order with gaps between them.
void Layout::choose_blocks(Random& random, bool equal) {
  const std::size_t size = element_bytes(spec_.element);
  const std::size_t n = spec_.per_item;
  const std::size_t block = choose_block(random, n);
  const std::size_t count = equal ? n / block : random.between(1, std::min<std::size_t>(n, 40));
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    order[i] = i;
    lengths_.push_back(static_cast<int>(equal ? block : n / count + (i < n % count)));
  }
  if (variant_) random.shuffle(order);
  displacements_.resize(count);
  std::size_t at = random.below(3) * size;
  for (std::size_t i : order) {
    displacements_[i] = static_cast<MPI_Aint>(at);
    at += (static_cast<std::size_t>(lengths_[i]) + random.below(3)) * size;
  }
  std::ptrdiff_t lowest = PTRDIFF_MAX, highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = static_cast<std::size_t>(lengths_[i]) * size;
    runs_.push_back({displacements_[i], bytes});
    lowest = std::min(lowest, runs_.back().offset);
    highest = std::max(highest, runs_.back().offset + static_cast<std::ptrdiff_t>(bytes));
  }
  blocks_ = static_cast<int>(count);
  block_ = lengths_[0];
  extent_ = highest - lowest;
}

/// Floats, ints and doubles with gaps between; the extent is said explicitly.
void Layout::describe_struct(Random& random) {
  const bool leading = spec_.shape == Shape::leading;
  const int floats = leading ? static_cast<int>(spec_.per_item) : mixed_floats;
  lengths_ = {floats, mixed_ints, mixed_doubles};
  kinds_ = {MPI_FLOAT, MPI_INT, MPI_DOUBLE};
  const MPI_Aint gap = 8 * random.below(3);
  const MPI_Aint ints_at = (floats * 4 + 7) / 8 * 8 + gap;
  const MPI_Aint doubles_at = ints_at + 16 + gap;
  displacements_ = {0, ints_at, doubles_at};
  runs_ = {{0, static_cast<std::size_t>(floats) * sizeof(float)},
           {ints_at, mixed_ints * sizeof(int)},
           {doubles_at, mixed_doubles * sizeof(double)}};
  extent_ = doubles_at + static_cast<std::ptrdiff_t>(mixed_doubles * sizeof(double)) + gap;
}

void Layout::describe(Random& random) {
  const std::size_t size = element_bytes(spec_.element);
  const auto step = static_cast<std::ptrdiff_t>(size);
  const std::size_t n = spec_.per_item;
  variant_ = random.chance(50);
  if (spec_.element == Element::mixed || spec_.shape == Shape::leading) {
    return describe_struct(random);
  }
  switch (spec_.shape) {
    case Shape::basic:
    case Shape::contiguous:
    case Shape::count_:
    case Shape::leading:
      runs_ = {{0, n * size}};
      extent_ = step * static_cast<std::ptrdiff_t>(n);
      break;
    case Shape::resized:
      runs_ = {{0, n * size}};
      lower_ = variant_ ? -step : 0;
      extent_ = step * static_cast<std::ptrdiff_t>(n + random.between(0, 3));
      break;
    case Shape::vector:
    case Shape::hvector:
    case Shape::nested:
      repeat_ = spec_.shape == Shape::nested && n % 2 == 0 ? 2 : 1;
      block_ = static_cast<int>(choose_block(random, n / repeat_));
      blocks_ = static_cast<int>(n / repeat_) / block_;
      stride_ = block_ + 1 + random.below(3);
      extent_ = step * (static_cast<std::ptrdiff_t>(blocks_ - 1) * stride_ + block_);
      for (int k = 0; k < repeat_; ++k) {
        for (int i = 0; i < blocks_; ++i) {
          runs_.push_back({k * extent_ + i * step * stride_, block_ * size});
        }
      }
      extent_ *= repeat_;
      break;
    case Shape::subarray:
      block_ = static_cast<int>(choose_block(random, n));
      blocks_ = static_cast<int>(n) / block_;
      stride_ = block_ + 3;
      for (int i = 0; i < blocks_; ++i) {
        runs_.push_back({step * (static_cast<std::ptrdiff_t>(i + 1) * stride_ + 2), block_ * size});
      }
      extent_ = step * static_cast<std::ptrdiff_t>(blocks_ + 2) * stride_;
      break;
    case Shape::columns:
      blocks_ = static_cast<int>(n);
      stride_ = static_cast<int>(spec_.items);
      for (int i = 0; i < blocks_; ++i) {
        runs_.push_back({static_cast<std::ptrdiff_t>(i) * step * stride_, size});
      }
      extent_ = step;
      break;
    case Shape::indexed:
    case Shape::hindexed:
    case Shape::structure:
    case Shape::absolute: choose_blocks(random, false); break;
    case Shape::indexed_block: choose_blocks(random, true); break;
  }
}

MPI_Datatype Layout::make_inner_type(std::byte* memory) const {
  const MPI_Datatype basic = basic_type(spec_.element);
  const MPI_Aint size = static_cast<MPI_Aint>(element_bytes(spec_.element));
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> in_elements;
  for (MPI_Aint at : displacements_) in_elements.push_back(static_cast<int>(at / size));
  std::vector<MPI_Aint> places = displacements_;
  switch (spec_.shape) {
    case Shape::contiguous:
    case Shape::resized: MPI_Type_contiguous(static_cast<int>(spec_.per_item), basic, &type); break;
    case Shape::vector:
    case Shape::nested:
    case Shape::columns: MPI_Type_vector(blocks_, block_, stride_, basic, &type); break;
    case Shape::hvector:
      MPI_Type_create_hvector(blocks_, block_, stride_ * size, basic, &type);
      break;
    case Shape::indexed:
      MPI_Type_indexed(blocks_, lengths_.data(), in_elements.data(), basic, &type);
      break;
    case Shape::indexed_block:
      MPI_Type_create_indexed_block(blocks_, block_, in_elements.data(), basic, &type);
      break;
    case Shape::absolute: {
      MPI_Aint base = 0;
      MPI_Get_address(memory + margin, &base);
      for (MPI_Aint& at : places) at = MPI_Aint_add(base, at);
      [[fallthrough]];
    }
    case Shape::hindexed:
      MPI_Type_create_hindexed(blocks_, lengths_.data(), places.data(), basic, &type);
      break;
    case Shape::subarray: {
      const int by_rows[3][2] = {{blocks_ + 2, stride_}, {blocks_, block_}, {1, 2}};
      const int by_columns[3][2] = {{stride_, blocks_ + 2}, {block_, blocks_}, {2, 1}};
      const auto& use = variant_ ? by_rows : by_columns;
      MPI_Type_create_subarray(2, use[0], use[1], use[2],
                               variant_ ? MPI_ORDER_C : MPI_ORDER_FORTRAN, basic, &type);
      break;
    }
    default: {
      std::vector<MPI_Datatype> kinds = kinds_;
      if (kinds.empty()) kinds.assign(lengths_.size(), basic);
      MPI_Type_create_struct(static_cast<int>(lengths_.size()), lengths_.data(), places.data(),
                             kinds.data(), &type);
    }
  }
  return type;
}

MPI_Datatype Layout::make_type(std::byte* memory) const {
  if (!derived()) return basic_type(spec_.element);
  MPI_Datatype type = make_inner_type(memory);
  MPI_Datatype outer = MPI_DATATYPE_NULL;
  if (spec_.shape == Shape::resized || spec_.shape == Shape::columns || !kinds_.empty()) {
    MPI_Type_create_resized(type, lower_, extent_, &outer);
  } else if (spec_.shape == Shape::nested) {
    MPI_Type_contiguous(repeat_, type, &outer);
  } else if (spec_.shape == Shape::contiguous && variant_) {
    MPI_Type_dup(type, &outer);
  }
  if (outer != MPI_DATATYPE_NULL) {
    MPI_Type_free(&type);
    type = outer;
  }
  MPI_Type_commit(&type);
  return type;
}

int Layout::basic_elements(std::size_t bytes) const {
  if (spec_.element == Element::mixed) {
    return static_cast<int>(bytes / item_bytes_) * (mixed_floats + mixed_ints + mixed_doubles);
  }
  return static_cast<int>(bytes / element_bytes(spec_.element));
}

std::size_t Layout::memory_bytes() const {
  std::ptrdiff_t end = 0;
  for (const Run& run : runs_) {
    end = std::max(end, run.offset + static_cast<std::ptrdiff_t>(run.bytes));
  }
  if (spec_.items == 0) end = 0;
  if (spec_.items > 1) end += static_cast<std::ptrdiff_t>(spec_.items - 1) * extent_;
  return static_cast<std::size_t>(end) + 2 * margin;
}

void* Layout::address(std::byte* memory) const {
  return spec_.shape == Shape::absolute ? MPI_BOTTOM : memory + margin;
}

/// Calls visit(offset in the buffer, offset in the data, bytes) for the pieces of a message.
template <typename Visit>
void Layout::visit(std::size_t bytes, Visit&& visit) const {
  if (bytes == 0) return;
  const bool solid = runs_.size() == 1 && runs_[0].offset == 0 &&
                     extent_ == static_cast<std::ptrdiff_t>(runs_[0].bytes);
  if (solid) return visit(margin, 0, bytes);
  std::size_t done = 0;
  for (std::ptrdiff_t item = 0; done < bytes; ++item) {
    for (const Run& run : runs_) {
      const std::size_t piece = std::min(run.bytes, bytes - done);
      if (piece == 0) return;
      visit(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(margin) + item * extent_ +
                                     run.offset),
            done, piece);
      done += piece;
    }
  }
}

void Layout::scatter(const std::byte* data, std::size_t bytes, std::byte* memory) const {
  visit(bytes, [&](std::size_t to, std::size_t from, std::size_t piece) {
    std::memcpy(memory + to, data + from, piece);
  });
}

void Layout::gather(std::byte* data, std::size_t bytes, const std::byte* memory) const {
  visit(bytes, [&](std::size_t from, std::size_t to, std::size_t piece) {
    std::memcpy(data + to, memory + from, piece);
  });
}

}  // namespace stress
