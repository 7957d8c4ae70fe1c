// What must be true of a call that is over.

#include <algorithm>
#include <cstring>

#include "execution.hpp"
#include "failure.hpp"

namespace stress {

void expect_no_error(const MPI_Status& status, const char* what) {
  if (status.MPI_ERROR != MPI_SUCCESS) expect_equal(status.MPI_ERROR, untouched_error, what);
}

/// MPICH 5.0 leaves the status of MPI_Isendrecv undefined; then it is not looked at.
bool isendrecv_tells_status() {
#if MPI_VERSION >= 4
  static const bool tells = [] {
    MPI_Request request;
    MPI_Status status{};
    int out = 1, in = 0, count = 0;
    status.MPI_SOURCE = status.MPI_TAG = untouched_error;
    MPI_Isendrecv(&out, 1, MPI_INT, 0, 7, &in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    return status.MPI_SOURCE == 0 && status.MPI_TAG == 7 && count == 1;
  }();
  return tells;
#else
  return true;
#endif
}

/// Which message some data began as, in words.
std::string Execution::origin_of(const std::byte* data, std::size_t bytes) const {
  const std::uint64_t key = key_in(data, bytes);
  for (std::size_t m = 0; m < round_.messages.size(); ++m) {
    if (key != 0 && round_.messages[m].key == key) return " (begins as m" + std::to_string(m) + ")";
  }
  return {};
}

void Execution::compare(int c, const Message* m, const std::vector<std::byte>& memory,
                        const char* what) {
  std::vector<std::byte> expected;
  if (m || replaces(call(c))) {
    expected = image(c, m);
  } else {
    expected.assign(memory.size(), std::byte{0xC3});
  }
  if (memory == expected) return;
  std::size_t at = 0;
  while (memory[at] == expected[at]) ++at;
  std::size_t differ = 0;
  for (std::size_t i = at; i < memory.size(); ++i) differ += memory[i] != expected[i];
  std::vector<std::byte> data(m ? std::min(m->bytes(), operation(c).in->data_bytes()) : 0);
  if (m) operation(c).in->gather(data.data(), data.size(), memory.data());
  fail(std::string(what) + ": " + text_of(round_, c) + ": " + std::to_string(differ) + " of " +
       std::to_string(memory.size()) + " bytes differ, the first at " + std::to_string(at) + ": " +
       std::to_string(std::to_integer<int>(memory[at])) + " for " +
       std::to_string(std::to_integer<int>(expected[at])) + origin_of(data.data(), data.size()));
}

void Execution::finish(int c, int code, const MPI_Status* status) {
  const Call& it = call(c);
  Outcome& o = outcome(c);
  o.done = true;
  operation(c).sent.fetch();
  operation(c).received.fetch();
  if (it.send >= 0) {
    if (it.receive < 0) must(code, "a send");
    const bool sending = settings_.careful && it.receive >= 0 && traits(it.kind).requests;
    if (!replaces(it)) check_sent(c, it.overwrite_sent && !sending);
  }
  if (it.receive < 0) return;
  if (it.lonely) return check_lonely(c, status);
  if (pool_of(c) < 0) {
    return check_received(c, message(it.receive), code, status, operation(c).received.bytes);
  }
  if (pool(pool_of(c)).shared) {
    must(code, "a receive for any thread");
    return check_shared(c);
  }
  o.code = code;
  o.status = *status;
  o.memory = operation(c).received.bytes;
}

/// MPI leaves what it sends alone, and has no use for it when the send is over.
void Execution::check_sent(int c, bool overwrite) {
  Operation& o = operation(c);
  if (o.sent.bytes != image(c, nullptr)) fail("the data sent were changed: " + text_of(round_, c));
  if (!overwrite) return;
  for (Memory* memory : {&o.sent, &o.packed_out}) {
    std::fill(memory->bytes.begin(), memory->bytes.end(), std::byte{0x77});
    memory->store();
  }
}

void Execution::check_received(int c, const Message& m, int code, const MPI_Status* status,
                               std::vector<std::byte>& memory) {
  const Call& it = call(c);
  if (it.truncates) return check_truncated(c, code, memory);
  must(code, "a receive");
  const bool told = isendrecv_tells_status() || it.send < 0 || !traits(it.kind).requests;
  if (status && told) check_status(c, m, *status);
  Operation& o = operation(c);
  if (it.in.packed && m.source != null_rank) {
    int position = 0;
    o.packed_in.fetch();
    const auto room = static_cast<int>(o.packed_in.bytes.size());
    must(MPI_Unpack(o.packed_in.bytes.data(), room, &position, o.in->address(memory.data()),
                    o.in->count(), o.in_type, comms_.root()),
         "MPI_Unpack");
  }
  compare(c, m.source == null_rank ? nullptr : &m, memory, "wrong data");
}

void Execution::check_status(int c, const Message& m, const MPI_Status& status) {
  const Call& it = call(c);
  const Operation& o = operation(c);
  const bool null = m.source == null_rank;
  expect_equal(status.MPI_SOURCE, null ? MPI_PROC_NULL : comm(m.comm).rank_of(m.source),
               "MPI_SOURCE");
  expect_equal(status.MPI_TAG, null ? MPI_ANY_TAG : m.tag, "MPI_TAG");
  int flag = -1, count = -1, elements = -1;
  must(MPI_Test_cancelled(&status, &flag), "MPI_Test_cancelled");
  expect_equal(flag, 0, "the cancelled flag");
  const std::size_t bytes = null ? 0 : m.bytes();
  const MPI_Datatype type = it.in.packed ? MPI_PACKED : o.in_type;
  const std::size_t item = it.in.packed ? 1 : o.in->item_bytes();
  must(MPI_Get_count(&status, type, &count), "MPI_Get_count");
  must(MPI_Get_elements(&status, type, &elements), "MPI_Get_elements");
  expect_equal(count, bytes % item ? MPI_UNDEFINED : static_cast<int>(bytes / item),
               "MPI_Get_count");
  expect_equal(elements, it.in.packed ? static_cast<int>(bytes) : o.in->basic_elements(bytes),
               "MPI_Get_elements");
  MPI_Count wide = -1;
  must(MPI_Get_elements_x(&status, type, &wide), "MPI_Get_elements_x");
  expect_equal(wide, elements, "MPI_Get_elements_x");
#if MPI_VERSION >= 4
  must(MPI_Get_count_c(&status, type, &wide), "MPI_Get_count_c");
  expect_equal(wide, count, "MPI_Get_count_c");
#endif
}

/// Too small a receive: an error, and nothing written but where the message would have gone.
void Execution::check_truncated(int c, int code, std::vector<std::byte>& memory) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  expect_equal(error_class, MPI_ERR_TRUNCATE, "the error class of a receive that is too small");
  const Layout& layout = *operation(c).in;
  std::vector<std::byte> nothing(layout.data_bytes());
  std::vector<std::byte> expected(memory.size(), std::byte{0xC3});
  layout.scatter(nothing.data(), nothing.size(), expected.data());
  std::vector<std::byte> found = memory;
  layout.scatter(nothing.data(), nothing.size(), found.data());
  expect(found == expected, "a receive that is too small wrote beside its layout");
}

void Execution::check_lonely(int c, const MPI_Status* status) {
  int flag = 0;
  must(MPI_Test_cancelled(status, &flag), "MPI_Test_cancelled");
  expect(flag, "a receive that nobody sends to was not cancelled");
  compare(c, nullptr, operation(c).received.bytes, "a cancelled receive has written");
}

void Execution::check_shared(int c) {
  Operation& o = operation(c);
  std::vector<std::byte> first(sizeof(std::uint64_t));
  o.in->gather(first.data(), first.size(), o.received.bytes.data());
  const Message m = shared_message(key_in(first.data(), first.size()), settings_.max_bytes);
  compare(c, &m, o.received.bytes, "wrong data");
  ledger_.received(m.key);
}

/// In world ranks.
int Execution::source_of(int c, const MPI_Status& status) const {
  const Message& m = message(call(c).receive);
  const Comm& on = comm(m.comm);
  const bool remote =
      on.inter() && std::find(on.group.begin(), on.group.end(), rank_) != on.group.end();
  const auto& group = remote ? on.remote : on.group;
  const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
  if (status.MPI_SOURCE < 0 || source >= group.size()) {
    fail("MPI_SOURCE is " + std::to_string(status.MPI_SOURCE) + ": " + text_of(round_, c));
  }
  return group[source];
}

/// Receives from any source: each source's messages came in the order in which they were sent.
void Execution::check_pool(int p) {
  const Pool& plan = pool(p);
  if (plan.shared) {
    for (int m : plan.messages) ledger_.expect(message(m).key);
    return;
  }
  std::map<int, std::vector<int>> sent;
  for (int m : plan.messages) sent[message(m).source].push_back(m);
  std::map<int, std::size_t> come;
  const auto& receives = pool_receives_[static_cast<std::size_t>(p)];
  for (std::size_t k = 0; k <= receives.size(); ++k) {
    for (const Seen& seen : seen_) {
      if (seen.pool != p || seen.receives != k) continue;
      if (come[seen.source] >= sent[seen.source].size()) fail("a probe saw what never came");
      const Message& m = message(sent[seen.source][come[seen.source]]);
      expect_equal(seen.tag, m.tag, "the tag that a probe told");
      expect_equal(seen.bytes, static_cast<long long>(m.bytes()), "the size that a probe told");
    }
    if (k == receives.size()) break;
    const int c = receives[k];
    Outcome& o = outcome(c);
    const int source = source_of(c, o.status);
    if (come[source] >= sent[source].size()) {
      fail("more messages came from rank " + std::to_string(source) +
           " than were sent: " + text_of(round_, c));
    }
    const int m = sent[source][come[source]++];
    const Message& expected = message(m);
    if (o.status.MPI_TAG != expected.tag) {
      fail("m" + std::to_string(m) + " was overtaken: " + text_of(round_, c));
    }
    check_received(c, expected, o.code, &o.status, o.memory);
  }
}

}  // namespace stress
