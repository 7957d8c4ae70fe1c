// Envelopes of ranks that are threads: what MPI does with the messages of a collective call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "coll/blocks/envelope.hpp"
#include "loopback/posted.hpp"

namespace mpress::loopback {

/// What members of one call have sent each other. Thread-safe.
class Letters {
 public:
  explicit Letters(int members)
      : members_(members),
        boxes_(static_cast<std::size_t>(members)),
        receives_(static_cast<std::size_t>(members * members)) {}

  struct Letter {
    std::vector<std::byte> bytes;
    std::atomic<bool> is_taken{false};
  };

  void leave(int from, int to, std::shared_ptr<Letter> letter) {
    const std::lock_guard lock(mutex_);
    box(from, to).push_back(std::move(letter));
  }

  /// The number of the next receive that `to` begins of `from`; that member's thread asks.
  std::size_t next_receive(int from, int to) {
    return receives_[static_cast<std::size_t>(to * members_ + from)]++;
  }

  /// The one of that number between two members; null where it has not come.
  std::shared_ptr<Letter> find(int from, int to, std::size_t number) {
    const std::lock_guard lock(mutex_);
    const auto& all = box(from, to);
    return number < all.size() ? all[number] : nullptr;
  }

 private:
  std::vector<std::shared_ptr<Letter>>& box(int from, int to) {
    auto& of_receiver = boxes_[static_cast<std::size_t>(to)];
    of_receiver.resize(static_cast<std::size_t>(members_));
    return of_receiver[static_cast<std::size_t>(from)];
  }

  std::mutex mutex_;
  const int members_;
  std::vector<std::vector<std::vector<std::shared_ptr<Letter>>>> boxes_;  ///< by receiver, sender
  std::vector<std::size_t> receives_;
};

/// Long letters are sent no sooner than they are received, as MPI's rendezvous does.
class Envelopes final : public engine::Envelopes {
 public:
  Envelopes(engine::Messaging& rank, Letters& letters, unsigned seed)
      : rank_(rank), letters_(letters), random_(seed) {}

  std::unique_ptr<engine::Envelope> receive(const engine::BlockData& place, int from,
                                            const Receiving& how) override {
    const std::size_t number = letters_.next_receive(from, rank_.rank);
    if (!place.data && place.layout->contiguous) {
      return std::make_unique<Received>(*this, nullptr, from, number);
    }
    if (how.content == Content::bytes) {
      CHECK(place.layout->contiguous);
      const auto room = std::span(static_cast<std::byte*>(place.data), place.bytes);
      return std::make_unique<Received>(*this, room, from, number);
    }
    auto posted = std::make_shared<Posted>(rank_, static_cast<std::byte*>(place.data), place.layout,
                                           place.count, how.called, how.outcome);
    posted->receive.keep_in(how.kept_in, how.is_kept_alone);
    posted->post(false);
    return std::make_unique<Received>(*this, std::move(posted), from, number);
  }

  std::unique_ptr<engine::Envelope> send(const engine::BlockData& data, int to) override {
    std::vector<std::byte> bytes(data.bytes);
    CHECK(data.layout->pack(data.data, data.count, true, bytes.data(), bytes.size()));
    return whole(std::move(bytes), to);
  }

  std::unique_ptr<engine::Envelope> send(const engine::BlockData& data, engine::Prepared prepared,
                                         int to) override {
    if (prepared.chunks) return apart(std::move(prepared.chunks), {&to, 1});
    if (!prepared.data) return send(data, to);
    return whole({prepared.data, prepared.data + prepared.bytes}, to);
  }

  std::unique_ptr<engine::Envelope> send(std::unique_ptr<engine::Send> send, ElementType,
                                         std::span<const int> readers) override {
    return apart(std::move(send), readers);
  }

  std::unique_ptr<engine::Envelope> send_nothing(int to) override { return whole({}, to); }

  void wait(engine::Envelope& one) override {
    while (!static_cast<Whole&>(one).look()) std::this_thread::yield();
  }

 private:
  static constexpr std::size_t eager_bytes = 4096;
  using Letter = Letters::Letter;

  /// One that is matched as it is.
  class Whole : public engine::Envelope {
   public:
    Status status() const override { return status_; }
    bool can_be_waited_for() const override { return !is_matched_; }
    void withdraw() override {}
    bool has_begun() const override { return is_matched_; }
    bool look() { return is_matched_ = is_matched_ || is_there(); }

   protected:
    virtual bool is_there() = 0;
    Status status_;

   private:
    bool is_matched_ = false;
  };

  class Sent final : public Whole {
   public:
    explicit Sent(std::shared_ptr<Letter> letter) : letter_(std::move(letter)) {}
    bool advance() override { return look(); }
    bool is_there() override { return letter_->bytes.size() < eager_bytes || letter_->is_taken; }

   private:
    const std::shared_ptr<Letter> letter_;
  };

  class Received final : public Whole {
   public:
    Received(Envelopes& all, std::shared_ptr<Posted> posted, int from, std::size_t number)
        : all_(all), posted_(std::move(posted)), from_(from), number_(number) {}
    Received(Envelopes& all, std::span<std::byte> room, int from, std::size_t number)
        : all_(all), room_(room), from_(from), number_(number) {}

    bool is_there() override {
      if (all_.random_() % 4 == 0) return false;
      const auto letter = all_.letters_.find(from_, all_.rank_.rank, number_);
      if (!letter) return false;
      is_empty_ = letter->bytes.empty();
      bytes_ = letter->bytes.size();
      if (room_.data()) {
        if (bytes_ > room_.size()) status_ = Status::truncated;
        std::memcpy(room_.data(), letter->bytes.data(), std::min(bytes_, room_.size()));
      } else if (posted_) {
        posted_->come(letter->bytes, from_);
      } else {
        engine::discard(all_.rank_, letter->bytes, from_);
      }
      letter->is_taken = true;
      return true;
    }
    bool has_come() const override {
      const engine::Incoming* const incoming = posted_ ? posted_->receive.incoming() : nullptr;
      return has_begun() && !(incoming && !incoming->has_come());
    }
    bool advance() override {
      if (!look()) return false;
      if (room_.data() && !is_empty_) return true;
      if (is_empty_ || !posted_) {
        status_ = is_empty_ ? Status::device_failed : Status::no_memory;
        return true;
      }
      if (!posted_->is_all_there()) return false;
      posted_->finish();
      const engine::Receive::Result* const result = posted_->receive.result();
      if (result) status_ = result->status;
      if (result) bytes_ = result->bytes;
      return true;
    }
    std::size_t received_bytes() const override { return bytes_; }

   private:
    Envelopes& all_;
    const std::shared_ptr<Posted> posted_;  ///< of a block; null: there is no memory for it
    const std::span<std::byte> room_;       ///< of bytes
    const int from_;
    const std::size_t number_;
    std::size_t bytes_ = 0;
    bool is_empty_ = false;
  };

  class SentApart final : public engine::Envelope {
   public:
    SentApart(engine::Messaging& rank, std::unique_ptr<engine::Send> send)
        : rank_(rank), send_(std::move(send)) {}
    bool advance() override {
      const bool is_over = send_->advance(!is_awaited_);
      rank_.chunks.follow();
      return is_over;
    }
    Status status() const override { return send_->status(); }
    bool can_be_waited_for() const override { return false; }
    void withdraw() override {}
    bool needs_host() const override { return send_->needs_host(); }
    bool is_offered() const override { return send_->is_offered(); }
    void await(bool is_awaited) override { is_awaited_ = is_awaited; }
    std::optional<std::uint64_t> operation() const override { return send_->operation(); }

   private:
    engine::Messaging& rank_;
    const std::unique_ptr<engine::Send> send_;
    bool is_awaited_ = false;
  };

  std::unique_ptr<engine::Envelope> whole(std::vector<std::byte> bytes, int to) {
    auto letter = std::make_shared<Letter>();
    letter->bytes = std::move(bytes);
    letters_.leave(rank_.rank, to, letter);
    return std::make_unique<Sent>(std::move(letter));
  }

  std::unique_ptr<engine::Envelope> apart(std::unique_ptr<engine::Send> send,
                                          std::span<const int> readers) {
    for (const engine::Send::Beginning& one : send->beginnings()) {
      whole({one.data, one.data + one.bytes}, readers[one.reader]);
    }
    return std::make_unique<SentApart>(rank_, std::move(send));
  }

  engine::Messaging& rank_;
  Letters& letters_;
  std::mt19937 random_;
};

}  // namespace mpress::loopback
