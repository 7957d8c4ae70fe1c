#include "coll/selection.hpp"

namespace mpress::engine {

void Selection::choose(AlgorithmId first) {
  chosen_ = first_that_applies(call, first);
  while (is_offered() && !attempts().next()) chosen_ = first_that_applies(call, next(chosen_));
}

bool Selection::conclude(Answer answer) {
  attempts().note(answer);
  if (answer == Answer::accepted) return true;
  choose(next(chosen_));
  return false;
}

void Selection::encode() {
  call.encodes = true;
  choose(next(chosen_));
}

}  // namespace mpress::engine
