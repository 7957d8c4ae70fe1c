// The cost model: compresses where it pays, leaves alone where it does not, and looks again.

#include "policy/policy.hpp"

#include <memory>

#include "check.hpp"
#include "near.hpp"
#include "policy/chunks.hpp"

using namespace mpress;
using namespace mpress::policy;
using check::is_near;

namespace {

constexpr std::size_t bytes = 1 << 20;

/// On the host, over a link of this rate.
Costs link_of(double rate) {
  Costs costs;
  for (auto& places : costs.messages) places.fill(Curve::line(0, rate));
  return costs;
}

Subject message_of(std::size_t size = bytes, Place place = Place::host) {
  return {{place, Peer::same_host}, Codec::mpc, ElementType::f32, size, std::make_shared<Ratios>()};
}

/// Feeds what a codec of this speed (bytes a nanosecond) and this ratio would report.
int compressed_of(Policy& policy, const Subject& message, int messages, double ratio,
                  double speed = 2) {
  int compressed = 0;
  const auto size = static_cast<double>(message.bytes);
  const auto ns = static_cast<std::uint64_t>(size / speed);
  for (int i = 0; i < messages; ++i) {
    if (policy.judge(message) != Verdict::compress) continue;
    ++compressed;
    policy.encoded(message, static_cast<std::size_t>(size / ratio), ns);
    policy.decoded(message.path.place, message.codec, message.bytes, ns);
  }
  return compressed;
}

void the_slowest_stage_counts_in_full() {
  const Curve link = Curve::line(10e-6, 1e9);
  // In one piece, all add up.
  CHECK(is_near(compressed_seconds(link, {20e-6, 30e-6, 20e-6, 30e-6}, 40e3), 100e-6));
  // In ten chunks: the wire, or the encoder, and a chunk of what else there is.
  CHECK(is_near(compressed_seconds(link, {20e-6, 30e-6, 2e-6, 3e-6}, 40e3), 55e-6));
  CHECK(is_near(compressed_seconds(link, {200e-6, 30e-6, 20e-6, 3e-6}, 40e3), 203e-6));
}

void chunks_are_the_device_s() {
  Costs costs = default_costs();
  costs.device_chunks.fill(1 << 20);
  const Path device{Place::device, Peer::same_host};
  const CodecSeconds chunk = *costs.codec_seconds(device, Codec::mpc, 1 << 20);
  const CodecSeconds eight = *costs.codec_seconds(device, Codec::mpc, 8 << 20);
  CHECK(is_near(chunk.first_encode, chunk.encode) && is_near(eight.first_encode, chunk.encode));
  CHECK(is_near(eight.encode, 8 * chunk.encode) && is_near(eight.last_decode, chunk.decode));
  costs.device_chunks[static_cast<std::size_t>(Peer::other_host)] = 4 << 20;
  const CodecSeconds two =
      *costs.codec_seconds({Place::device, Peer::other_host}, Codec::mpc, 8 << 20);
  CHECK(two.first_encode > eight.first_encode && is_near(two.encode, 2 * two.first_encode));
  CHECK(is_near(costs.codec_seconds(device, Codec::mpc, 8 << 20)->encode, eight.encode));
}

void frames_may_take_another_way() {
  Costs costs;
  costs.messages[0] = {Curve::line(0, 1e9), Curve::line(0, 100e9)};
  const Path device{Place::device, Peer::same_host};
  CHECK(is_near(costs.frame(device).at(1e9), 0.01));
  costs.frames_leave_host = true;
  CHECK(is_near(costs.frame(device).at(1e9), 1));
  CHECK(is_near(costs.frame({Place::host, Peer::same_host}).at(1e9), 1));
  costs.messages[0][0] = {};
  CHECK(is_near(costs.frame(device).at(1e9), 0.01));
}

constexpr Path linked{Place::device, Peer::linked};

/// As of two GPUs beside each other: 370 GB/s, and a codec of 1.3 TB/s.
Costs costs_between_gpus() {
  Costs costs = default_costs();
  costs.messages[static_cast<std::size_t>(Peer::linked)][1] = Curve::line(15e-6, 370e9);
  costs.codecs[static_cast<std::size_t>(Codec::mpc)][1] = {Curve::line(12e-6, 1300e9),
                                                           Curve::line(10e-6, 1400e9)};
  costs.device_chunks.fill(1 << 20);
  return costs;
}

void frames_between_linked_devices_go_as_messages_do() {
  Costs costs = costs_between_gpus();
  costs.messages[static_cast<std::size_t>(Peer::linked)][0] = Curve::line(0, 1e9);
  costs.frames_leave_host = true;
  CHECK(is_near(costs.frame(linked).at(1e9), costs.message(linked).at(1e9)));
}

void messages_by_pinned_memory_overlap() {
  const Costs costs = costs_between_gpus();
  const Path pinned{Place::device, peer_by(link::Kind::host)};
  CHECK(own_link(medium(pinned))->kind == link::Kind::host && costs.message(pinned));
  constexpr double size = 256 << 20;
  const CodecSeconds codec = *costs.codec_seconds(pinned, Codec::mpc, size);
  CHECK(codec.first_encode < codec.encode / 4 && codec.last_decode < codec.decode / 4);
  const double wire = size / 4;
  CHECK(costs.compressed(pinned, codec, wire) < 1.3 * costs.message(pinned).at(wire));
}

void links_between_devices_are_learned() {
  Costs costs = default_costs();
  costs.device_chunks.fill(1 << 20);
  const auto message = [](Codec codec) {
    return Subject{linked, codec, ElementType::f32, 256 << 20, std::make_shared<Ratios>()};
  };
  Policy policy;
  policy.configure(false, costs);
  CHECK(!policy.links().is_configured(linked) &&
        policy.judge(message(Codec::szp)) == Verdict::unknown);
  policy.links().learn_linked(25e9, speed_of_h200, "a test");  // PCIe
  policy.links().learn_linked(12e9, speed_of_h200, "a test");  // another one, slower
  CHECK(policy.links().rate(Peer::linked) == 25e9);
  CHECK(compressed_of(policy, message(Codec::mpc), 20, 1.5) == 20);
  CHECK(compressed_of(policy, message(Codec::szp), 20, 10) == 20);
  policy.links().learn_linked(390e9, speed_of_h200, "a test");  // NVLink
  CHECK(policy.judge(message(Codec::mpc)) == Verdict::link);
  CHECK(compressed_of(policy, message(Codec::szp), 20, 10) == 20);
  Policy of_slow_devices;
  of_slow_devices.configure(false, costs);
  of_slow_devices.links().learn_linked(390e9, speed_of_h200 / 2, "a test");
  CHECK(of_slow_devices.judge(message(Codec::szp)) == Verdict::link);
  // What a profile tells of codecs holds.
  costs.codecs[static_cast<std::size_t>(Codec::szp)][1] = {Curve::line(1, 1), Curve::line(1, 1)};
  costs.assumed_codecs[static_cast<std::size_t>(Codec::szp)] = false;
  Policy of_profile;
  of_profile.configure(false, costs);
  of_profile.links().learn_linked(25e9, speed_of_h200, "a test");
  CHECK(of_profile.judge(message(Codec::szp)) == Verdict::link);
}

void launches_of_linked_devices_count_once() {
  const Costs costs = costs_between_gpus();
  constexpr double size = 256 << 20;
  const CodecSeconds codec = *costs.codec_seconds(linked, Codec::mpc, size);
  CHECK(is_near(codec.first_encode, 12e-6 + (32 << 20) / 1300e9));
  CHECK(is_near(codec.encode, 12e-6 + size / 1300e9));
  CHECK(codec.decode > size / 1300e9 && codec.decode < 1.6 * size / 1300e9);
  const CodecSeconds staged =
      *costs.codec_seconds({Place::device, Peer::same_host}, Codec::mpc, size);
  CHECK(staged.encode > codec.encode && staged.decode > codec.decode);
}

void force_compresses_always() {
  Policy policy;
  policy.configure(true, {});
  CHECK(compressed_of(policy, message_of(), 100, 0.9, 0.001) == 100);
}

void an_unknown_link_is_left_alone() {
  Policy policy;
  policy.configure(false, {});
  CHECK(compressed_of(policy, message_of(), 100, 100, 1000) == 0);
  CHECK(policy.judge(message_of()) == Verdict::unknown);
}

void the_model_decides() {
  // Break-even: link < (1 - 1/ratio) / (1/encode + 1/decode). Ratio 2 at 2 GB/s: 0.5 GB/s.
  Policy slow_link;
  slow_link.configure(false, link_of(0.4e9));
  CHECK(compressed_of(slow_link, message_of(), 1000, 2) == 1000);
  Policy fast_link;
  fast_link.configure(false, link_of(0.6e9));
  const Subject message = message_of();
  const int looks = compressed_of(fast_link, message, 10000, 2);
  CHECK(looks > 2 && looks < 400);  // which cost about a hundredth of the time
  CHECK(compressed_of(fast_link, message, 20, 2) <= 1);
  // What is twice as fast raw, as it goes in windows, has to shrink more: 2.9 at 0.1 GB/s.
  Policy windows;
  windows.configure(false, link_of(0.1e9));
  Subject in_window = message_of();
  in_window.raw_share = 0.5;
  CHECK(compressed_of(windows, in_window, 10000, 2) < 400);
  in_window.ratios = std::make_shared<Ratios>();
  in_window.bytes *= 64;
  CHECK(compressed_of(windows, in_window, 100, 4) == 100);
}

void what_can_never_pay_is_not_tried() {
  Costs costs = default_costs();
  Policy policy;
  policy.configure(false, costs);
  CHECK(policy.judge(message_of(64 << 10, Place::device)) == Verdict::link);
  CHECK(compressed_of(policy, message_of(64 << 10, Place::device), 10000, 1000) == 0);
  CHECK(compressed_of(policy, message_of(32 << 20, Place::device), 100, 2) == 100);
  CHECK(policy.judge(message_of(32 << 20)) == Verdict::unknown);  // of the host, nothing is assumed
}

/// Host and device, where only the start of the job has measured a link.
void a_measured_link_counts_where_nothing_is_told() {
  constexpr double slow = 125e6;
  Policy policy;
  policy.configure(false, default_costs());
  CHECK(!policy.may_compress_host() &&
        !policy.links().is_configured({Place::host, Peer::other_host}));
  policy.links().learn_codecs({0, 1e-9, 1e-9, 0.5e-9});
  policy.links().begin(Peer::other_host, slow, Confidence::medium);
  CHECK(policy.may_compress_host());
  Subject message = message_of();
  CHECK(policy.judge(message) == Verdict::unknown);
  message.path.peer = Peer::other_host;
  CHECK(compressed_of(policy, message, 100, 2) == 100);
  Subject short_one = message_of(16 << 10);
  short_one.path.peer = Peer::other_host;
  CHECK(policy.judge(short_one) == Verdict::compress);
  // A device's messages take no less than the host's.
  Subject device = message_of(64 << 10, Place::device);
  CHECK(policy.judge(device) == Verdict::link);
  device.path.peer = Peer::other_host;
  CHECK(policy.judge(device) == Verdict::compress);
  // What a profile tells rules.
  Policy told;
  told.configure(false, link_of(100e9));
  told.links().begin(Peer::other_host, slow, Confidence::medium);
  CHECK(compressed_of(told, message, 100, 2) <= 2);
}

/// The fastest codec is slower than the link.
void a_fast_link_is_left_alone() {
  Policy policy;
  policy.configure(false, default_costs());
  policy.links().learn_codecs({0, 1e-9, 1e-9, 0.5e-9});
  policy.links().begin(Peer::same_host, 3e9, Confidence::medium);
  CHECK(!policy.may_compress_host());
  CHECK(policy.judge(message_of()) == Verdict::link);
  CHECK(compressed_of(policy, message_of(), 1000, 100) == 0);
}

Subject linked_message_of(std::size_t size) {
  Subject message = message_of(size);
  message.path = linked;
  return message;
}

void nothing_is_assumed_of_linked_devices() {
  Policy policy;
  policy.configure(false, default_costs());
  CHECK(policy.judge(linked_message_of(256 << 20)) == Verdict::unknown);
}

void large_messages_between_linked_devices_may_pay() {
  Policy policy;
  policy.configure(false, costs_between_gpus());
  CHECK(compressed_of(policy, linked_message_of(256 << 20), 100, 2.6) == 100);
  CHECK(compressed_of(policy, linked_message_of(16 << 20), 100, 2.6) <= 2);
}

/// A codec may pay one way and not while messages go both ways: then it is not used.
void linked_devices_send_and_receive_at_once() {
  Costs costs = costs_between_gpus();
  costs.codecs[static_cast<std::size_t>(Codec::mpc)][1] = {Curve::line(12e-6, 750e9),
                                                           Curve::line(10e-6, 750e9)};
  constexpr double size = 256 << 20;
  const CodecSeconds codec = *costs.codec_seconds(linked, Codec::mpc, size);
  const double raw = costs.message(linked).at(size);
  CHECK(compressed_seconds(costs.frame(linked), codec, size / 2.6, 1.3) + 15e-6 < raw);
  CHECK(costs.compressed(linked, codec, size / 2.6) > raw);
  Policy policy;
  policy.configure(false, costs);
  CHECK(compressed_of(policy, linked_message_of(256 << 20), 100, 2.6) <= 2);
}

/// What `auto` takes of raw messages' time where it does not pay, by the model.
double time_of_looks(std::size_t size, double ratio) {
  const Costs costs = costs_between_gpus();
  Policy policy;
  policy.configure(false, costs);
  const Subject message = linked_message_of(size);
  compressed_of(policy, message, 100, ratio);
  constexpr int messages = 10000;
  const int looks = compressed_of(policy, message, messages, ratio);
  const double raw = costs.message(linked).at(static_cast<double>(size));
  const double look =
      costs.compressed(linked, *costs.codec_seconds(linked, Codec::mpc, static_cast<double>(size)),
                       static_cast<double>(size) / ratio);
  return 1 + looks * (look / raw - 1) / messages;
}

void looks_are_cheap_where_messages_are_short() {
  for (std::size_t size = 64 << 10; size <= (256 << 20); size *= 2) {
    CHECK(time_of_looks(size, 1.0) < 1.011);
    CHECK(time_of_looks(size, 1.1) < 1.011);
  }
}

void it_looks_again() {
  Policy policy;
  policy.configure(false, link_of(0.4e9));
  const Subject message = message_of();
  CHECK(compressed_of(policy, message, 4000, 1.0) < 100);   // incompressible at first
  CHECK(compressed_of(policy, message, 4000, 4.0) > 2000);  // then a better ratio is found
  CHECK(compressed_of(policy, message, 4000, 1.0) < 200);   // and lost again
}

void decisions_do_not_flutter() {
  Policy policy;
  policy.configure(false, link_of(0.4e9));
  const Subject message = message_of();
  // Between the two limits, what was decided stands: 1.9 comes to 0.926 of raw.
  CHECK(compressed_of(policy, message, 1000, 1.9) < 100);
  CHECK(compressed_of(policy, message, 2000, 2.5) > 1000);
  CHECK(compressed_of(policy, message, 1000, 1.9) == 1000);
}

/// The system gave the processor to others during one of the first looks.
void one_slow_look_stops_nothing() {
  for (const int slow_one : {0, 1, 5}) {
    Policy policy;
    policy.configure(false, link_of(0.4e9));
    const Subject message = message_of();
    for (int i = 0; i < 20; ++i) {
      CHECK(policy.judge(message) == Verdict::compress);
      const std::uint64_t ns = bytes / 2 * (i == slow_one ? 100 : 1);
      policy.encoded(message, bytes / 4, ns);
      policy.decoded(message.path.place, message.codec, message.bytes, ns);
    }
    // One that has become slow for good is found out.
    for (int i = 0; i < 40; ++i) policy.encoded(message, bytes / 4, bytes * 100);
    CHECK(policy.judge(message) == Verdict::ratio);
  }
}

void kinds_of_messages_are_told_apart() {
  Policy policy;
  policy.configure(false, link_of(0.4e9));
  Subject message = message_of();
  CHECK(compressed_of(policy, message, 1000, 1) < 100);
  // Other communicators begin with what all have seen, and go their own way from there.
  Subject other = message_of();
  CHECK(policy.judge(other) == Verdict::ratio);
  for (int i = 0; i < 20; ++i) policy.encoded(other, bytes / 8, bytes / 2);
  CHECK(policy.judge(other) == Verdict::compress);
  CHECK(policy.judge(message) == Verdict::ratio);
  // Other types, codecs and sizes have not been seen yet.
  message.type = ElementType::f64;
  CHECK(policy.judge(message) == Verdict::compress);
  message.type = ElementType::f32;
  message.codec = Codec::szp;
  CHECK(policy.judge(message) == Verdict::compress);
  message.codec = Codec::mpc;
  message.bytes = 1 << 12;
  CHECK(policy.judge(message) == Verdict::compress);
}

/// Chunks by memory of the host grow with the square root of the message; none is cut needlessly.
void chunks_by_the_host_grow_slowly() {
  constexpr std::size_t base = 1 << 20;
  CHECK(host_raw_chunk(64 << 10, base) == base / 2);
  CHECK(host_raw_chunk(1 << 20, base) == base / 2);
  CHECK(host_raw_chunk(32 << 20, base) == 2 * base);
  CHECK(host_raw_chunk(256 << 20, base) == 4 * base);
  CHECK(host_raw_chunk(0, 4096) == 2048);
  // Four fit into a window, unless they would be too short for that.
  CHECK(host_raw_chunk(256 << 20, base, 4 * base) == base);
  CHECK(host_raw_chunk(256 << 20, base, 8 * base / 3) == base / 2);
  CHECK(host_raw_chunk(64 << 20, base, 1) == base / 4);
  CHECK(host_raw_chunk(std::size_t{4} << 30, base, 1) == 8 * base);
  // Payloads of 1.5 MB, but no more chunks than that takes, nor fewer than elsewhere.
  CHECK(windowed_chunk(128 << 20, base, 0.2) == 7 * base);
  CHECK(windowed_chunk(128 << 20, base, 0.9) == 2 * base);
  CHECK(windowed_chunk(std::size_t{2} << 30, base, 0.9) == 8 * base);
  CHECK(windowed_chunk(128 << 20, base, 0) == linked_chunk(128 << 20, base));
  CHECK(windowed_chunk(3 << 20, base, 0.2) == 3 * base);
  CHECK(host_window(0) == 32 * base && host_window(360 * base) == 40 * base);
  CHECK(host_chunk(256 << 20, base) == 16 * base && host_chunk(base, base) == base);
  // No more chunks than a device encodes in one go.
  for (std::size_t bytes = 1 << 20; bytes < std::size_t{1} << 40; bytes *= 2) {
    CHECK((bytes + host_chunk(bytes, 4096) - 1) / host_chunk(bytes, 4096) <= 256);
  }
}

}  // namespace

int main() {
  chunks_by_the_host_grow_slowly();
  the_slowest_stage_counts_in_full();
  chunks_are_the_device_s();
  frames_may_take_another_way();
  frames_between_linked_devices_go_as_messages_do();
  messages_by_pinned_memory_overlap();
  launches_of_linked_devices_count_once();
  force_compresses_always();
  an_unknown_link_is_left_alone();
  the_model_decides();
  what_can_never_pay_is_not_tried();
  a_measured_link_counts_where_nothing_is_told();
  a_fast_link_is_left_alone();
  nothing_is_assumed_of_linked_devices();
  links_between_devices_are_learned();
  large_messages_between_linked_devices_may_pay();
  linked_devices_send_and_receive_at_once();
  looks_are_cheap_where_messages_are_short();
  it_looks_again();
  decisions_do_not_flutter();
  one_slow_look_stops_nothing();
  kinds_of_messages_are_told_apart();
  return check::failures != 0;
}
