#include "codec/any_order.hpp"

#include <algorithm>
#include <cstring>

#include "codec/float_environment.hpp"
#include "codec/scratch.hpp"

namespace mpress::codec {
namespace {

using namespace any_order;

/// Elements that are combined at once, within the first-level cache.
constexpr std::size_t step = 512;

// Elements need not be aligned, and may alias nothing else.
template <class T>
struct __attribute__((packed, may_alias)) Loose {
  T value;
};

template <class T>
const Loose<T>* at(const void* input, std::size_t first) {
  return static_cast<const Loose<T>*>(input) + first;
}

/// What the extractors of a tile hold, and what they have found.
template <class T>
struct Extractors {
  Bits<T> most[step] = {};
  double scale[step], unscale[step], first[step];
  double sums[3][step] = {};
};

/// Memory of a tile: its result, and what finds it.
template <class T>
struct Tile {
  T out[step];
  union {
    Extractors<T> extractors;
    Bits<T> sums[step];  ///< of quanta
  };

  Tile() {}
};

/// As any_order::sum(), loop by loop, which vectors serve.
template <class T>
void sum_tile(std::span<const void* const> inputs, std::size_t first, std::size_t count,
              Tile<T>& tile) {
  Extractors<T>& t = *::new (&tile.extractors) Extractors<T>;
  T* const out = tile.out;
  const int room = room_for(inputs.size());
  const double next = next_fold(room);
  for (const void* input : inputs) {
    const Loose<T>* const x = at<T>(input, first);
    for (std::size_t i = 0; i < count; ++i) {
      t.most[i] = std::max(t.most[i], magnitude_of(x[i].value));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Extractor with = extractor_of<T>(t.most[i], room);
    t.scale[i] = with.scale;
    t.unscale[i] = with.unscale;
    t.first[i] = with.first;
  }
  for (const void* input : inputs) {
    const Loose<T>* const from = at<T>(input, first);
    for (std::size_t i = 0; i < count; ++i) {
      double x = static_cast<double>(from[i].value) * t.scale[i];
      double extractor = t.first[i];
      for (int fold = 0; fold < folds<T>; ++fold) {
        extract(extractor, x, t.sums[fold][i]);
        extractor *= next;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double sums[3] = {t.sums[0][i], t.sums[1][i], t.sums[2][i]};
    out[i] = total<T>(sums, t.unscale[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (t.most[i] < infinity_bits<T>) continue;
    const auto load = [&](unsigned input) { return at<T>(inputs[input], first)[i].value; };
    out[i] = sum<T>(static_cast<unsigned>(inputs.size()), room, load);
  }
}

/// As sum_on_grid(), loop by loop, where all summands and sums are quanta; else false.
template <class T>
bool add_quanta(std::span<const void* const> inputs, std::size_t first, std::size_t count,
                const szp::Quantizer<T>& z, Tile<T>& tile) {
  using Quantum = typename szp::Traits<T>::Quantum;
  constexpr T magic = szp::Traits<T>::magic;
  const T most = std::min(z.most, szp::Traits<T>::max_quantum);
  if (inputs.size() > 256) return false;  // else sums overflow nothing
  Bits<T>* const sums = tile.sums;
  std::fill_n(sums, step, Bits<T>{0});
  Bits<T> doubtful = 0;
  for (const void* input : inputs) {
    const Loose<T>* const from = at<T>(input, first);
    for (std::size_t i = 0; i < count; ++i) {
      const T x = from[i].value;
      const T scaled = x * z.inverse;
      const T shifted = scaled + magic;
      const T error = x - (shifted - magic) * z.step;
      sums[i] += bits_of(shifted) - bits_of(magic);
      doubtful |= static_cast<Bits<T>>(!(scaled >= -most && scaled <= most)) |
                  static_cast<Bits<T>>(!(error < z.limit && error > -z.limit));
    }
  }
  if (doubtful != 0) return false;
  constexpr Bits<T> limit = szp::Traits<T>::sum_limit;
  Bits<T> beyond = 0;
  for (std::size_t i = 0; i < count; ++i) {
    beyond |= static_cast<Bits<T>>(sums[i] + limit >= 2 * limit);
    tile.out[i] = static_cast<T>(static_cast<Quantum>(sums[i])) * z.step;
  }
  return beyond == 0;
}

template <class T>
void sum_tile_on_grid(std::span<const void* const> inputs, std::size_t first, std::size_t count,
                      const szp::Quantizer<T>& z, Tile<T>& tile) {
  if (add_quanta(inputs, first, count, z, tile)) return;
  const int room = room_for(inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto load = [&](unsigned input) { return at<T>(inputs[input], first)[i].value; };
    tile.out[i] = sum_on_grid<T>(static_cast<unsigned>(inputs.size()), room, z, load);
  }
}

template <Combine how, class T>
void find_extremes(std::span<const void* const> inputs, std::size_t first, std::size_t count,
                   T* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = at<T>(inputs[0], first)[i].value;
  for (const void* input : inputs) {  // the first again: its NaNs become ours
    const Loose<T>* const x = at<T>(input, first);
    for (std::size_t i = 0; i < count; ++i) out[i] = extreme<how>(out[i], x[i].value);
  }
}

template <class T>
void combine_as(Combine how, std::span<const void* const> inputs, void* out, std::size_t count,
                const Grid& grid) {
  const Scratch scratch;
  auto& tile = scratch.as<Tile<T>>();
  szp::Quantizer<T> z{};
  const bool is_on_grid = grid.bound > 0 && szp::make_quantizer(grid, z);
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t number = std::min(step, count - first);
    if (how == Combine::min) {
      find_extremes<Combine::min>(inputs, first, number, tile.out);
    } else if (how == Combine::max) {
      find_extremes<Combine::max>(inputs, first, number, tile.out);
    } else if (is_on_grid) {
      sum_tile_on_grid(inputs, first, number, z, tile);
    } else {
      sum_tile(inputs, first, number, tile);
    }
    std::memcpy(static_cast<unsigned char*>(out) + first * sizeof(T), tile.out, number * sizeof(T));
  }
}

}  // namespace

void combine_in_any_order(Combine how, ElementType type, std::span<const void* const> inputs,
                          void* out, std::size_t count, const Grid& grid) {
  compute([&] {
    const auto combine = type == ElementType::f32 ? combine_as<float> : combine_as<double>;
    combine(how, inputs, out, count, grid);
  });
}

}  // namespace mpress::codec
