#include "simulation/rounds.hpp"

#include <algorithm>
#include <stdexcept>

#include "schedule/moves/pairwise.hpp"
#include "schedule/sums/host_sums.hpp"

namespace mpress::simulation {
namespace {

using schedule::Task;

/// Blocks out of a rank or a host, and into it, in one round.
struct Flow {
  double out = 0;
  double in = 0;
  double most() const { return std::max(out, in); }
};

struct RankRound {
  Flow within;
  Flow partners;
  double encoded = 0;
  double decoded = 0;
  double hop_encoded = 0;
  double hop_decoded = 0;
};

/// Goes through the ranks host by host: memory is that of a host's rounds, not of all ranks'.
class Count {
 public:
  explicit Count(const Hosts& hosts) : hosts_(hosts) {}

  /// `schedule_of(rank)` is a Schedule, `count_codec(rank, schedule, rounds)` fills in what the
  /// codec has to do.
  template <class ScheduleOf, class CountCodec>
  Counted all(ScheduleOf schedule_of, CountCodec count_codec) {
    Counted counted;
    std::vector<Round>& rounds = counted.rounds;
    for (int host = 0; host < hosts_.count(); ++host) {
      std::vector<Flow> between;
      for (const int rank : hosts_.members(host)) {
        const Schedule schedule = schedule_of(rank);
        const auto count = static_cast<std::size_t>(schedule.rounds);
        rounds.resize(count);
        between.resize(count);
        rank_.assign(count, {});
        move(schedule.sends, host, &Flow::out, between);
        move(schedule.receives, host, &Flow::in, between);
        count_codec(rank, schedule, rank_);
        fold(rounds);
        fold(counted.total);
      }
      for (std::size_t i = 0; i < between.size(); ++i)
        rounds[i].between = std::max(rounds[i].between, between[i].most());
    }
    return counted;
  }

 private:
  void move(const std::vector<Transfer>& transfers, int host, double Flow::*direction,
            std::vector<Flow>& between) {
    for (const Transfer& transfer : transfers) {
      const auto round = static_cast<std::size_t>(transfer.round);
      const bool is_within = hosts_.host(transfer.peer) == host;
      Flow& flow = is_within ? rank_[round].within : between[round];
      flow.*direction += transfer.count;
      rank_[round].partners.*direction += 1;
    }
  }

  void fold(std::vector<Round>& rounds) const {
    const auto raise = [](double& most, double value) { most = std::max(most, value); };
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const RankRound& one = rank_[i];
      raise(rounds[i].within, one.within.most());
      raise(rounds[i].encoded, one.encoded);
      raise(rounds[i].decoded, one.decoded);
      raise(rounds[i].hop_encoded, one.hop_encoded);
      raise(rounds[i].hop_decoded, one.hop_decoded);
      rounds[i].at_once = std::max(rounds[i].at_once, static_cast<int>(one.partners.most()));
    }
  }

  void fold(CodecTotal& total) const {
    CodecTotal own;
    for (const RankRound& round : rank_) {
      own.encoded += round.encoded;
      own.decoded += round.decoded;
      own.encoding_rounds += round.encoded > 0;
      own.decoding_rounds += round.decoded > 0;
    }
    const auto is_more = [](double blocks, int rounds, double most, int most_rounds) {
      return blocks > most || (blocks == most && rounds > most_rounds);
    };
    if (is_more(own.encoded, own.encoding_rounds, total.encoded, total.encoding_rounds)) {
      total.encoded = own.encoded;
      total.encoding_rounds = own.encoding_rounds;
    }
    if (is_more(own.decoded, own.decoding_rounds, total.decoded, total.decoding_rounds)) {
      total.decoded = own.decoded;
      total.decoding_rounds = own.decoding_rounds;
    }
  }

  const Hosts& hosts_;
  std::vector<RankRound> rank_;
};

/// The codec's work of data that moves. Blocks are told apart by their number modulo `size` where
/// there are as many as pairs: those of one origin, or of one rank's round, differ in that, too.
class MovedCodec {
 public:
  explicit MovedCodec(const Task& task)
      : task_(task),
        blocks_(task.op == Op::alltoall ? static_cast<Block>(task.size) : task.blocks()) {}

  void operator()(int rank, const Schedule& schedule, std::vector<RankRound>& rounds) {
    was_sent_.assign(blocks_, false);
    sent_in_.assign(blocks_, -1);
    const bool is_shared = task_.op == Op::bcast || task_.op == Op::allgather;
    for (const Transfer& send : schedule.sends) {
      RankRound& round = rounds[static_cast<std::size_t>(send.round)];
      if (!is_shared) round.hop_encoded += send.count;
      for (const Block block : schedule.blocks_of(send)) {
        const Block place = block % blocks_;
        if (is_shared && sent_in_[place] != send.round) {
          sent_in_[place] = send.round;
          round.hop_encoded += 1;
        }
        if (task_.origin(block) != rank || was_sent_[place]) continue;
        was_sent_[place] = true;
        round.encoded += 1;
      }
    }
    for (const Transfer& receive : schedule.receives) {
      RankRound& round = rounds[static_cast<std::size_t>(receive.round)];
      round.hop_decoded += receive.count;
      for (const Block block : schedule.blocks_of(receive))
        round.decoded += task_.is_wanted(block, rank);
    }
  }

 private:
  Task task_;
  Block blocks_;
  std::vector<bool> was_sent_;
  std::vector<int> sent_in_;
};

/// The codec's work where partial sums travel: a receive that combines makes a new sum, which is
/// encoded when it is next sent.
class SumCodec {
 public:
  explicit SumCodec(int blocks) : blocks_(static_cast<std::size_t>(blocks)) {}

  void operator()(int, const Schedule& schedule, std::vector<RankRound>& rounds) {
    is_encoded_.assign(blocks_, false);
    auto send = schedule.sends.begin();
    auto receive = schedule.receives.begin();
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      RankRound& round = rounds[i];
      const auto is_of_round = [i](const Transfer& transfer) {
        return static_cast<std::size_t>(transfer.round) == i;
      };
      for (; send != schedule.sends.end() && is_of_round(*send); ++send) {
        for (const Block block : schedule.blocks_of(*send)) {
          round.encoded += !is_encoded_[block];
          is_encoded_[block] = true;
        }
      }
      for (; receive != schedule.receives.end() && is_of_round(*receive); ++receive) {
        round.decoded += receive->count;
        for (const Block block : schedule.blocks_of(*receive))
          is_encoded_[block] = !receive->combines;
      }
      round.hop_encoded = round.encoded;
      round.hop_decoded = round.decoded;
    }
  }

 private:
  std::size_t blocks_;
  std::vector<bool> is_encoded_;
};

}  // namespace

Counted rounds_of(const Method& method, Op op, const Hosts& hosts) {
  const Task task{op, hosts.ranks(), 0, op == Op::bcast ? method.segments : 1};
  return Count(hosts).all([&](int rank) { return make(method, task, rank, hosts); },
                          MovedCodec(task));
}

Counted rounds_of(SumAlgorithm algorithm, Reduction reduction, const Hosts& hosts) {
  const SumTask task{reduction, hosts.ranks()};
  return Count(hosts).all([&](int rank) { return make(algorithm, task, rank); },
                          SumCodec(pieces_of(algorithm, task.size)));
}

std::vector<Counted> two_shot_rounds(Reduction reduction, const Method& sharing, const Hosts& hosts,
                                     int window) {
  const Task task{Op::alltoall, hosts.ranks()};
  std::vector<Counted> shots;
  const auto add = [&](auto schedule_of) {
    shots.push_back(Count(hosts).all(schedule_of, MovedCodec(task)));
  };
  if (hosts.is_mixed()) {
    add([&](int rank) { return host_sums_within(task, rank, hosts, window); });
    add([&](int rank) { return host_sums_between(task, rank, hosts, window); });
  } else {
    add([&](int rank) { return scattered_alltoall(task, rank, window); });
  }
  if (reduction == Reduction::allreduce) shots.push_back(rounds_of(sharing, Op::allgather, hosts));
  if (reduction == Reduction::reduce) shots.push_back(rounds_of(sharing, Op::gather, hosts));
  return shots;
}

}  // namespace mpress::simulation
