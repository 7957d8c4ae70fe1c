#include "policy/profile.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "codec/float_environment.hpp"

namespace mpress::policy {
namespace {

constexpr std::string_view first_line = "mpress profile 1";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Takes what lies before `separator` off `text`; all of it where there is none.
std::string_view next(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(part);
}

bool read_number(std::string_view text, double& number) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  return code == std::errc{} && stop == end && std::isfinite(number) && number >= 0;
}

/// BYTES:SECONDS ..., ascending.
bool read_curve(std::string_view text, Curve& curve) {
  std::vector<Curve::Point> points;
  while (!text.empty()) {
    std::string_view pair = next(text, ' ');
    if (pair.empty()) continue;
    Curve::Point point{};
    if (!read_number(next(pair, ':'), point.bytes) || !read_number(pair, point.seconds)) {
      return false;
    }
    if (point.seconds <= 0 || point.bytes < 1) return false;
    if (!points.empty() && point.bytes <= points.back().bytes) return false;
    points.push_back(point);
  }
  if (points.empty()) return false;
  curve = Curve(std::move(points));
  return true;
}

/// As MPRESS_CHUNK, but that a profile cannot switch chunks off.
bool read_chunk(std::string_view text, std::size_t& bytes) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, bytes);
  return code == std::errc{} && stop == end && bytes > 0 && bytes % 4096 == 0 &&
         bytes <= (std::size_t{1} << 30);
}

template <std::size_t count>
bool read_name(std::string_view text, const std::array<const char*, count>& names,
               std::size_t& index) {
  index = static_cast<std::size_t>(std::ranges::find(names, text) - names.begin());
  return index < count;
}

class Parser {
 public:
  explicit Parser(Profile& profile) : profile_(profile) {}

  /// Null, or what was expected.
  const char* take(std::string_view line) {
    if (line.empty() || line.front() == '#') return nullptr;
    if (line.front() == '[') return open(line);
    if (line.find('=') == std::string_view::npos) return "NAME = VALUE";
    std::string_view value = line;
    const std::string_view key = next(value, '=');
    return assign(key, trimmed(value));
  }

  /// Null, or what the section that ends here lacks.
  const char* close() {
    if (!is_link_) {
      const bool whole = !times_ || (times_->encode && times_->decode);
      return whole ? nullptr : "encode = and decode = in the section before";
    }
    const Profile::Link& link = profile_.links.back();
    if (has_own_link(link.peer)) {
      return link.message ? nullptr : "message = in the section before";
    }
    const bool whole = link.message && !link.mpi.empty();
    return whole ? nullptr : "mpi = and message = in the section before";
  }

 private:
  const char* open(std::string_view line) {
    constexpr auto expected = "[codec NAME, PLACE] or [link PEER, PLACE]";
    if (line.back() != ']') return expected;
    std::string_view rest = line.substr(1, line.size() - 2);
    const std::string_view kind = next(rest, ' ');
    const std::string_view name = next(rest, ',');
    std::size_t first = 0, place = 0;
    if (!read_name(trimmed(rest), place_names, place)) return expected;
    if (const char* lacking = close()) return lacking;
    times_ = nullptr;
    is_link_ = kind == "link";
    if (is_link_) {
      if (!read_name(name, peer_names, first)) return expected;
      const auto peer = static_cast<Peer>(first);
      if (has_own_link(peer) && static_cast<Place>(place) != Place::device) {
        return "[link PEER, device], as it is a link between GPUs";
      }
      profile_.links.push_back({peer, static_cast<Place>(place), {}, {}, {}, 0});
      return nullptr;
    }
    if (kind != "codec" || !read_name(name, codec_names, first) || first == 0) return expected;
    times_ = &profile_.codecs[first][place];
    return nullptr;
  }

  const char* assign(std::string_view key, std::string_view value) {
    constexpr auto curve = "BYTES:SECONDS ..., by ascending size";
    if (times_) {
      if (key == "encode") return read_curve(value, times_->encode) ? nullptr : curve;
      if (key == "decode") return read_curve(value, times_->decode) ? nullptr : curve;
      return "encode = or decode =";
    }
    if (is_link_) {
      Profile::Link& link = profile_.links.back();
      if (key == "message") return read_curve(value, link.message) ? nullptr : curve;
      if (key == "crowding") {
        return read_number(value, link.crowding) && link.crowding >= 1 ? nullptr
                                                                       : "a number of at least 1";
      }
      if (has_own_link(link.peer)) return "message = or crowding =";
      if (key == "mpi") return link.mpi = value, nullptr;
      if (key == "transport") return link.transport = value, nullptr;
      if (link.place == Place::host) return "mpi =, transport =, message = or crowding =";
      if (key == "chunk") {
        return read_chunk(value, link.chunk) ? nullptr : "BYTES, a multiple of 4096 up to 1 GiB";
      }
      return "mpi =, transport =, message =, chunk = or crowding =";
    }
    if (key == "hardware") return profile_.hardware = value, nullptr;
    if (key == "date") return profile_.date = value, nullptr;
    return "hardware =, date =, or a section";
  }

  Profile& profile_;
  CodecTimes* times_ = nullptr;
  bool is_link_ = false;
};

}  // namespace

const Profile::Link* Profile::find(Peer peer, Place place, const std::string& mpi,
                                   const std::string& transport) const {
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& link) {
    const bool is_of_mpi = link.mpi == mpi && link.transport == transport;
    return link.peer == peer && link.place == place && (has_own_link(peer) || is_of_mpi) &&
           link.message;
  });
  return found != links.end() ? &*found : nullptr;
}

bool parse_profile(std::string_view text, Profile& profile, std::string& error) {
  profile = {};
  if (next(text, '\n') != first_line) {
    error = "line 1: expected '" + std::string(first_line) + "'";
    return false;
  }
  Parser parser(profile);
  int line = 2;
  const char* expected = nullptr;
  compute([&] {
    for (; !text.empty() && !expected; ++line) expected = parser.take(next(text, '\n'));
    if (!expected) expected = parser.close();
  });
  if (!expected) return true;
  error = "line " + std::to_string(line - 1) + ": expected " + expected;
  return false;
}

}  // namespace mpress::policy
