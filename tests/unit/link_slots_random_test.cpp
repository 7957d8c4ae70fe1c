// Random transfers by all links at once between members that are threads: with little memory, one
// reader or several, who come late or want nothing, and writers who fail, cancel, or tell nobody.

#include <algorithm>
#include <thread>

#include "links/ends.hpp"
#include "loopback/loopback.hpp"
#include "simulated_gpu/simulated_gpu.h"

using namespace mpress;

namespace {

constexpr int members = 5, writers = 2, readers = 2, transfers = 70;  // of each writer's
constexpr std::size_t limit = 96 << 10, grain = 256;                  // bytes

/// A transfer as a reader hears of it: with all that it has to find.
struct Message final : link::Expected, link::ReceiveBuffers {
  std::byte* place_of(std::uint64_t i, std::size_t) override { return &room[i * chunk_bytes]; }
  std::uint64_t good = 0;  ///< the chunks from this one on never come
  std::vector<std::byte> data, room;
};

struct Game {
  loopback::Mail<Message> told{members};
  std::atomic<int> writing{members * writers}, refused{0};
};

/// One of a member's threads.
struct Player : loopback::ThreadMember {
  Player(const ThreadMember& member, Game& game, links::AllEnds& ends, unsigned seed)
      : ThreadMember(member, seed), game(game), ends(ends) {}
  Game& game;
  links::AllEnds& ends;
  std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);

  void write() {
    Message sent{};
    sent.rank = rank;
    sent.chunks = 1 + up_to(5);
    sent.chunk_bytes = grain * (1 + up_to(15));
    sent.last_bytes = sent.chunk_bytes - up_to(grain - 1);
    sent.data = noise(sent.bytes(), up_to(1 << 30));
    sent.good = one_in(6) ? up_to(sent.chunks - 1) : sent.chunks;
    const bool fails = sent.good < sent.chunks, is_cancelled = !fails && one_in(8);
    std::vector<int> to;
    for (int i = 1; i < members; ++i) to.push_back((rank + i) % members);
    std::shuffle(to.begin(), to.end(), random);
    to.resize(1 + one_in(2) * up_to(2));
    const std::uint64_t operation = ends.channel.channel_link().next_operation();
    link::Reservation wanted{to, 0, sent.chunks, sent.chunk_bytes, operation};
    wanted.window = is_cancelled || to.size() > 1 ? 0 : up_to(2);
    link::Transfer transfer;
    links::End* end = ends.all[up_to(2)];
    const auto reserve = [&] {
      wanted.account = &end->account;
      const bool is_at_reader = end == &ends.peer && to.size() == 1 && one_in(2);
      return is_at_reader ? ends.peer.peer_link().reserve_at_reader(wanted, transfer)
                          : end->link().reserve(wanted, transfer);
    };
    if (!reserve()) end = &ends.channel, ++game.refused, reserve();
    link::Link& link = end->link();
    if (one_in(8)) return link.abandon(transfer);
    const bool by_device = link.devices_publish() && !fails && wanted.window == 0 && one_in(2);
    if (by_device) transfer.raw_bytes = sent.bytes();
    link.lay_out(transfer);
    const std::uint64_t told_at = wanted.window > 0 ? 0 : up_to(sent.good);
    for (std::uint64_t next = 0;; ++next) {
      for (unsigned i = 0; i < to.size() && next == told_at && !is_cancelled; ++i) {
        sent.route = {static_cast<unsigned>(operation), link.kind(), transfer.first_of(i)};
        game.told.leave(to[i], sent);
      }
      if (next == sent.good) break;
      wait([&] { return link.is_free(transfer, next); });
      std::byte* const place = link.place(transfer, next, sent.bytes_of(next));
      put(*queue, place, &sent.data[next * sent.chunk_bytes], sent.bytes_of(next));
      if (!by_device) link.publish(transfer, next, sent.bytes_of(next));
    }
    for (std::uint64_t next = 0; next < sent.chunks && by_device; ++next) {
      finish(*queue, queue->write(&link.report(transfer, next)->sequence, 1));
    }
    if (fails) return CHECK(link.fail(transfer));
    link.release(transfer);
    if (is_cancelled) link.cancel(operation);
  }

  /// False where nothing is left.
  bool read() {
    std::optional<Message> sent;
    wait([&] {
      const bool are_all = game.writing == 0;
      return (sent = game.told.take(rank, one_in(2))) || are_all;
    });
    if (!sent) return false;
    if (one_in(4)) ::usleep(up_to(2000));
    for (links::End* end : ends.all) end->link().connect(sent->rank, 0);
    links::End& end = *ends.all[static_cast<std::size_t>(sent->route.kind)];
    CHECK(end.link().knows(sent->rank, sent->route, sent->chunks));
    if (one_in(6) && end.link().discard(sent->rank, sent->route, sent->chunks)) return true;
    sent->room.resize(sent->bytes());
    sent->buffers = &*sent;
    sent->as_they_are = one_in(2);
    const auto inbound = end.link().receive(*sent);
    for (std::uint64_t next = 0; next < sent->chunks;) {
      link::Arrived arrived;
      State state = State::pending;
      wait([&] { return (state = inbound->poll(next, arrived)) != State::pending; });
      CHECK((state == State::done) == (next < sent->good));
      const auto got = bytes_of(*queue, arrived.data, arrived.bytes);
      const auto rest = std::span(sent->data).subspan(next * sent->chunk_bytes);
      const auto all = rest.first(std::min(rest.size(), arrived.chunks * sent->chunk_bytes));
      CHECK(state == State::failed || std::ranges::equal(got, all));
      next += arrived.chunks;
      if (next < sent->chunks && (&end == &ends.host || one_in(2))) inbound->acknowledge(next);
    }
    inbound->finish(true);
    return true;
  }
};

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  for (unsigned seed = 1; seed <= 3 && check::failures == 0; ++seed) {
    loopback::Group group(members, seed, 1 << 20);
    Game game;
    loopback::run(members, seed, [&](loopback::ThreadMember& member) {
      sim_be_member(member.rank);
      links::AllEnds ends(member, group.channel(member.rank), limit);
      std::vector<std::jthread> threads;
      for (int i = 0; i < writers + readers; ++i) {
        threads.emplace_back([&, i, own_seed = member.up_to(1 << 30)] {
          sim_be_member(member.rank);
          Player player(member, game, ends, own_seed);
          for (int left = transfers; i < writers && left > 0; --left) player.write();
          if (i < writers) --game.writing;
          while (i >= writers && player.read()) continue;
        });
      }
      threads.clear();
      CHECK(ends.peer.peer_link().is_used() && ends.host.host_link().is_used());
      ends.close();
      CHECK(ends.channel.account.held() == 0 && sim_held(0) == 0);
    });
    CHECK(group.unclaimed() == 0 && game.refused > 0);
  }
  return check::failures != 0;
}
