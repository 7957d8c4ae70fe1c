#include "schedule/neighbourhoods/routes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "schedule/builder.hpp"

namespace mpress::schedule {

/// Collects hops stage by stage. Exchanges of one stage do not depend on each other.
class Routes::Collector {
 public:
  Collector(const Neighbourhood& neighbourhood, int ports)
      : routes_(neighbourhood),
        ports_(ports),
        place_(static_cast<std::size_t>(neighbourhood.count()) * routes_.width()),
        hop_(routes_.width()) {
    require_at_least("ports", ports, 1);
  }

  /// The block moves on, at most once in a stage. `hop` is canonical.
  void move(int neighbour, std::span<const int> hop) {
    const std::uint32_t exchange = exchange_of(hop);
    const std::span place = place_of(neighbour);
    passing_.push_back({exchange, neighbour});
    moved_.insert(moved_.end(), place.begin(), place.end());
    for (std::size_t j = 0; j < hop.size(); ++j) place[j] += hop[j];
  }

  /// The same within one dimension.
  void move(int neighbour, int dimension, int by) {
    hop_[static_cast<std::size_t>(dimension)] = by;
    move(neighbour, hop_);
    hop_[static_cast<std::size_t>(dimension)] = 0;
  }

  /// What moves from here on may depend on all that has moved.
  void end_stage() {
    const auto end = routes_.exchanges_.size();
    for (std::size_t e = stage_; e < end; ++e)
      routes_.exchanges_[e].round = routes_.rounds_ + static_cast<int>(e - stage_) / ports_;
    routes_.rounds_ += divided_up(static_cast<int>(end - stage_), ports_);
    stage_ = end;
    found_.clear();
  }

  Routes finish() {
    const std::size_t width = routes_.width();
    std::uint32_t first = 0;
    for (Exchange& exchange : routes_.exchanges_) {
      exchange.first = first;
      first += std::exchange(exchange.count, 0);
    }
    routes_.passages_.resize(passing_.size());
    routes_.moved_.resize(moved_.size());
    for (std::size_t i = 0; i < passing_.size(); ++i) {
      Exchange& exchange = routes_.exchanges_[passing_[i].exchange];
      const std::size_t to = exchange.first + exchange.count++;
      routes_.passages_[to] = passing_[i].neighbour;
      std::copy_n(moved_.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  routes_.moved_.begin() + static_cast<std::ptrdiff_t>(to * width));
    }
    return std::move(routes_);
  }

 private:
  struct Passing {
    std::uint32_t exchange;
    int neighbour;
  };

  std::span<int> place_of(int neighbour) {
    return std::span(place_).subspan(static_cast<std::size_t>(neighbour) * routes_.width(),
                                     routes_.width());
  }

  /// That of this stage with this hop. Grid sizes bound hops, so their mixed radix number is one of
  /// its own up to 3^d times as many ranks as an int can count, and equal hops are compared anyway.
  std::uint32_t exchange_of(std::span<const int> hop) {
    const Grid& grid = routes_.neighbourhood_->grid();
    std::uint64_t number = 0;
    for (int j = 0; j < grid.dimensions(); ++j)
      number = number * (2 * static_cast<std::uint64_t>(grid.size(j)) + 1) +
               static_cast<std::uint64_t>(hop[static_cast<std::size_t>(j)] + grid.size(j));
    for (auto [at, end] = found_.equal_range(number); at != end; ++at)
      if (std::ranges::equal(routes_.hop(at->second), hop)) {
        ++routes_.exchanges_[at->second].count;
        return at->second;
      }
    const auto exchange = static_cast<std::uint32_t>(routes_.exchanges_.size());
    found_.emplace(number, exchange);
    routes_.exchanges_.push_back({0, 1, 0});
    routes_.hops_.insert(routes_.hops_.end(), hop.begin(), hop.end());
    return exchange;
  }

  Routes routes_;
  const int ports_;
  std::vector<int> place_;  ///< of each block, relative to its origin
  std::vector<int> hop_;
  std::vector<Passing> passing_;
  std::vector<int> moved_;
  std::size_t stage_ = 0;  ///< its first exchange
  std::unordered_multimap<std::uint64_t, std::uint32_t> found_;
};

Routes Routes::direct(const Neighbourhood& neighbourhood, int ports) {
  Collector collector(neighbourhood, ports);
  for (int i = 0; i < neighbourhood.count(); ++i)
    if (neighbourhood.is_possible(i) && !neighbourhood.is_self(i))
      collector.move(i, neighbourhood.canonical(i));
  collector.end_stage();
  return collector.finish();
}

Routes Routes::combining(const Neighbourhood& neighbourhood, int ports) {
  Collector collector(neighbourhood, ports);
  for (int j = 0; j < neighbourhood.dimensions(); ++j) {
    for (int i = 0; i < neighbourhood.count(); ++i) {
      const int c = neighbourhood.canonical(i)[static_cast<std::size_t>(j)];
      if (neighbourhood.is_possible(i) && c != 0) collector.move(i, j, c);
    }
    collector.end_stage();
  }
  return collector.finish();
}

Routes Routes::digits(const Neighbourhood& neighbourhood, int ports, int base) {
  Collector collector(neighbourhood, ports);
  require_at_least("base", base, 2);
  for (int j = 0; j < neighbourhood.dimensions(); ++j) {
    bool is_left = true;
    for (std::int64_t unit = 1; is_left; unit *= base) {
      is_left = false;
      for (int i = 0; i < neighbourhood.count(); ++i) {
        const std::int64_t c = neighbourhood.canonical(i)[static_cast<std::size_t>(j)];
        if (!neighbourhood.is_possible(i) || std::abs(c) < unit) continue;
        is_left = true;
        const auto by = static_cast<int>(c / unit % base * unit);
        if (by != 0) collector.move(i, j, by);
      }
      collector.end_stage();
    }
  }
  return collector.finish();
}

Routes Routes::lines(const Neighbourhood& neighbourhood, int ports, int base) {
  Collector collector(neighbourhood, ports);
  require_at_least("base", base, 2);
  const Grid& grid = neighbourhood.grid();
  // An offset as the program gave it keeps a list one-sided on a torus; one that goes all around is
  // taken in its canonical form, as its block would meet a rank twice.
  const auto goes_around = [&](int i) {
    for (int j = 0; j < grid.dimensions(); ++j)
      if (std::abs(std::int64_t{neighbourhood.offset(i)[static_cast<std::size_t>(j)]}) >=
          grid.size(j))
        return true;
    return false;
  };
  std::vector<int> hop(static_cast<std::size_t>(grid.dimensions()));
  bool is_left = true;
  for (std::int64_t unit = 1; is_left; unit *= base) {
    is_left = false;
    for (int i = 0; i < neighbourhood.count(); ++i) {
      if (!neighbourhood.is_possible(i) || neighbourhood.is_self(i)) continue;
      const std::span offset =
          goes_around(i) ? neighbourhood.canonical(i) : neighbourhood.offset(i);
      int multiple = 0;
      for (const int c : offset) multiple = std::gcd(multiple, c);
      if (multiple < unit) continue;
      is_left = true;
      const std::int64_t by = multiple / unit % base * unit;
      if (by == 0) continue;
      for (std::size_t j = 0; j < hop.size(); ++j)
        hop[j] = static_cast<int>(offset[j] / multiple * by);
      grid.canonical(hop);  // one exchange for hops to one rank
      collector.move(i, hop);
    }
    collector.end_stage();
  }
  return collector.finish();
}

std::vector<std::size_t> Routes::passes() const {
  std::vector<std::size_t> passes(static_cast<std::size_t>(neighbourhood_->count()));
  for (const int neighbour : passages_) ++passes[static_cast<std::size_t>(neighbour)];
  return passes;
}

Schedule Routes::schedule(int rank) const {
  const Neighbourhood& neighbourhood = *neighbourhood_;
  const Grid& grid = neighbourhood.grid();
  Builder builder(grid.ranks(), rank);
  std::vector<int> here(width()), there(width());
  grid.coordinates(rank, here);
  std::vector<int> bordered;
  for (int j = 0; j < grid.dimensions(); ++j)
    if (!grid.is_periodic(j)) bordered.push_back(j);
  // The blocks that are at `from` before an exchange, as all of its ranks know.
  const auto add_blocks = [&](const Exchange& exchange, std::span<const int> from) {
    for (std::size_t k = exchange.first; k < exchange.first + exchange.count; ++k) {
      const int neighbour = passages_[k];
      const std::span came = moved(k);
      const int origin = grid.neighbour(from, came, -1);
      if (origin == Grid::none) continue;
      const bool exists = std::ranges::all_of(bordered, [&](int j) {
        const auto at = static_cast<std::size_t>(j);
        return grid.moved(j, from[at] - came[at], neighbourhood.canonical(neighbour)[at]) !=
               Grid::none;
      });
      if (exists) builder.block(neighbour_block(neighbourhood, origin, neighbour));
    }
  };
  for (std::size_t e = 0; e < exchanges_.size(); ++e) {
    if (const int to = grid.neighbour(here, hop(e)); to != Grid::none) {
      add_blocks(exchanges_[e], here);
      builder.send(to, exchanges_[e].round);
    }
    if (const int from = grid.neighbour(here, hop(e), -1); from != Grid::none) {
      grid.coordinates(from, there);
      add_blocks(exchanges_[e], there);
      builder.receive(from, exchanges_[e].round);
    }
  }
  return builder.finish(rounds_);
}

}  // namespace mpress::schedule
