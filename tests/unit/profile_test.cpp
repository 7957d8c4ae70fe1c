// Profiles: their text, and the costs that follow from one.

#include "policy/profile.hpp"

#include <string>

#include "check.hpp"
#include "near.hpp"
#include "policy/costs.hpp"

using namespace mpress;
using namespace mpress::policy;
using check::is_near;

namespace {

constexpr const char* text =
    "mpress profile 1\n"
    "# a comment\n"
    "hardware = A processor; a GPU = another\n"
    "date = 2026-01-02\n"
    "\n"
    "[codec mpc, device]\n"
    "encode = 1024:1e-05 1048576:2e-05\n"
    "decode = 1024:1.5e-05\n"
    "[link same-host, device]\n"
    "mpi = MPICH 5.0.0\r\n"
    "transport = A=b,c D=e\n"
    "message = 1024:1e-05  2048:2e-05\n"
    "chunk = 2097152\n"
    "[link linked, device]\n"
    "message = 1024:2e-06\n"
    "[link other-host, host]\n"
    "mpi = MPICH 5.0.0\n"
    "message = 1024:1e-03";

void profiles_are_read() {
  Profile profile;
  std::string error;
  CHECK(parse_profile(text, profile, error));
  CHECK(profile.hardware == "A processor; a GPU = another" && profile.date == "2026-01-02");
  CHECK(profile.links.size() == 3 && profile.links[0].transport == "A=b,c D=e");
  CHECK(profile.find(Peer::same_host, Place::device, "MPICH 5.0.0", "A=b,c D=e"));
  CHECK(!profile.find(Peer::same_host, Place::device, "MPICH 5.0.0", ""));
  CHECK(!profile.find(Peer::same_host, Place::host, "MPICH 5.0.0", "A=b,c D=e"));
  CHECK(profile.find(Peer::linked, Place::device, "any", "whatever"));

  Costs costs = default_costs();
  costs_of(profile, "MPICH 5.0.0", {"", ""}, costs);
  CHECK(is_near(costs.message({Place::host, Peer::other_host}).at(1024), 1e-3));
  CHECK(!costs.message({Place::host, Peer::same_host}));
  const Costs defaults = default_costs();
  const Path device{Place::device, Peer::same_host};
  CHECK(is_near(costs.message(device).at(1e6), defaults.message(device).at(1e6)));
  CHECK(is_near(costs.message({Place::device, Peer::linked}).at(1024), 2e-6));
  CHECK(is_near(costs.codec_seconds(device, Codec::mpc, 1024)->encode, 1e-5));
  CHECK(is_near(costs.codec_seconds(device, Codec::mpc, 1024)->decode, 1.5e-5));
  CHECK(costs.codec_seconds(device, Codec::szp, 1024).has_value());

  const auto chunk = [&](Peer peer) { return costs.device_chunks[static_cast<std::size_t>(peer)]; };
  costs.device_chunks.fill(1 << 20);
  costs_of(profile, "MPICH 5.0.0", {"", ""}, costs);  // another transport
  CHECK(chunk(Peer::same_host) == 1 << 20);
  costs_of(profile, "MPICH 5.0.0", {"", "A=b,c D=e"}, costs);
  CHECK(chunk(Peer::same_host) == 2 << 20);
  CHECK(chunk(Peer::other_host) == 1 << 20 && chunk(Peer::linked) == 1 << 20);
  CHECK(!costs.codec_seconds({Place::host, Peer::same_host}, Codec::mpc, 1024));
}

void profiles_that_make_no_sense_are_refused() {
  const std::string head = "mpress profile 1\n";
  for (const char* wrong :
       {"[codec none, host]",
        "[codec mpc, gpu]",
        "[codec mpc host]",
        "[link near, host]",
        "[links same-host, host]",
        "[codec mpc, host",
        "encode = 1:1",
        "speed = 1",
        "[codec mpc, host]\nencode =",
        "[codec mpc, host]\nencode = 1:1 1:2",
        "[codec mpc, host]\nencode = 2:1 1:2",
        "[codec mpc, host]\nencode = 1:-1",
        "[codec mpc, host]\nencode = 1:nan",
        "[codec mpc, host]\nencode = 1:1s",
        "[codec mpc, host]\nencode = 0:1",
        "[codec mpc, host]\nencode = 5",
        "[codec mpc, host]\nmessage = 1:1",
        "[link same-host, host]\nencode = 1:1",
        "date",
        "[codec mpc, host]\nencode = 1:1",
        "[link same-host, host]\nmpi = x",
        "[link same-host, host]\nmessage = 1:1",
        "[link linked, host]\nmessage = 1:1",
        "[link linked, device]\nmpi = x",
        "[link linked, device]",
        "[link linked, device]\nmessage = 1:1\nchunk = 4096",
        "[link same-host, host]\nmpi = x\nmessage = 1:1\nchunk = 4096",
        "[link same-host, device]\nmpi = x\nmessage = 1:1\nchunk = 0",
        "[link same-host, device]\nmpi = x\nmessage = 1:1\nchunk = 1M",
        "[link same-host, device]\nmpi = x\nmessage = 1:1\nchunk = 5000",
        "[link same-host, device]\nmpi = x\nmessage = 1:1\nchunk = -4096",
        "[link same-host, device]\nmpi = x\nmessage = 1:1\nchunk = 2147483648",
        "[codec mpc, host]\nencode = 1:1\n[codec szp, host]\nencode = 1:1\ndecode = 1:1"}) {
    Profile profile;
    std::string error;
    CHECK(!parse_profile(head + wrong, profile, error));
    CHECK(error.rfind("line ", 0) == 0 && error.find("expected") != std::string::npos);
  }
  Profile profile;
  std::string error;
  CHECK(!parse_profile("", profile, error) && !parse_profile("mpress profile 2\n", profile, error));
}

}  // namespace

int main() {
  profiles_are_read();
  profiles_that_make_no_sense_are_refused();
  return check::failures != 0;
}
