// Random messages by all protocols and links between ranks that are threads: on the host and on
// devices, with and without gaps at either end, raw and encoded, with little memory, and receivers
// who are late, have too little room, or receive twice at one place.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "codec/codec.hpp"
#include "loopback/messages.hpp"
#include "loopback/posted.hpp"
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
  std::atomic<unsigned> overlapped{0}, truncated{0}, damaged{0};
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
struct Sending : engine::Operation {
  explicit Sending(Game& of) : game(of) {}
  bool advance() override {
    const bool was_offered = chunks->is_offered();
    if (!chunks->advance(is_patient)) return false;
    CHECK(chunks->status().is_ok());
    if (was_offered) ++game.lent;
    return true;
  }

  Game& game;
  std::unique_ptr<loopback::Strided> layout;
  std::shared_ptr<loopback::Memory> memory;
  std::unique_ptr<engine::ChunkSend> chunks;
  bool is_patient = true;  ///< offers stay open
};

/// A message that comes.
struct Receiving {
  Envelope envelope;
  std::shared_ptr<loopback::Memory> memory = nullptr;
  std::shared_ptr<loopback::Strided> layout = nullptr;
  std::shared_ptr<loopback::Posted> posted = nullptr;  ///< receives in that memory
  std::int64_t count = 0;                              ///< of items
  std::size_t extent = 0;                              ///< of the buffer
  bool is_whole = true;                                ///< no data follow
  bool is_alone = true;                                ///< in its buffer
  bool is_aside = false;
  Status::Code ending = Status::ok;
};

class Player {
 public:
  Player(loopback::ThreadMember& member, Game& game, loopback::Rank& rank)
      : member_(member), game_(game), rank_(rank) {}

  void play() {
    for (int left = messages; left > 0 || !is_idle() || game_.settled < members * messages;) {
      std::erase_if(sending_, [](const auto& one) { return one->is_over(); });
      if (left > 0 && sending_.size() < 6 && member_.one_in(3)) {
        send();
        --left;
      }
      rank_.progress.advance();
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
    const auto sending = std::make_shared<Sending>(game_);
    Sending& one = *sending;
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
    rank_.progress.add(sending);
    sending_.push_back(sending);
  }

  /// Where another message is being received; or null.
  std::shared_ptr<loopback::Memory> shared_memory(std::size_t bytes) {
    for (Receiving& other : receiving_) {
      if (!other.posted->is_claimed() && !other.is_aside) continue;
      if (other.extent < bytes || member_.one_in(2)) continue;
      other.is_alone = false;
      return other.memory;
    }
    return nullptr;
  }

  /// Damages a frame, whose data would else be received. Returns whether it did.
  bool damage(Bytes& frame, const wire::Header& header) {
    if (header.chunk_bytes > 0 || !member_.one_in(16)) return false;
    const std::size_t bytes = member_.one_in(2) ? 0 : header.payload_bytes;
    const std::size_t first = bytes == 0 ? sizeof(wire::Nonce) : wire::header_bytes;
    const std::size_t most = bytes == 0 ? wire::header_bytes - first : bytes;
    frame[first + member_.up_to(most - 1)] ^= std::byte{0x10};
    return true;
  }

  void receive() {
    std::optional<Envelope> found = game_.mail.take(rank_.rank, member_.one_in(2));
    if (!found) return;
    Receiving one{std::move(*found)};
    Envelope& sent = one.envelope;
    Bytes& beginning = sent.beginning;
    wire::Header header;
    const bool is_frame = wire::read_header(beginning.data(), beginning.size(), rank_.nonce,
                                            header) == wire::Parse::frame;
    CHECK(is_frame ? header.raw_bytes() == sent.elements.size() : beginning == sent.elements);
    one.is_whole = !is_frame || header.chunk_bytes == 0;
    const std::size_t bytes = sent.elements.size(), unit = element_size(sent.type);
    const std::size_t run = unit * (1 + member_.up_to(3));
    const std::size_t stride = member_.one_in(3) ? run + unit * member_.up_to(2) : run;
    const auto layout = std::make_shared<loopback::Strided>(sent.type, run, stride);
    // A type of several kinds gets no frames, but headers.
    if ((!is_frame || !one.is_whole) && member_.one_in(4)) layout->element.reset();
    const std::size_t items = (bytes + run - 1) / run;
    one.count = static_cast<std::int64_t>(member_.one_in(8) ? 1 + member_.up_to(items - 1)
                                                            : items + member_.up_to(1));
    one.extent = layout->extent(one.count);
    const std::size_t capacity = static_cast<std::size_t>(one.count) * run;
    // MPI ends receives that a message is too long for, and a probe takes some of the others.
    const bool is_probed = beginning.size() > capacity || member_.one_in(3);
    if (!is_probed && layout->contiguous && capacity >= wire::min_frame_bytes) {
      one.memory = shared_memory(one.extent);
    }
    one.is_alone = !one.memory;
    if (one.is_alone) {
      one.memory = std::make_shared<loopback::Memory>(any_device(), one.extent,
                                                      member_.one_in(4) ? 1 + member_.up_to(6) : 0);
      one.memory->fill(one.extent);
    }
    if (is_frame && bytes <= capacity && damage(beginning, header)) {
      one.ending = Status::corrupt;
      ++game_.damaged;
    } else if (bytes > capacity) {
      one.ending = Status::truncated;
      ++game_.truncated;
    }
    one.posted = std::make_shared<loopback::Posted>(rank_, one.memory->data(), layout, one.count);
    one.layout = layout;
    if (is_probed) {
      one.posted->take(beginning, sent.from);
    } else {
      one.is_aside = one.posted->post(member_.one_in(2));
      if (one.is_aside) ++game_.overlapped;
    }
    receiving_.push_back(std::move(one));
  }

  bool advance(Receiving& one) {
    loopback::Posted& posted = *one.posted;
    engine::Receive& receive = posted.receive;
    if (!receive.result() && !receive.incoming() && !posted.has_come()) {
      if (member_.one_in(2)) posted.come(one.envelope.beginning, one.envelope.from);
      return false;
    }
    if (!receive.result()) {
      // Who waits in MPI looks no sooner than when all is there.
      const bool is_there = posted.has_come()
                                ? (one.is_whole && !posted.is_followed()) || posted.is_all_there()
                                : receive.advance();
      if (!is_there) return false;
      posted.finish();
    }
    check(one);
    ++game_.settled;
    return true;
  }

  void check(const Receiving& one) {
    const engine::Receive& receive = one.posted->receive;
    const loopback::Strided& layout = *one.layout;
    const engine::Receive::Result* const result = receive.result();
    CHECK((result ? result->status : Status()).code() == one.ending);
    if (one.ending == Status::corrupt) return;
    const bool is_as_received = !result || result->is_as_received;
    if (receive.place().is_contested() && (one.posted->is_overwritten() || is_as_received)) return;
    Bytes sent = one.envelope.elements;
    if (one.ending == Status::truncated) sent.resize(result->bytes);
    CHECK(!result || result->bytes == sent.size());
    const Bytes all = one.memory->read(one.extent);
    Bytes got(sent.size());
    CHECK(layout.pack(all.data(), one.count, true, got.data(), got.size()));
    check_elements({0, {}, one.envelope.type, one.envelope.spec, std::move(sent)}, got);
    Bytes expected(one.extent, loopback::Memory::filling);
    CHECK(layout.unpack(got.data(), got.size(), expected.data(), one.count, true).is_ok());
    CHECK(!one.is_alone || one.ending == Status::truncated || all == expected);
  }

  loopback::ThreadMember& member_;
  Game& game_;
  loopback::Rank& rank_;
  static constexpr std::size_t lent_count = 10'000;
  const std::shared_ptr<loopback::Memory> kept_ =
      std::make_shared<loopback::Memory>(0, 4 * sizeof(double) * lent_count, 0);
  std::vector<std::shared_ptr<Sending>> sending_;
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
  CHECK(game.overlapped > 5 && game.truncated > 5 && game.damaged > 0);
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
