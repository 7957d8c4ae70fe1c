#include "coll/reduce/pieces.hpp"

#include <numeric>
#include <utility>

#include "schedule/sums/host_sums.hpp"

namespace mpress::engine {

void Pieces::clear() {
  pieces_.clear();
  by_owner_.clear();
  first_places_.clear();
  counts_.clear();
  from_.clear();
  room_ = 0;
  memory_.reset();
}

void Pieces::make(const PieceSum::Of& of, const schedule::Hosts* hosts, const std::byte* input,
                  std::span<const std::int64_t> begins) {
  clear();
  ranks_ = static_cast<int>(begins.size()) - 1;
  const auto add = [&](int owner, std::vector<int> sources) {
    const auto i = static_cast<std::size_t>(owner);
    const std::size_t width = element_size(of.reduction.type);
    const std::byte* const own = input + static_cast<std::size_t>(begins[i]) * width;
    by_owner_.emplace(owner, pieces_.size());
    first_places_.push_back(static_cast<int>(counts_.size()));
    pieces_.push_back(
        std::make_unique<PieceSum>(of, owner, own, begins[i + 1] - begins[i], std::move(sources)));
    const PieceSum& piece = *pieces_.back();
    for (int slot = 0; slot < piece.slots(); ++slot) {
      counts_.push_back(piece.count());
      from_.push_back(room_);
      room_ += piece.stride();
    }
  };
  if (!hosts) {
    std::vector<int> all(static_cast<std::size_t>(ranks_));
    std::iota(all.begin(), all.end(), 0);
    return add(of.self, std::move(all));
  }
  add(of.self, schedule::sources_of(*hosts, of.self));
  const std::span<const int> members = hosts->members(hosts->host(of.self));
  if (members.size() == 1) return;  // there is nothing to add up
  const std::vector<int> owners = schedule::owners_of(*hosts, of.self);
  for (const int owner : std::span(owners).subspan(1)) add(owner, {members.begin(), members.end()});
}

void Pieces::settle(memory::Buffer memory, std::size_t width) {
  memory_ = std::move(memory);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i]->slots() == 0) continue;
    const auto place = static_cast<std::size_t>(first_places_[i]);
    pieces_[i]->settle(memory_.data() + static_cast<std::size_t>(from_[place]) * width);
  }
}

ElementSpans Pieces::incoming() const {
  return {memory_.data(), static_cast<int>(counts_.size()), 0, counts_, from_};
}

int Pieces::place_of(schedule::Block block) const {
  const auto ranks = static_cast<schedule::Block>(ranks_);
  const std::size_t piece = by_owner_.at(static_cast<int>(block % ranks));
  return first_places_[piece] + pieces_[piece]->slot(static_cast<int>(block / ranks));
}

}  // namespace mpress::engine
