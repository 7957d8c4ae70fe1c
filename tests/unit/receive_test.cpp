// Receives without MPI, each with what one message can be: raw, a frame, damaged, too long, a
// header; in the program's buffer, in memory that the CPU cannot touch, and beside another receive.

#include "message/receive.hpp"

#include "loopback/posted.hpp"
#include "message/protocols.hpp"

using namespace mpress;

namespace {

using Bytes = std::vector<std::byte>;
using Kind = engine::ReceivePlace::Kind;
using loopback::Memory;
using loopback::Posted;
using loopback::Strided;

constexpr std::int64_t count = 1500;
constexpr std::size_t bytes = count * sizeof(float);

Bytes elements() {
  const std::vector<float> values = wave<float>(count);
  const auto data = std::as_bytes(std::span(values));
  return {data.begin(), data.end()};
}

/// An eager frame of them.
Bytes frame(loopback::Rank& rank) {
  const Bytes data = elements();
  const Strided layout(ElementType::f32, 4, 4);
  const engine::CommSettings settings;
  const engine::SendCall call{trace::Op::send, Family::p2p, true};
  const engine::Message message{call, data.data(), count,     layout, settings,
                                0,    bytes,       gpu::host, true};
  Spec spec;
  spec.codec = Codec::mpc;
  engine::Prepared prepared;
  CHECK(engine::prepare(rank, message, {spec, trace::Reason::none}, prepared).is_ok());
  CHECK(prepared.is_frame && prepared.bytes < bytes);
  return {prepared.data, prepared.data + prepared.bytes};
}

struct Buffer {
  explicit Buffer(loopback::Rank& rank, int device = gpu::host, std::int64_t items = count)
      : memory(std::make_shared<Memory>(device, bytes, 0)),
        posted(std::make_shared<Posted>(rank, memory->data(),
                                        std::make_shared<Strided>(ElementType::f32, 4, 4), items,
                                        trace::Op::recv, &outcome)) {}
  Bytes data() const { return memory->read(bytes); }
  Kind kind() const { return posted->receive.place().kind(); }
  /// What a blocking call does with a message.
  engine::Receive::Result get(const Bytes& message) {
    posted->come(message, 0);
    posted->finish();
    return posted->receive.result() ? *posted->receive.result() : engine::Receive::Result();
  }

  std::shared_ptr<Memory> memory;
  engine::Outcome outcome;
  std::shared_ptr<Posted> posted;
};

void test_in_place(loopback::Rank& rank) {
  Buffer raw(rank), framed(rank);
  CHECK(!raw.posted->post(false) && raw.kind() == Kind::in_place);
  const auto result = raw.get(elements());
  CHECK(result.status.is_ok() && result.bytes == bytes && result.is_as_received);
  CHECK(raw.data() == elements());
  CHECK(!framed.posted->post(false));
  const auto decoded = framed.get(frame(rank));
  CHECK(decoded.status.is_ok() && decoded.bytes == bytes && !decoded.is_as_received);
  CHECK(framed.data() == elements() && framed.outcome.is_served);
  // A persistent receive gets both, one after the other.
  framed.posted->receive.renew();
  CHECK(!framed.posted->receive.result() && !framed.outcome.is_served);
  CHECK(framed.get(elements()).is_as_received);
}

void test_wrong_frames(loopback::Rank& rank) {
  const Bytes good = frame(rank);
  Bytes header = good, payload = good, cut(good.begin(), good.end() - wire::size_grain);
  header[40] ^= std::byte{1};
  payload[wire::header_bytes + 9] ^= std::byte{1};
  for (const Bytes& wrong : {header, payload, cut}) {
    Buffer buffer(rank);
    CHECK(!buffer.posted->post(false));
    const auto result = buffer.get(wrong);
    CHECK(result.status == Status::corrupt && result.bytes == 0 && !result.is_as_received);
  }
  // MPI has cut it, and has raised that.
  Buffer full(rank, gpu::host, static_cast<std::int64_t>(cut.size() / sizeof(float)));
  CHECK(!full.posted->post(false));
  CHECK(full.get(cut).is_as_received);
  // It says itself that it is too long.
  Buffer little(rank, gpu::host, count - 1);
  CHECK(!little.posted->post(false));
  CHECK(little.get(good).status == Status::truncated);
}

/// Data that nobody has: the link does not know them.
void test_header_of_nothing(loopback::Rank& rank) {
  wire::Header header;
  header.spec = engine::no_codec();
  header.count = count;
  header.chunk_bytes = 4096;
  header.route = ~std::uint64_t{0};
  Bytes message(wire::min_frame_bytes);
  wire::close_frame(header, rank.nonce, message.data());
  Buffer buffer(rank);
  CHECK(!buffer.posted->post(false));
  CHECK(buffer.get(message).status == Status::corrupt);
}

/// MPI takes memory of devices: nothing is staged but what has been found to be headers.
void test_on_device(loopback::Rank& rank) {
  rank.gpu_aware = true;
  Buffer raw(rank, 0), framed(rank, 0), wrong(rank, 0), expected(rank, 0), kept(rank, 0);
  CHECK(!raw.posted->post(false) && raw.kind() == Kind::remote);
  CHECK(raw.get(elements()).is_as_received && raw.data() == elements());
  CHECK(!framed.posted->post(false) && framed.kind() == Kind::remote);
  CHECK(framed.get(frame(rank)).bytes == bytes && framed.data() == elements());
  Bytes damaged = frame(rank);
  damaged[40] ^= std::byte{1};
  CHECK(!wrong.posted->post(false));
  CHECK(wrong.get(damaged).status == Status::corrupt);
  while (!rank.forecast.expects(bytes)) rank.forecast.header_came(bytes);
  CHECK(!expected.posted->post(false) && expected.kind() == Kind::staged);
  CHECK(expected.get(elements()).status.is_ok() && expected.data() == elements());
  CHECK(!rank.forecast.expects(bytes));
  while (!rank.forecast.expects(bytes)) rank.forecast.header_came(bytes);
  CHECK(!kept.posted->post(true) && kept.kind() == Kind::remote);
  rank.gpu_aware = false;
}

/// Both are right at the time that they are delivered, whichever that is first.
void test_overlapping(loopback::Rank& rank, bool first_is_first) {
  Buffer first(rank);
  CHECK(!first.posted->post(false));
  Buffer second(rank);
  second.memory = first.memory;
  second.posted = std::make_shared<Posted>(
      rank, first.memory->data(), std::make_shared<Strided>(ElementType::f32, 4, 4), count);
  first.posted->come(frame(rank), 0);
  CHECK(second.posted->post(false) && second.kind() == Kind::aside);
  CHECK(first.posted->receive.place().is_contested());
  Bytes zeros(bytes);
  if (!first_is_first) {
    CHECK(second.get(zeros).bytes == bytes && first.data() == zeros);
    CHECK(first.posted->is_over());
  }
  first.posted->finish();
  CHECK(first.posted->receive.result()->status.is_ok() && first.data() == elements());
  // A third is in place again, and has not been looked at when the second lays its data out.
  if (first_is_first) {
    Buffer third(rank);
    third.posted = std::make_shared<Posted>(
        rank, first.memory->data(), std::make_shared<Strided>(ElementType::f32, 4, 4), count);
    CHECK(!third.posted->post(false));
    third.posted->come(frame(rank), 0);
    CHECK(second.get(zeros).bytes == bytes && first.data() == zeros);
    third.posted->finish();
    CHECK(third.posted->receive.result()->status.is_ok() && first.data() == elements());
  }
  CHECK(rank.in_place.empty());
}

}  // namespace

int main() {
  loopback::Group group(1, 1);
  loopback::run(1, 1, [&](loopback::ThreadMember& member) {
    sim_be_member(member.rank);
    const auto rank = std::make_unique<loopback::Rank>(member, group.channel(0), 1 << 20);
    test_in_place(*rank);
    test_wrong_frames(*rank);
    test_header_of_nothing(*rank);
    test_on_device(*rank);
    test_overlapping(*rank, true);
    test_overlapping(*rank, false);
    rank->close();
  });
  return check::failures != 0;
}
