
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "links/conformance.hpp"

namespace mpress::links {
namespace {

using link::Account;
using link::Arrived;
using link::Expected;
using link::Inbound;
using link::Link;
using link::Route;
using link::Transfer;

/// Host memory for blocks of links that bring them there.
class Room final : public link::ReceiveBuffers {
 public:
  std::byte* place_of(std::uint64_t chunk, std::size_t bytes) override {
    CHECK(chunk < chunks && bytes == bytes_of(chunk));
    return memory_.data() + chunk * chunk_bytes;
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(chunks * chunk_bytes);
};

/// The sender's side of a transfer.
struct Sent {
  Transfer transfer;
  std::uint64_t operation = 0;
  std::vector<int> readers;
  std::vector<std::byte> data;
};

bool reserve(End& end, std::vector<int> readers, Account& account, Sent& sent) {
  sent.readers = std::move(readers);
  sent.operation = ++end.operations;
  sent.data = noise(chunks * chunk_bytes, static_cast<unsigned>(sent.operation));
  return end.link().reserve(
      {sent.readers, end.device(), chunks, chunk_bytes, sent.operation, &account}, sent.transfer);
}

/// Tells each reader its route, and what the data begins with.
void announce(End& end, const Sent& sent) {
  for (std::size_t i = 0; i < sent.readers.size(); ++i) {
    const std::array<std::uint64_t, 2> words = {
        Route(static_cast<std::uint32_t>(sent.operation), end.link().kind(),
              sent.transfer.first_of(static_cast<std::uint32_t>(i)))
            .word(),
        sent.operation};
    end.member.tell(words, sent.readers[i]);
  }
}

void publish(End& end, const Sent& sent, std::uint32_t first, std::uint32_t behind) {
  for (std::uint32_t chunk = first; chunk < behind; ++chunk) {
    std::byte* const place = end.link().place(sent.transfer, chunk, bytes_of(chunk));
    CHECK(place != nullptr);
    end.write(place, sent.data.data() + chunk * chunk_bytes, bytes_of(chunk));
    end.link().publish(sent.transfer, chunk, bytes_of(chunk));
  }
}

/// The reader's side.
struct Reading {
  Reading(End& end, int sender = 0) : end(end) {
    const auto words = end.member.hear<std::array<std::uint64_t, 2>>(sender);
    route = Route(words[0]);
    data = noise(chunks * chunk_bytes, static_cast<unsigned>(words[1]));
    CHECK(end.link().knows(sender, route, chunks));
    from = sender;
  }
  void open() {
    inbound = end.link().receive(
        {from, route, chunks, chunk_bytes, last_bytes, false, end.device(), &room, end.other()});
  }
  gpu::State wait(std::uint64_t chunk, Arrived& arrived) {
    gpu::State state = gpu::State::pending;
    end.member.wait([&] {
      end.link().advance();
      state = inbound->poll(chunk, arrived);
      return state != gpu::State::pending;
    });
    return state;
  }
  /// Reads some, which have to come.
  void read(std::uint64_t first, std::uint64_t behind) {
    for (std::uint64_t chunk = first; chunk < behind; ++chunk) {
      Arrived arrived;
      if (wait(chunk, arrived) != gpu::State::done) {
        CHECK(!"a block that was published");
        return;
      }
      CHECK(arrived.bytes == bytes_of(chunk) && arrived.chunks == 1);
      const std::vector<std::byte> got = end.read(arrived);
      CHECK(std::memcmp(got.data(), data.data() + chunk * chunk_bytes, got.size()) == 0);
      end.member.dawdle();
      inbound->acknowledge(chunk + 1);
    }
  }
  /// Finds that the rest will not come.
  void find_failed(std::uint64_t first) {
    for (std::uint64_t chunk = first; chunk < chunks; ++chunk) {
      Arrived arrived;
      CHECK(wait(chunk, arrived) == gpu::State::failed);
      CHECK(std::strlen(inbound->problem()) > 0);
    }
    inbound->finish(true);
  }

  End& end;
  Route route;
  int from = 0;
  std::vector<std::byte> data;
  Room room;
  std::unique_ptr<Inbound> inbound;
};

/// Nothing is held any more, sooner or later.
void wait_until_free(End& end, const Account& account) {
  end.member.wait([&] {
    end.link().advance();
    return account.held() == 0;
  });
}

/// Readers open what member 0 shares, which it does when it is needed.
void connect(End& end) {
  for (int round = 0; round < 2; ++round) {
    if (end.member.rank != 0) end.link().connect(0, 0);
    end.member.barrier();
    const int readers[] = {1, 2};
    Transfer none;
    if (end.member.rank == 0) {
      end.link().reserve({readers, end.device(), chunks, chunk_bytes, 0}, none);
    }
    if (none.chunks > 0) end.link().abandon(none);
    end.member.barrier();
  }
  if (end.member.rank != 0) end.link().connect(0, 0);
  end.member.barrier();
  CHECK(end.member.rank != 0 || end.link().reaches(1));
}

/// One and several readers, blocks in order, of which the last is shorter.
void blocks(End& end, Account& account) {
  const std::vector<std::vector<int>> all = {{1}, {2}, {1, 2}, {2, 1}};
  for (int round = 0; round < 12; ++round) {
    for (const std::vector<int>& readers : all) {
      if (end.member.rank == 0) {
        Sent sent;
        CHECK(reserve(end, readers, account, sent) && account.held() > 0);
        end.link().lay_out(sent.transfer);
        const auto before = static_cast<std::uint32_t>(end.member.random() % (chunks + 1));
        publish(end, sent, 0, before);
        announce(end, sent);
        end.member.dawdle();
        publish(end, sent, before, chunks);
        end.link().release(sent.transfer);
      } else if (std::find(readers.begin(), readers.end(), end.member.rank) != readers.end()) {
        Reading reading(end);
        reading.open();
        reading.read(0, chunks);
        reading.inbound->finish(true);
      }
    }
    if (end.member.rank == 0) wait_until_free(end, account);
  }
}

/// An operation that has used up its share gets no more, and others do.
void share(End& end, Account&) {
  if (end.member.rank == 0) {
    Account greedy(3 * chunks * chunk_bytes), other;
    std::vector<Sent> kept(3);
    std::size_t count = 0;
    while (count < kept.size() && reserve(end, {1}, greedy, kept[count])) ++count;
    CHECK(count == 2 || count == 3);  // slots are rounded up
    Sent more;
    CHECK(!reserve(end, {1}, greedy, more) && more.transfer.chunks == 0);
    CHECK(reserve(end, {1}, other, more));
    end.link().abandon(more.transfer);
    kept.resize(count);
    for (Sent& sent : kept) {
      end.link().lay_out(sent.transfer);
      publish(end, sent, 0, chunks);
      end.link().release(sent.transfer);
    }
    end.member.tell(static_cast<int>(count), 1);
    for (Sent& sent : kept) announce(end, sent);
    wait_until_free(end, greedy);
    wait_until_free(end, other);
    CHECK(reserve(end, {1}, greedy, more));
    end.link().abandon(more.transfer);
  } else if (end.member.rank == 1) {
    const int number = end.member.hear<int>(0);
    std::vector<std::unique_ptr<Reading>> all;
    for (int i = 0; i < number; ++i) all.push_back(std::make_unique<Reading>(end));
    std::shuffle(all.begin(), all.end(), end.member.random);  // whoever sent first is read last
    for (const auto& reading : all) {
      reading->open();
      reading->read(0, chunks);
      reading->inbound->finish(true);
    }
  }
}

/// What fails after some blocks.
void failure(End& end, Account& account) {
  for (const std::uint32_t good : {0u, 3u, chunks - 1}) {
    if (end.member.rank == 0) {
      Sent sent;
      CHECK(reserve(end, {1, 2}, account, sent));
      end.link().lay_out(sent.transfer);
      announce(end, sent);
      publish(end, sent, 0, good);
      CHECK(end.link().fail(sent.transfer));
      wait_until_free(end, account);
    } else {
      Reading reading(end);
      reading.open();
      reading.read(0, good);
      reading.find_failed(good);
    }
  }
}

/// Transfers that nobody hears of, that are cancelled, whose reader does not want them, or never
/// comes: no call waits, and what they hold comes free.
void unclaimed(End& end, Account& account) {
  if (end.member.rank == 0) {
    Sent sent;
    CHECK(reserve(end, {1, 2}, account, sent));
    end.link().abandon(sent.transfer);
    wait_until_free(end, account);
    static Account cancelled, forgotten;  // which outlive their transfers; the sender's alone
    CHECK(reserve(end, {1}, cancelled, sent));
    end.link().lay_out(sent.transfer);
    publish(end, sent, 0, chunks);
    end.link().release(sent.transfer);
    end.link().cancel(sent.operation);
    if (end.frees_cancelled()) wait_until_free(end, cancelled);
    CHECK(reserve(end, {2}, account, sent));
    end.link().lay_out(sent.transfer);
    announce(end, sent);
    publish(end, sent, 0, chunks);
    end.link().release(sent.transfer);
    wait_until_free(end, account);
    CHECK(reserve(end, {1}, forgotten, sent));
    end.link().lay_out(sent.transfer);
    publish(end, sent, 0, chunks);
    end.link().release(sent.transfer);
  } else if (end.member.rank == 2) {
    Reading reading(end);
    if (!end.link().discard(0, reading.route, chunks)) {
      reading.open();
      reading.read(0, chunks);
      reading.inbound->finish(true);
    }
  }
}

/// Readers of a timed transfer tell how long it took; one that was away in between says so, and
/// nobody waits for those that never come.
void timed(ByChannel& end) {
  constexpr std::uint64_t away_ns = 20'000'000;
  for (int round = 0; round < 6; ++round) {
    const bool is_away = round % 2 == 1;
    if (end.member.rank == 0) {
      Sent sent;
      sent.readers = {1, 2};
      sent.operation = ++end.operations;
      sent.data = noise(chunks * chunk_bytes, static_cast<unsigned>(sent.operation));
      link::Reservation wanted{sent.readers, end.device(), chunks, chunk_bytes, sent.operation};
      wanted.is_timed = true;
      CHECK(end.link().reserve(wanted, sent.transfer));
      announce(end, sent);
      publish(end, sent, 0, chunks);
      end.link().release(sent.transfer);
      if (round == 5) continue;  // what they tell is not asked for
      int left = 2;
      end.member.wait([&] {
        end.link().advance();
        const auto told = end.channel_link().take_reader_time();
        if (!told) return left == 0;
        CHECK(told->rank == 1 || told->rank == 2);
        CHECK(told->number == sent.operation);
        CHECK(!is_away || told->ns == 0);
        return --left == 0;
      });
    } else {
      Reading reading(end);
      reading.open();
      reading.read(0, 1);
      if (is_away) ::usleep(away_ns / 1000);
      reading.read(1, chunks);
      reading.inbound->finish(true);
    }
  }
}

}  // namespace

void conforms(End& end) {
  connect(end);
  Account account;
  for (void (*const test)(End&, Account&) : {blocks, share, failure, unclaimed}) {
    test(end, account);
    end.member.barrier();
  }
  end.close();
}

void conforms(ByChannel& end) {
  timed(end);
  conforms(static_cast<End&>(end));
}

bool loses_sender(End& end) {
  connect(end);
  if (end.member.rank == 0) {
    Sent sent;
    CHECK(reserve(end, {1, 2}, end.account, sent));
    end.link().lay_out(sent.transfer);
    publish(end, sent, 0, 3);
    announce(end, sent);
    return true;
  }
  Reading reading(end);
  reading.open();
  reading.read(0, 3);
  if (end.sees_ended_senders()) reading.find_failed(3);
  return false;
}

void loses(End& end, void (*shut_down)(End&)) {
  std::signal(SIGUSR1, SIG_IGN);  // what MPICH's launcher tells the others with
  const char* folder = std::getenv("RANKS_FOLDER");
  if (loses_sender(end)) {
    for (int i = 0; i < 1000; ++i) {  // until MPI has it
      end.link().advance();
      ::usleep(1000);
    }
    ::raise(SIGKILL);
  }
  shut_down(end);
  if (check::failures == 0 && folder) {
    std::ofstream(std::string(folder) + "/told." + std::to_string(end.member.rank)) << "told";
  }
  ::sleep(1);  // launchers may end the others as soon as one has left without MPI_Finalize
  ::_exit(check::failures != 0);
}

}  // namespace mpress::links
