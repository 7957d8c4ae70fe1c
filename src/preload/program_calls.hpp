// Entry points as the front calls them: with machine words (front/words.hpp), each in the scope of
// a call of the program's, at whose end its error handlers run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "mpi/error_handlers.hpp"

namespace mpress::preload {

using Word = std::intptr_t;

/// `targets`: an array of functions of as many integers and pointers; `call`: which of them.
template <auto& targets, std::size_t call, typename Indices>
struct Entry;
template <auto& targets, std::size_t call, std::size_t... i>
struct Entry<targets, call, std::index_sequence<i...>> {
  template <std::size_t>
  using Each = Word;

  static Word enter(Each<i>... arguments) {
    mpi::ProgramCall call_of_program;
    const auto target = reinterpret_cast<Word (*)(Each<i>...)>(targets[call]);
    const Word result = target(arguments...);
    call_of_program.end();
    return result;
  }
};

template <auto& targets, std::size_t call, std::size_t words>
void* entry() {
  return reinterpret_cast<void*>(&Entry<targets, call, std::make_index_sequence<words>>::enter);
}

}  // namespace mpress::preload
