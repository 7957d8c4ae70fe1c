// The messages of a round and the calls that send and receive them.

#include <algorithm>
#include <map>
#include <tuple>

#include "plan.hpp"

namespace stress {
namespace {

/// The most that a message between threads may have: its receiver cannot know more of it.
std::size_t shared_bytes(std::size_t max_bytes) {
  return std::clamp<std::size_t>(max_bytes, 64, 20000);
}

class Messages {
 public:
  Messages(const Settings& settings, Random& random, Round& round)
      : settings_(settings), random_(random), round_(round) {}

  void make() {
    const std::size_t budget = 4 * settings_.max_bytes;
    const int wanted = 3 + random_.below(24);
    for (int k = 0; k < wanted && bytes_ < budget; ++k) {
      const bool exchange = has(Family::exchange) && random_.chance(20);
      exchange ? add_exchange() : add_single();
    }
    if (has(Family::shared) && settings_.threads > 1) add_shared();
    if (has(Family::cancel)) add_lonely();
    size_pools();
  }

 private:
  bool has(Family family) const { return settings_.has(family); }
  static int index(std::size_t i) { return static_cast<int>(i); }
  Call& call(int i) { return round_.calls[static_cast<std::size_t>(i)]; }
  Message& message(int i) { return round_.messages[static_cast<std::size_t>(i)]; }
  const Comm& comm(int i) const { return round_.comms[static_cast<std::size_t>(i)]; }

  int add_call(int rank, Kind kind) {
    Call made;
    made.rank = rank;
    made.kind = kind;
    made.large = has(Family::large) && random_.chance(25);
    made.overwrite_sent = random_.chance(60);
    round_.calls.push_back(made);
    return index(round_.calls.size()) - 1;
  }

  /// Sizes around the places where something changes: frames, eager messages, codecs' units.
  std::size_t choose_bytes() {
    const int dice = random_.below(100);
    std::size_t bytes;
    if (dice < 12) {
      bytes = random_.pick<std::size_t>({0, 4, 8, 16, 24, 64});
    } else if (dice < 35) {
      bytes = random_.pick<std::size_t>({240, 244, 248, 252, 256, 260, 504, 508, 512, 760, 1016});
    } else if (dice < 55) {
      bytes = random_.between(256, 6000);
    } else if (dice < 70) {  // raw messages that have the size of a frame
      bytes = 256 * random_.between(1, 40) - random_.pick<std::size_t>({4, 8});
    } else if (dice < 90) {
      const std::size_t edge = random_.pick<std::size_t>({4096, 8192, 16384, 32768, 65536, 131072});
      bytes = edge + 4 * random_.between(0, 40) - 80;
    } else {
      bytes = random_.between(65536, 2 * settings_.max_bytes);
    }
    return std::min(bytes, settings_.max_bytes);
  }

  Element choose_element() {
    if (!has(Family::datatypes) || random_.chance(60)) {
      return random_.pick({Element::f32, Element::f64});
    }
    return random_.pick({Element::c32, Element::c64, Element::i32, Element::i64, Element::chars,
                         Element::bytes, Element::mixed});
  }

  /// Decides once a round how a receiver receives on a communicator: each message by itself, or
  /// from any source. Returns the message's pool, or -1.
  int choose_pool(int on, int receiver, int tag, Element element) {
    const auto [policy, fresh] = policies_.try_emplace({on, receiver}, 0);
    if (fresh && has(Family::wildcard)) {
      policy->second = random_.pick({0, 0, 1, 2});
      if (policy->second == 2 && is_shared(on)) policy->second = 1;
    }
    if (policy->second == 0) return -1;
    const bool any_tag = policy->second == 2;
    const auto key = std::tuple(on, receiver, any_tag ? 0 : tag);
    const auto [pool, made] = pools_.try_emplace(key, index(round_.pools.size()));
    if (made) {
      Pool p;
      p.comm = on;
      p.receiver = receiver;
      p.tag = tag;
      p.any_tag = any_tag;
      p.element = element == Element::mixed ? Element::f32 : element;
      round_.pools.push_back(p);
    }
    return pool->second;
  }

  bool is_shared(int on) const { return settings_.threads > 1 && comm(on).shared(); }

  /// A message without its calls.
  int add_message(int on, int source, int destination, Element element, std::size_t most_bytes) {
    Message m;
    m.comm = on;
    m.source = source;
    m.destination = destination;
    m.tag = round_.stream * tags_per_stream + random_.below(3);
    m.element = element;
    m.data = static_cast<Data>(random_.below(static_cast<std::size_t>(Data::count_)));
    m.key = mix(mix(settings_.seed, static_cast<std::uint64_t>(round_.number)),
                mix(static_cast<std::uint64_t>(round_.stream), round_.messages.size()));
    if (destination != null_rank && source != null_rank) {
      m.pool = choose_pool(on, destination, m.tag, element);
    }
    if (m.pool >= 0) m.element = round_.pools[static_cast<std::size_t>(m.pool)].element;
    m.elements = std::min(choose_bytes(), most_bytes) / element_bytes(m.element);
    const int made = index(round_.messages.size());
    if (m.pool >= 0) round_.pools[static_cast<std::size_t>(m.pool)].messages.push_back(made);
    bytes_ += m.bytes();
    round_.messages.push_back(m);
    return made;
  }

  Side make_side(Element element, std::size_t elements, bool simple = false) {
    Side side;
    side.layout = choose_layout(random_, element, elements, !has(Family::datatypes) || simple);
    side.free_type = has(Family::datatypes) && random_.chance(20);
    return side;
  }

  void set_sender(int m, Kind kind, bool may_join = true) {
    const Message sent = message(m);
    // It would wait for all receives of the pool, and their requests for it.
    if (sent.pool >= 0 && kind == Kind::rsend_init) kind = Kind::send_init;
    const int made = add_call(sent.source, kind);
    Call& c = call(made);
    c.send = m;
    c.out = make_side(sent.element, sent.elements);
    const bool simple = !traits(kind).persistent && sent.element != Element::bytes;
    c.out.packed = has(Family::datatypes) && simple && random_.chance(7);
    message(m).send_call = made;
    if (!traits(kind).persistent) return;
    call(made).channel = made;
    // A send to a pool is over only when all of the pool is received: it cannot start again before.
    if (may_join && sent.pool < 0 && random_.chance(60)) join_send_channel(made);
  }

  void set_receiver(int m, Kind kind) {
    const Message& received = message(m);
    const int made = add_call(received.destination, kind);
    Call& c = call(made);
    c.receive = m;
    std::size_t room = received.elements;
    if (received.pool < 0) {
      if (has(Family::truncate) && received.source != null_rank && kind != Kind::cancel_race &&
          random_.chance(6)) {
        room = received.elements * random_.between(0, 9) / 10;
        c.truncates = room < received.elements;
      } else if (random_.chance(40)) {
        room += random_.pick<std::size_t>({1, 2, 63, 64, room / 2, room});
      }
      c.any_tag = has(Family::wildcard) && !is_shared(received.comm) && random_.chance(25);
    }
    c.in = make_side(received.element, room);
    const bool exact = room == received.elements && received.pool < 0;
    const bool simple = exact && !traits(kind).persistent && received.element != Element::bytes;
    c.in.packed = has(Family::datatypes) && simple && random_.chance(7);
    if (has(Family::datatypes) && received.element == Element::f32 && !c.in.packed && room > 0 &&
        !c.truncates && random_.chance(8)) {
      c.in.layout = {Element::f32, Shape::leading, room, 1, random_.next()};
    }
    message(m).receive_call = made;
    if (!traits(kind).persistent) return;
    c.channel = made;
    if (!c.truncates) join_receive_channel(made);
  }

  /// A started request of an earlier call serves again where it fits.
  void join_send_channel(int made) {
    Call& c = call(made);
    for (int before = made - 1; before >= 0; --before) {
      const Call& b = call(before);
      if (b.kind != c.kind || b.rank != c.rank || b.send < 0 || b.channel < 0) continue;
      const Message& sent = message(b.send);
      Message& now = message(c.send);
      const bool same =
          sent.comm == now.comm && sent.destination == now.destination && sent.pool == now.pool;
      if (!same) continue;
      now.tag = sent.tag;
      now.element = sent.element;
      now.elements = sent.elements;
      c.out = b.out;
      c.channel = b.channel;
      c.previous = before;
      return;
    }
  }

  void join_receive_channel(int made) {
    Call& c = call(made);
    for (int before = made - 1; before >= 0 && random_.chance(90); --before) {
      const Call& b = call(before);
      if (b.kind != c.kind || b.rank != c.rank || b.receive < 0 || b.channel < 0) continue;
      const Message& received = message(b.receive);
      const Message& now = message(c.receive);
      const bool same = received.comm == now.comm && received.source == now.source &&
                        received.tag == now.tag && received.element == now.element;
      const bool fits = b.in.layout.elements() >= now.elements && !b.truncates;
      const bool pooled = now.pool >= 0 && received.pool == now.pool;
      if (!pooled && !(same && fits && received.pool < 0 && now.pool < 0)) continue;
      c.in = b.in;
      c.any_tag = b.any_tag;
      c.channel = b.channel;
      c.previous = before;
      return;
    }
  }

  Kind choose_send() {
    std::vector<Kind> kinds = {Kind::send, Kind::isend, Kind::isend};
    if (has(Family::modes)) {
      kinds.insert(kinds.end(), {Kind::ssend, Kind::rsend, Kind::bsend, Kind::issend, Kind::irsend,
                                 Kind::ibsend});
    }
    if (has(Family::persistent)) {
      kinds.insert(kinds.end(), {Kind::send_init, Kind::send_init, Kind::send_init,
                                 Kind::ssend_init, Kind::bsend_init});
      if (has(Family::modes)) kinds.push_back(Kind::rsend_init);
    }
    return random_.pick(kinds);
  }

  Kind choose_receive(bool must_post) {
    std::vector<Kind> kinds = {Kind::irecv, Kind::irecv};
    if (has(Family::persistent)) kinds.insert(kinds.end(), {Kind::recv_init, Kind::recv_init});
    if (must_post) return random_.pick(kinds);
    kinds.insert(kinds.end(), {Kind::recv, Kind::recv});
    if (has(Family::probe)) {
      kinds.insert(kinds.end(),
                   {Kind::mrecv, Kind::imrecv, Kind::improbe_mrecv, Kind::improbe_imrecv,
                    Kind::probe_recv, Kind::probe_irecv, Kind::iprobe_recv});
    }
    return random_.pick(kinds);
  }

  int choose_comm() { return random_.below(round_.comms.size()); }

  int choose_member(int on, bool remote) {
    const Comm& c = comm(on);
    return random_.pick(remote ? c.remote : c.group);
  }

  void add_single() {
    const int on = choose_comm();
    const bool from_remote = comm(on).inter() && random_.chance(50);
    int source = choose_member(on, from_remote);
    int destination = choose_member(on, comm(on).inter() && !from_remote);
    if (has(Family::null) && random_.chance(4)) {
      (random_.chance(50) ? source : destination) = null_rank;
    }
    const int m = add_message(on, source, destination, choose_element(), settings_.max_bytes);
    if (source == null_rank) return set_receiver(m, for_null(choose_receive(false)));
    if (destination == null_rank) return set_sender(m, for_null(choose_send()));
    const Kind send = choose_send();
    set_sender(m, send);
    const bool ready = traits(send).ready;
    const bool may_race = message(m).pool < 0 && !ready && may_cancel_late();
    const bool race = may_race && random_.chance(7);
    set_receiver(m, race ? Kind::cancel_race : choose_receive(ready));
  }

  /// Open MPI up to 5.0 lets a receive be cancelled that another thread, in MPI, has just matched:
  /// ob1 marks it as matched only after it has released the lock.
  bool may_cancel_late() const {
#if defined(OPEN_MPI)
    if (settings_.threads > 1) return false;
#endif
    return has(Family::cancel);
  }

  /// MPICH 5.0 takes started requests to MPI_PROC_NULL for inactive ones.
  static Kind for_null(Kind kind) {
    if (!traits(kind).persistent) return kind;
    return kind == Kind::recv_init ? Kind::irecv : Kind::isend;
  }

  /// One call of a rank in the middle that sends to one and receives from another.
  void add_exchange() {
    const int on = choose_comm();
    const bool middle_remote = comm(on).inter() && random_.chance(50);
    const bool others_remote = comm(on).inter() && !middle_remote;
    const int middle = choose_member(on, middle_remote);
    int to = choose_member(on, others_remote);
    int from = choose_member(on, others_remote);
    if (has(Family::null) && random_.chance(10)) (random_.chance(50) ? to : from) = null_rank;
    Kind kind = random_.pick(
        {Kind::sendrecv, Kind::sendrecv_replace, Kind::isendrecv, Kind::isendrecv_replace});
    if (to == middle && from == middle && random_.chance(70)) return add_self_exchange(on, kind);
    const Element element = choose_element();
    const int out = add_message(on, middle, to, element, settings_.max_bytes);
    const std::size_t room = message(out).bytes();
    const bool replace = kind == Kind::sendrecv_replace || kind == Kind::isendrecv_replace;
    const int in =
        add_message(on, from, middle, message(out).element, replace ? room : settings_.max_bytes);
    const bool fits = message(in).pool < 0 && message(in).element == message(out).element;
    if (replace && !fits) kind = replace_less(kind);
    if (message(in).pool >= 0) kind = Kind::sendrecv;  // whose status tells the source
    const int made = add_call(middle, kind);
    call(made).send = out;
    call(made).receive = in;
    call(made).out = make_side(message(out).element, message(out).elements);
    call(made).in =
        replace && fits ? call(made).out : make_side(message(in).element, message(in).elements);
    call(made).any_tag = has(Family::wildcard) && !is_shared(on) && message(in).pool < 0 &&
                         from != null_rank && random_.chance(25);
    if (to == null_rank || from == null_rank) {
      if (kind == Kind::isendrecv_replace) call(made).kind = Kind::sendrecv_replace;
    }
    message(out).send_call = made;
    message(in).receive_call = made;
    if (to != null_rank) set_receiver(out, choose_receive(false));
    // The size and tag of what an exchange receives are settled, so no other's request serves.
    if (from != null_rank) set_sender(in, choose_send_for(kind), false);
  }

  /// To oneself, both halves in one call.
  void add_self_exchange(int on, Kind kind) {
    const int self = choose_member(on, false);
    if (comm(on).inter()) return;
    const int m = add_message(on, self, self, choose_element(), settings_.max_bytes);
    if (message(m).pool >= 0) kind = Kind::sendrecv;
    const int made = add_call(self, kind);
    call(made).send = call(made).receive = m;
    call(made).out = make_side(message(m).element, message(m).elements);
    const bool replace = kind == Kind::sendrecv_replace || kind == Kind::isendrecv_replace;
    call(made).in = replace ? call(made).out : make_side(message(m).element, message(m).elements);
    message(m).send_call = message(m).receive_call = made;
  }

  static Kind replace_less(Kind kind) {
    if (kind == Kind::sendrecv_replace) return Kind::sendrecv;
    return kind == Kind::isendrecv_replace ? Kind::isendrecv : kind;
  }

  /// Ready sends only to where the receive is posted by a call that returns.
  Kind choose_send_for(Kind exchange) {
    const Kind kind = choose_send();
    if (!traits(kind).ready || traits(exchange).posts) return kind;
    return Kind::isend;
  }

  void add_lonely() {
    for (int k = random_.below(3); k > 0; --k) {
      const int on = choose_comm();
      const int rank = random_.pick(comm(on).members());
      const Kind kind =
          has(Family::persistent) && random_.chance(40) ? Kind::recv_init : Kind::irecv;
      const int made = add_call(rank, kind);
      Message m;
      m.comm = on;
      m.source = m.destination = rank;
      m.tag = round_.stream * tags_per_stream + lonely_tag;
      m.elements = random_.between(0, 2000);
      m.receive_call = made;
      call(made).lonely = true;
      call(made).receive = index(round_.messages.size());
      call(made).in = make_side(m.element, m.elements);
      if (kind == Kind::recv_init) call(made).channel = made;
      round_.messages.push_back(m);
    }
  }

  /// A few messages that any thread of the receiver may take.
  void add_shared() {
    for (int receiver = 0; receiver < settings_.ranks; ++receiver) {
      Pool pool;
      pool.receiver = receiver;
      pool.tag = shared_tag;
      pool.shared = true;
      const int p = index(round_.pools.size());
      for (int k = random_.below(4); k > 0; --k) {
        const int m = index(round_.messages.size());
        Message sent = shared_message(shared_key(settings_, round_.stream, round_.number, m),
                                      settings_.max_bytes);
        sent.source = random_.below(static_cast<std::size_t>(settings_.ranks));
        sent.destination = receiver;
        sent.tag = shared_tag;
        sent.pool = p;
        round_.messages.push_back(sent);
        pool.messages.push_back(m);
        set_sender(m, random_.pick({Kind::isend, Kind::ibsend, Kind::issend}));
        set_receiver(m, random_.pick({Kind::recv, Kind::irecv, Kind::mrecv, Kind::improbe_imrecv}));
      }
      round_.pools.push_back(pool);
    }
  }

  /// Every receive of a pool has room for each of its messages.
  void size_pools() {
    for (Pool& pool : round_.pools) {
      if (pool.shared) pool.most_elements = shared_bytes(settings_.max_bytes) / sizeof(float);
      for (int m : pool.messages) {
        pool.most_elements = std::max(pool.most_elements, message(m).elements);
      }
      for (int m : pool.messages) {
        Call& c = call(message(m).receive_call);
        if (c.channel >= 0 && c.previous >= 0) {
          c.in = call(c.channel).in;
          continue;
        }
        c.in = make_side(pool.element, pool.most_elements + random_.below(3));
      }
    }
  }

  const Settings& settings_;
  Random& random_;
  Round& round_;
  std::size_t bytes_ = 0;
  std::map<std::pair<int, int>, int> policies_;
  std::map<std::tuple<int, int, int>, int> pools_;
};

}  // namespace

std::uint64_t shared_key(const Settings& settings, int stream, int round, int serial) {
  return mix(mix(settings.seed, static_cast<std::uint64_t>(stream) << 32 | 0x5AA5),
             static_cast<std::uint64_t>(round) << 20 | static_cast<std::uint64_t>(serial));
}

Message shared_message(std::uint64_t key, std::size_t max_bytes) {
  Message m;
  m.key = key;
  m.data = static_cast<Data>(key % static_cast<std::uint64_t>(Data::count_));
  const std::size_t most = shared_bytes(max_bytes) / sizeof(float);
  m.elements = 2 + mix(key) % (most - 2);
  return m;
}

void plan_messages(const Settings& settings, Random& random, Round& round) {
  Messages(settings, random, round).make();
}

}  // namespace stress
