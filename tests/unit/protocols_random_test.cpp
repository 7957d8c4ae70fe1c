// Random messages by all protocols and links between ranks that are threads: on the host and on
// devices, with and without gaps, raw and encoded, with little memory, and receivers who are late,
// or do not want what comes.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "codec/codec.hpp"
#include "loopback/messages.hpp"
#include "message/incoming.hpp"
#include "message/protocols.hpp"

using namespace mpress;

namespace {

constexpr int members = 4;
constexpr int messages = 120;  // that each member sends
constexpr std::size_t limit = 1 << 20;

using Bytes = std::vector<std::byte>;

/// A message's beginning, as MPI would bring it, and all that the receiver has to find.
struct Envelope {
  int from;
  Bytes beginning;
  ElementType type;
  Spec spec;
  Bytes elements;
};

struct Game {
  loopback::Mail<Envelope> mail{members};
  std::atomic<int> settled{0};
  std::atomic<unsigned> by_way[8]{};
  std::atomic<unsigned> lent{0};  ///< that readers had from the program's memory
};

Spec spec_of(Codec codec, ElementType type) {
  Spec spec;
  spec.codec = codec;
  if (codec == Codec::zfp) spec.value = type == ElementType::f32 ? 16 : 32;
  if (codec == Codec::szp) {
    spec.bound = Bound::abs;
    spec.value = 1e-3;
  }
  return spec;
}

/// Smooth, or noise, now and then with a NaN among it.
template <class T>
Bytes elements_of(std::size_t count, std::mt19937& random) {
  std::vector<T> values = wave<T>(count);
  if (random() % 4 == 0) {
    for (T& value : values) value = static_cast<T>(random()) / static_cast<T>(1 << 20);
  }
  if (random() % 4 == 0) values[random() % count] = std::numeric_limits<T>::quiet_NaN();
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
void check_bound(const Bytes& sent, const Bytes& got, double bound) {
  const auto* const from = reinterpret_cast<const T*>(sent.data());
  const auto* const to = reinterpret_cast<const T*>(got.data());
  for (std::size_t i = 0; i < sent.size() / sizeof(T); ++i) {
    if (std::isnan(from[i]) && std::isnan(to[i])) continue;
    if (!(std::abs(static_cast<double>(from[i]) - static_cast<double>(to[i])) <= bound)) {
      CHECK(!"within the bound");
      return;
    }
  }
}

void check_elements(const Envelope& sent, const Bytes& got) {
  switch (sent.spec.codec) {
    case Codec::szp:
      if (sent.type == ElementType::f32) return check_bound<float>(sent.elements, got, 1e-3);
      return check_bound<double>(sent.elements, got, 1e-3);
    case Codec::zfp: return;  // of a rate: no bound
    default: CHECK(got == sent.elements);
  }
}

/// A message that is being sent.
struct Sending {
  std::unique_ptr<loopback::Strided> layout;
  std::shared_ptr<loopback::Memory> memory;
  std::unique_ptr<engine::ChunkSend> chunks;
  bool is_patient = true;  ///< offers stay open
};

/// A message that comes.
struct Receiving {
  Envelope envelope;
  std::unique_ptr<loopback::Memory> memory;
  std::unique_ptr<engine::Incoming> incoming;
};

class Player {
 public:
  Player(loopback::ThreadMember& member, Game& game, loopback::Rank& rank)
      : member_(member), game_(game), rank_(rank) {}

  void play() {
    for (int left = messages; left > 0 || !is_idle() || game_.settled < members * messages;) {
      if (left > 0 && sending_.size() < 6 && member_.one_in(3)) {
        send();
        --left;
      }
      rank_.progress.advance();
      std::erase_if(sending_, [this](Sending& one) { return advance(one); });
      if (receiving_.size() < 6 && !member_.one_in(3)) receive();
      std::erase_if(receiving_, [this](Receiving& one) { return advance(one); });
      if (is_idle()) member_.dawdle();
    }
  }

 private:
  bool is_idle() const { return sending_.empty() && receiving_.empty() && rank_.progress.idle(); }

  int any_device() {
    const unsigned which = member_.up_to(4);
    return which < 2 ? gpu::host : which == 2 ? 1 : 0;
  }

  std::size_t any_count() {
    constexpr std::size_t most[] = {64, 4096, 50'000};
    return 1 + member_.up_to(most[member_.up_to(2)]);
  }

  void send() {
    const ElementType type = member_.one_in(2) ? ElementType::f32 : ElementType::f64;
    const std::size_t unit = element_size(type), run = unit * (1 + member_.up_to(3));
    // Memory that a rank sends one reader again and again is read where it is, sooner or later.
    const bool may_lend = kept_.use_count() == 1 && member_.one_in(3);
    const std::size_t stride = !may_lend && member_.one_in(3) ? run + unit * member_.up_to(2) : run;
    Sending one;
    one.layout = std::make_unique<loopback::Strided>(type, run, stride);
    const auto count = static_cast<std::int64_t>(may_lend ? lent_count : any_count());
    const std::size_t bytes = static_cast<std::size_t>(count) * run;
    Envelope envelope{rank_.rank, {}, type, {}, {}};
    envelope.elements = type == ElementType::f32
                            ? elements_of<float>(bytes / unit, member_.random)
                            : elements_of<double>(bytes / unit, member_.random);
    Bytes laid(one.layout->extent(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      std::memcpy(&laid[at * stride], &envelope.elements[at * run], run);
    }
    one.memory = may_lend ? kept_
                          : std::make_shared<loopback::Memory>(any_device(), laid.size(),
                                                               member_.one_in(4) ? unit : 0);
    one.memory->write(laid.data(), laid.size());
    if (member_.one_in(2)) sim_synchronize();
    constexpr Codec codecs[] = {Codec::none, Codec::mpc, Codec::zfp, Codec::szp};
    envelope.spec = spec_of(may_lend ? Codec::none : codecs[member_.up_to(3)], type);

    const engine::CommSettings settings;
    const engine::SendCall call{trace::Op::send, Family::p2p, may_lend || member_.one_in(2)};
    const unsigned distance = may_lend ? 1 : 1 + member_.up_to(members - 2);
    const int to = (rank_.rank + static_cast<int>(distance)) % members;
    engine::Message message{call,
                            one.memory->data(),
                            count,
                            *one.layout,
                            settings,
                            to,
                            bytes,
                            one.memory->device(),
                            one.memory->device() == gpu::host};
    message.behind = engine::default_work(message.device);
    const bool encodes = envelope.spec.codec != Codec::none && bytes >= wire::min_frame_bytes;
    if (!encodes) envelope.spec = engine::no_codec();
    const engine::Choice choice{envelope.spec, trace::Reason::none};
    engine::Prepared prepared;
    if (encodes || message.device != gpu::host) {
      CHECK(engine::prepare(rank_, message, choice, prepared).is_ok());
    }
    if (prepared.chunks) {
      const engine::Send::Beginning header = prepared.chunks->beginnings().front();
      envelope.beginning.assign(header.data, header.data + header.bytes);
    } else if (prepared.data) {
      envelope.beginning.assign(prepared.data, prepared.data + prepared.bytes);
    } else {
      CHECK(message.device == gpu::host);
      envelope.beginning.resize(bytes);
      CHECK(one.layout->pack(one.memory->data(), count, true, envelope.beginning.data(), bytes));
    }
    ++game_.by_way[prepared.chunks ? static_cast<int>(prepared.chunks->way()) : 0];
    game_.mail.leave(to, std::move(envelope));
    if (!prepared.chunks) return;
    one.chunks = std::move(prepared.chunks);
    one.chunks->count_in(rank_.record.row({trace::Direction::send, trace::Op::send, to}), {});
    one.is_patient = !member_.one_in(4);
    sending_.push_back(std::move(one));
  }

  void receive() {
    std::optional<Envelope> found = game_.mail.take(rank_.rank, member_.one_in(2));
    if (!found) return;
    Receiving one{std::move(*found), nullptr, nullptr};
    const Envelope& sent = one.envelope;
    const std::size_t offset = member_.one_in(4) ? 1 + member_.up_to(6) : 0;
    one.memory = std::make_unique<loopback::Memory>(any_device(), sent.elements.size(), offset);
    if (member_.one_in(2)) one.memory->fill(sent.elements.size());
    const engine::Destination to{one.memory->data(), one.memory->device(), !member_.one_in(4),
                                 engine::default_work(one.memory->device())};
    wire::Header header;
    const wire::Parse parse =
        wire::read_header(sent.beginning.data(), sent.beginning.size(), rank_.nonce, header);
    if (parse == wire::Parse::raw) {
      CHECK(sent.beginning == sent.elements);
      ++game_.settled;
      return;
    }
    CHECK(parse == wire::Parse::frame && header.raw_bytes() == sent.elements.size());
    if (to.device != gpu::host) rank_.links.connect(sent.from, to.device);
    if (header.chunk_bytes == 0) {
      one.incoming = engine::Incoming::from_frame(rank_, header, sent.from, to,
                                                  sent.beginning.data() + wire::header_bytes);
    } else if (member_.one_in(8)) {
      CHECK(engine::Incoming::link_of(rank_, header, sent.from) != nullptr);
      rank_.chunks.drop(header, sent.from);
      rank_.chunks.follow();
      ++game_.settled;
      return;
    } else {
      CHECK(engine::Incoming::link_of(rank_, header, sent.from) != nullptr);
      one.incoming = engine::Incoming::from_link(rank_, header, sent.from, to, 0);
    }
    CHECK(one.incoming != nullptr);
    receiving_.push_back(std::move(one));
  }

  bool advance(Sending& one) {
    const bool was_offered = one.chunks->is_offered();
    if (!one.chunks->advance(one.is_patient)) return false;
    CHECK(one.chunks->status().is_ok());
    if (was_offered) ++game_.lent;
    return true;
  }

  bool advance(Receiving& one) {
    if (!one.incoming->advance()) return false;
    CHECK(one.incoming->pipeline().status().is_ok());
    Bytes got(one.envelope.elements.size());
    const std::byte* const apart = one.incoming->elements();
    if (one.incoming->is_in_place()) {
      got = one.memory->read(got.size());
    } else if (gpu::locate(apart) == gpu::host) {
      std::memcpy(got.data(), apart, got.size());
    } else {
      sim_copy_out(got.data(), apart, got.size());
    }
    check_elements(one.envelope, got);
    one.incoming.reset();
    ++game_.settled;
    return true;
  }

  loopback::ThreadMember& member_;
  Game& game_;
  loopback::Rank& rank_;
  static constexpr std::size_t lent_count = 10'000;
  const std::shared_ptr<loopback::Memory> kept_ =
      std::make_shared<loopback::Memory>(0, 4 * sizeof(double) * lent_count, 0);
  std::vector<Sending> sending_;
  std::vector<Receiving> receiving_;
};

/// With the links that `chosen` names, as MPRESS_LINK does; `expected` is what messages between
/// devices take.
void play(unsigned seed, const char* chosen, link::Kind expected) {
  loopback::Group group(members, seed, 1 << 20);
  Game game;
  loopback::run(members, seed, [&](loopback::ThreadMember& member) {
    sim_be_member(member.rank);
    const auto rank =
        std::make_unique<loopback::Rank>(member, group.channel(member.rank), limit, chosen);
    Player(member, game, *rank).play();
    member.barrier();
    rank->close();
    CHECK(rank->links.held_for_channel.held() == 0);
  });
  CHECK(group.unclaimed() == 0);
  for (const trace::Way way : {trace::Way::whole, trace::Way::chunks, link::way_by(expected)}) {
    CHECK(game.by_way[static_cast<int>(way)] > 20);
  }
  CHECK(expected != link::Kind::peer || game.lent > 5);
  if (check::failures > 0) std::fprintf(stderr, "seed %u, link %s\n", seed, chosen);
}

}  // namespace

int main() {
  unsigned seed = 0;
  ::setenv("SIMULATED_GPU_PEERS", "1", 1);
  for (const link::Attributes& one : link::between_devices) play(++seed, one.name, one.kind);
  ::setenv("SIMULATED_GPU_PEERS", "0", 1);
  play(++seed, "auto", link::Kind::host);
  return check::failures != 0;
}
