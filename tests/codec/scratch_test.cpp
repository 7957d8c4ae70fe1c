// Codecs on small stacks: no call needs more than a few KB, on any instruction set; and their
// scratch memory is there for many threads at a time, and where the system has no more.
#include "codec/scratch.hpp"

#include <sys/resource.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../mpi/painted.h"
#include "codec/codec.hpp"
#include "codec/isa.hpp"
#include "codec/szp/format.hpp"
#include "support.hpp"

namespace {

using mpress::Codec;
using mpress::ElementType;
using mpress::Isa;
using mpress::Spec;
using mpress::codec::Combine;
using mpress::codec::Scratch;
using mpress::codec::Status;

constexpr std::size_t most_stack = 5 << 10;

Spec spec_of(const char* text) {
  Spec spec;
  std::string error;
  CHECK(mpress::parse_spec(text, spec, error), "%s: %s", text, error.c_str());
  return spec;
}

/// Elements of one unit and more, smooth but for some that are exceptional.
std::vector<unsigned char> elements_of(ElementType type, std::size_t count) {
  std::vector<unsigned char> bytes(count * element_size(type));
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::sin(0.01 * static_cast<double>(i)) + (i % 5000 == 4000 ? 1e30 : 0);
    const auto single = static_cast<float>(x);
    if (type == ElementType::f32)
      std::memcpy(&bytes[4 * i], &single, 4);
    else
      std::memcpy(&bytes[8 * i], &x, 8);
  }
  return bytes;
}

/// Everything that the codec layer does with these elements.
struct Calls {
  Spec spec;
  ElementType type;
  std::size_t count;
  std::vector<unsigned char> in = elements_of(type, count);
  std::vector<unsigned char> payload =
      std::vector<unsigned char>(mpress::codec::max_payload_bytes(spec, type, count));
  std::vector<unsigned char> sum = payload;
  std::vector<unsigned char> out = in;
  bool is_right = true;

  void make() {
    using namespace mpress::codec;
    const Spec resolved = resolve(spec, type, in.data(), count);
    const std::size_t bytes = encode(resolved, type, in.data(), count, payload.data());
    is_right &= decode(resolved, type, payload.data(), bytes, out.data(), count) == Status::ok;
    is_right &= resolved.codec != Codec::mpc || out == in;
    is_right &= decode(resolved, type, payload.data(), bytes, out.data(), count, Combine::sum) ==
                Status::ok;
    const void* const inputs[] = {in.data(), out.data(), in.data()};
    combine_all(Combine::sum, type, inputs, out.data(), count, true);
    combine_in_any_order(Combine::sum, type, inputs, out.data(), count);
    if (resolved.codec != Codec::szp) return;
    combine_in_any_order(Combine::sum, type, inputs, out.data(), count, grid_of(resolved));
    const Summand summands[] = {{payload.data(), bytes}, {payload.data(), bytes}};
    std::size_t written = 0;
    const Status status = szp::add(type, summands, count, sum.data(), written, {}, out.data());
    is_right &= status == Status::ok || status == Status::inexact;
  }
};

const char* const specs[] = {"mpc",
                             "mpc:dim=3",
                             "zfp:16",
                             "zfp:9.5",
                             "szp:abs=1e-3",
                             "szp:rel=1e-4",
                             "szp:abs=1e-3,mode=dense"};

void test_stacks() {
  const std::size_t empty = stack_of([](void*) {}, nullptr);
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (!mpress::set_host_isa(isa)) continue;
    for (const char* text : specs) {
      for (const ElementType type : {ElementType::f32, ElementType::f64}) {
        for (const std::size_t count :
             {std::size_t{1}, std::size_t{100}, std::size_t{3000}, std::size_t{10000}}) {
          Calls calls{spec_of(text), type, count};
          const auto make = [](void* it) { static_cast<Calls*>(it)->make(); };
          const std::size_t need = stack_of(make, &calls) - empty;
          CHECK(calls.is_right, "%s", text);
          CHECK(need <= most_stack, "%s, f%zu, %zu elements, %s: %zu bytes of stack", text,
                8 * element_size(type), count, isa_name(isa), need);
        }
      }
    }
  }
}

/// More leases than there are blocks: all are served, and no two at a time have the same.
void test_many_threads() {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 100; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 20; ++i) {
        const Scratch scratch;
        auto& mark = scratch.as<volatile int>();
        mark = t;
        std::this_thread::yield();
        if (mark != t) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0, "%d leases of a block that another thread had", wrong.load());
  const Scratch first, second;
  CHECK(first.data() != second.data(), "two leases of one thread");
}

/// The system has no more memory: calls take turns. To be called before any other has leased.
void test_out_of_memory() {
  std::vector<Calls> calls;
  for (const char* text : specs) calls.push_back({spec_of(text), ElementType::f64, 3000});
  std::vector<std::thread> threads;
  std::atomic<bool> may_begin = false;
  for (Calls& one : calls) {
    threads.emplace_back([&one, &may_begin] {
      may_begin.wait(false);
      for (int i = 0; i < 50; ++i) one.make();
    });
  }
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0, "getrlimit");
  const rlimit none{0, limit.rlim_max};
  CHECK(setrlimit(RLIMIT_AS, &none) == 0, "setrlimit");
  may_begin = true;
  may_begin.notify_all();
  for (std::thread& thread : threads) thread.join();
  const auto block = [] { return Scratch().data(); };
  CHECK(block() == block(), "there was memory");
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  for (const Calls& one : calls) CHECK(one.is_right, "%s", to_string(one.spec).c_str());
}

}  // namespace

int main() {
  test_out_of_memory();
  test_many_threads();
  test_stacks();
  return failures != 0;
}
