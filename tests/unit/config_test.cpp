// Settings: the grammar of specs, numbers with units, and what is refused, by name.

#include "config/config.hpp"

#include <cstdlib>

#include "check.hpp"
#include "config/knobs.hpp"

using namespace mpress;

namespace {

void specs_that_parse() {
  for (const char* text : {"none", "auto", "mpc", "mpc:dim=1", "mpc:dim=32", "zfp:2.25", "zfp:16",
                           "zfp:64", "szp:abs=0.001", "szp:rel=1e-05", "szp:abs=1,mode=dense"}) {
    Spec spec, again;
    std::string error;
    CHECK(parse_spec(text, spec, error));
    CHECK(parse_spec(to_string(spec), again, error) && again == spec);
  }
  Spec spec, other;
  std::string error;
  CHECK(parse_spec("szp:mode=dense,rel=0.5", spec, error) && spec.mode == Mode::dense);
  CHECK(parse_spec("szp:abs=1,mode=fast", spec, error) && parse_spec("szp:abs=1", other, error));
  CHECK(spec == other);
}

void specs_that_do_not() {
  for (const char* text : {"",
                           "lz4",
                           "none:1",
                           "auto:x",
                           "mpc:",
                           "mpc:dim=0",
                           "mpc:dim=33",
                           "mpc:dim=1.5",
                           "mpc:stride=2",
                           "zfp",
                           "zfp:",
                           "zfp:2",
                           "zfp:65",
                           "zfp:nan",
                           "zfp:inf",
                           "zfp:-8",
                           "zfp:8x",
                           "szp",
                           "szp:",
                           "szp:1e-3",
                           "szp:abs=0",
                           "szp:abs=-1",
                           "szp:abs=nan",
                           "szp:abs=inf",
                           "szp:abs=1e999",
                           "szp:abs=1,rel=1",
                           "szp:abs=1,mode=slow",
                           "szp:mode=fast",
                           "szp:abs=1,mode=fast,mode=fast",
                           "szp:abs=1,",
                           "SZP:abs=1",
                           " mpc"}) {
    Spec spec;
    spec.dim = 7;
    std::string error;
    const bool parsed = parse_spec(text, spec, error);
    if (parsed) std::fprintf(stderr, "accepted: '%s'\n", text);
    CHECK(!parsed && spec.dim == 7);
    CHECK(error.find(std::string("'") + text + "'") != std::string::npos);
  }
}

void rates_by_type() {
  Spec spec;
  std::string error;
  CHECK(parse_spec("zfp:40", spec, error));
  CHECK(!validate_spec(spec, ElementType::f32, error) &&
        validate_spec(spec, ElementType::f64, error));
  CHECK(parse_spec("zfp:2.5", spec, error));
  CHECK(validate_spec(spec, ElementType::f32, error) &&
        !validate_spec(spec, ElementType::f64, error));
  CHECK(zfp_block_bits(2.5, ElementType::f32) == 10 && zfp_block_bits(16, ElementType::f32) == 64);
  CHECK(zfp_effective_rate(8.1, ElementType::f64) == 8.0);
}

void numbers() {
  std::size_t bytes = 0;
  CHECK(parse_bytes("0", bytes) && bytes == 0);
  CHECK(parse_bytes("64K", bytes) && bytes == 65536);
  CHECK(parse_bytes("3m", bytes) && bytes == 3u << 20);
  CHECK(parse_bytes("2G", bytes) && bytes == std::size_t{2} << 30);
  for (const char* text :
       {"", "K", "-1", "1.5M", "64KB", "1T", "99999999999999999999", "20000000000G"}) {
    CHECK(!parse_bytes(text, bytes));
  }
  double rate = 0;
  CHECK(parse_rate("1Gbit", rate) && rate == 125e6);
  CHECK(parse_rate("2.5Mbit", rate) && rate == 312500);
  CHECK(parse_rate("1000", rate) && rate == 1000);
  for (const char* text : {"", "0", "-1Gbit", "1gbit", "1 Gbit", "nan", "inf", "1GB"}) {
    CHECK(!parse_rate(text, rate));
  }
}

bool load_with(const char* name, const char* value, std::string& error) {
  ::setenv(name, value, 1);
  Config config;
  const bool loaded = load_config(config, error);
  ::unsetenv(name);
  return loaded;
}

void environment() {
  std::string error;
  CHECK(!load_with("MPRESS_CODE", "mpc", error));
  CHECK(error.find("MPRESS_CODE;") != std::string::npos &&
        error.find("MPRESS_CODEC?") != std::string::npos);
  const struct {
    const char* name;
    const char* bad;
    const char* good;
  } cases[] = {
      {"MPRESS_CODEC", "gzip", "zfp:8"},
      {"MPRESS_FORCE", "yes", "1"},
      {"MPRESS_THRESHOLD", "many", "64K"},
      {"MPRESS_LINK", "infiniband", "mpi"},
      {"MPRESS_GPU", "rocm", "off"},
      {"MPRESS_GPU", "libmpress_cuda.so", "./libmpress_cuda.so"},
      {"MPRESS_LINK_RATE", "fast", "10Gbit"},
      {"MPRESS_LEARN", "1", "all"},
      {"MPRESS_JOB", "42", "0123456789abcdef0123456789ABCDEF"},
      {"MPRESS_TRACE", "all", "256K"},
      {"MPRESS_ISA", "sse", "portable"},
      {"MPRESS_DISABLE", "2", "0"},
      {"MPRESS_DISABLE_DERIVED", "yes", "1"},
      {"MPRESS_DISABLE_ZERO_COPY", "no", "1"},
  };
  for (const auto& c : cases) {
    CHECK(!load_with(c.name, c.bad, error));
    CHECK(error.find(c.name) != std::string::npos && error.find(c.bad) != std::string::npos);
    CHECK(load_with(c.name, c.good, error));
    CHECK(load_with(c.name, "", error));  // set to nothing is not set
  }
  // A family that has no code must not be switched off in vain.
  CHECK(!load_with("MPRESS_DISABLE_BARRIER", "1", error));
  ::setenv("MPRESS_DISABLE_SENDRECV", "1", 1);
  Config config;
  CHECK(load_config(config, error) && config.is_disabled(Family::sendrecv));
  CHECK(!config.is_disabled(Family::p2p) && !config.is_disabled(Family::derived));
  CHECK(agreed_settings(config) != agreed_settings(Config{}));
  ::unsetenv("MPRESS_DISABLE_SENDRECV");
  // Ranks with and without a GPU run together.
  CHECK(Config{}.gpu == "cuda");
  ::setenv("MPRESS_GPU", "off", 1);
  Config without;
  CHECK(load_config(without, error) && without.gpu == "off");
  CHECK(agreed_settings(without) == agreed_settings(Config{}));
  ::unsetenv("MPRESS_GPU");
  CHECK(std::string(nearest_knob("MPRESS_TRESHOLD")) == "MPRESS_THRESHOLD");
}

}  // namespace

int main() {
  specs_that_parse();
  specs_that_do_not();
  rates_by_type();
  numbers();
  environment();
  return check::failures != 0;
}
