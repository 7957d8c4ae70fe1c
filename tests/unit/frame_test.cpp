// The frame: what is written is read back, what is spoilt is noticed, sizes tell frames from data.

#include "wire/frame.hpp"

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"
#include "codec/checksum.hpp"

using namespace mpress;
using namespace mpress::wire;

namespace {

Spec spec_of(const char* text) {
  Spec spec;
  std::string error;
  CHECK(parse_spec(text, spec, error));
  return spec;
}

Header header_of(const char* spec, ElementType type, std::uint64_t count, std::uint64_t payload) {
  Header header;
  header.spec = spec_of(spec);
  header.type = type;
  header.count = count;
  header.payload_bytes = payload;
  return header;
}

std::vector<std::uint8_t> message_of(const Header& header, const Nonce& nonce) {
  std::vector<std::uint8_t> message(frame_bytes(header.payload_bytes), 0xA5);
  write_header(header, nonce, message.data());
  return message;
}

void round_trips() {
  const Nonce nonce = make_nonce("a job");
  for (const char* spec : {"mpc:dim=1", "mpc:dim=32", "zfp:8", "zfp:12.5", "szp:abs=1e-3",
                           "szp:abs=0.25,mode=dense"}) {
    for (ElementType type : {ElementType::f32, ElementType::f64}) {
      const Header sent = header_of(spec, type, 100000, 1234);
      const auto message = message_of(sent, nonce);
      Header got;
      CHECK(read_header(message.data(), message.size(), nonce, got) == Parse::frame);
      CHECK(got.spec == sent.spec);
      CHECK(got.type == type && got.count == 100000 && got.payload_bytes == 1234);
    }
  }
}

void chunked_headers_round_trip() {
  const Nonce nonce = make_nonce("a job");
  for (ElementType type : {ElementType::f32, ElementType::f64}) {
    Header sent = header_of("zfp:8", type, 1000003, 0);
    sent.chunk_bytes = 65536;
    sent.route = 0xFEDCBA9801234567;
    const auto message = message_of(sent, nonce);
    Header got;
    CHECK(read_header(message.data(), message.size(), nonce, got) == Parse::frame);
    CHECK(announces_chunks(message.data(), nonce));
    CHECK(got.chunk_bytes == 65536 && got.route == 0xFEDCBA9801234567 && got.payload_bytes == 0);
    CHECK(got.chunks() == (1000003 * element_size(type) + 65535) / 65536);
    CHECK(got.route != 0 && !got.may_be_elements);
    sent.may_be_elements = true;
    const auto kept = message_of(sent, nonce);
    CHECK(read_header(kept.data(), kept.size(), nonce, got) == Parse::frame && got.may_be_elements);
    sent.may_be_elements = false;
    sent.route = ~std::uint64_t{0};
    const auto linked = message_of(sent, nonce);
    CHECK(read_header(linked.data(), linked.size(), nonce, got) == Parse::frame);
    CHECK(got.route == ~std::uint64_t{0} && got.chunk_bytes == 65536);
    // A message that comes by the peer link comes in chunks.
    Header whole = header_of("zfp:8", type, 1000003, 1234);
    whole.route = 1;
    const auto none = message_of(whole, nonce);
    CHECK(read_header(none.data(), none.size(), nonce, got) == Parse::corrupt);
    whole.route = 0;
    whole.may_be_elements = true;
    const auto flagged = message_of(whole, nonce);
    CHECK(read_header(flagged.data(), flagged.size(), nonce, got) == Parse::corrupt);
    // A payload here and in chunks; chunks that cut elements; chunks too large for MPI's counts.
    for (const auto& [chunk_bytes, payload] :
         {std::pair<std::uint32_t, std::uint64_t>{65536, 100}, {65532, 0}, {1u << 31, 0}}) {
      sent.chunk_bytes = chunk_bytes;
      sent.payload_bytes = payload;
      const auto lie = message_of(sent, nonce);
      CHECK(read_header(lie.data(), lie.size(), nonce, got) == Parse::corrupt);
    }
  }
}

void sizes() {
  std::size_t last = 0;
  for (std::size_t payload = 0; payload < 3000; ++payload) {
    const std::size_t bytes = frame_bytes(payload);
    CHECK(bytes >= header_bytes + payload && bytes < header_bytes + payload + 256);
    CHECK(bytes % sizeof(double) == 0 && bytes >= last && is_frame_size(bytes));
    last = bytes;
  }
  std::size_t alike = 0;
  for (std::size_t bytes = 0; bytes < 1 << 16; ++bytes) alike += is_frame_size(bytes);
  CHECK(alike <= (1u << 16) / 256);
  CHECK(!is_frame_size(0) && !is_frame_size(64) && is_frame_size(min_frame_bytes));
  // What programs like to send: powers of two and products of small ones, and their neighbours.
  for (std::size_t base = 64; base < 1 << 20; base *= 2) {
    for (std::size_t factor : {1, 3, 5, 7, 9, 15}) {
      for (std::size_t bytes : {sizeof(float), sizeof(double)}) {
        for (std::size_t more : {0, 1, 2, 3, 4}) {
          CHECK(!is_frame_size((base * factor + more) * bytes));
          CHECK(!is_frame_size((base * factor - more) * bytes));
        }
      }
    }
  }
}

void every_flipped_bit_is_noticed() {
  const Nonce nonce = make_nonce("a job");
  const auto message = message_of(header_of("szp:abs=1e-3", ElementType::f32, 5000, 700), nonce);
  for (std::size_t bit = 0; bit < 8 * header_bytes; ++bit) {
    auto spoilt = message;
    spoilt[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    Header got;
    const Parse parse = read_header(spoilt.data(), spoilt.size(), nonce, got);
    CHECK(parse == (bit < 128 ? Parse::raw : Parse::corrupt));
  }
}

/// Headers with a right checksum that contradict themselves.
void lies() {
  const Nonce nonce = make_nonce("a job");
  struct Lie {
    std::size_t at;
    std::uint8_t value;
  };
  for (const Lie lie : {Lie{16, 9}, Lie{18, 0}, Lie{18, 4}, Lie{18, 255}, Lie{19, 0}, Lie{19, 3},
                        Lie{20, 2}, Lie{39, 1}, Lie{31, 255}, Lie{32, 1}, Lie{24, 0}}) {
    auto message = message_of(header_of("zfp:8", ElementType::f32, 256, 700), nonce);
    message[lie.at] = lie.value;
    if (lie.at == 24) std::memset(&message[24], 0, 8);
    if (lie.at == 32) std::memset(&message[32], 255, 8);
    const std::uint32_t sum = checksum(message.data(), 60);
    std::memcpy(&message[60], &sum, 4);
    Header got;
    CHECK(read_header(message.data(), message.size(), nonce, got) == Parse::corrupt);
  }
}

void raw_data_is_raw() {
  const Nonce nonce = make_nonce("a job");
  std::mt19937 random(1);
  Header got;
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::uint8_t> message(168 + 256 * (random() % 4));
    for (auto& byte : message) byte = static_cast<std::uint8_t>(random());
    CHECK(read_header(message.data(), message.size(), nonce, got) == Parse::raw);
  }
  // Another job's frame, or one of another size, is data.
  const auto message = message_of(header_of("zfp:8", ElementType::f32, 5000, 700), nonce);
  CHECK(read_header(message.data(), message.size(), make_nonce("another job"), got) == Parse::raw);
  CHECK(read_header(message.data(), message.size() - 16, nonce, got) == Parse::raw);
  CHECK(read_header(message.data(), message.size() - 256, nonce, got) == Parse::cut);
  CHECK(make_nonce("a") != make_nonce("b") && make_nonce("") != make_nonce("a"));
}

}  // namespace

int main() {
  round_trips();
  chunked_headers_round_trip();
  sizes();
  every_flipped_bit_is_noticed();
  lies();
  raw_data_is_raw();
  return check::failures != 0;
}
