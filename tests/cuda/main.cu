// twins MODE SPEC f32|f64 [SEED]: host and CUDA twins side by side.
//   check   bit for bit, on generated data of many sizes
//   sums    the same of sums of payloads (szp)
//   quick   both on a few, for sanitizers
//   replay  in a CUDA graph
//   large   more than 2^32 elements
#include "cuda/twins.hpp"

int main(int argc, char** argv) {
  using namespace mpress;
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string type_name = argc > 3 ? argv[3] : "";
  if (argc < 4 || (type_name != "f32" && type_name != "f64")) {
    std::printf("usage: twins check|sums|quick|replay|large SPEC f32|f64 [SEED]\n");
    return 2;
  }
  const ElementType type = type_name == "f64" ? ElementType::f64 : ElementType::f32;
  Spec spec;
  std::string error;
  if (!parse_spec(argv[2], spec, error) || !validate_spec(spec, type, error)) {
    std::printf("%s\n", error.c_str());
    return 2;
  }
  const std::uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  const bool quick = mode == "quick";
  int status = 0;
  if (mode == "check" || quick) {
    const auto run = type == ElementType::f32 ? test::check<float> : test::check<double>;
    status |= run(spec, type, seed, quick);
  }
  if (mode == "sums" || (quick && spec.codec == Codec::szp)) {
    const auto run = type == ElementType::f32 ? test::sums<float> : test::sums<double>;
    status |= run(spec, type, seed, quick);
  }
  if (mode == "check" || mode == "sums" || quick) return status;
  if (mode == "replay") return test::replay(spec, type);
  if (mode == "large") return test::large(spec, type);
  std::printf("unknown mode '%s'\n", mode.c_str());
  return 2;
}
