#include "mpi/error_handlers.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "mpi/calls/imports.hpp"
#include "mpi/objects/immortal.hpp"

namespace mpress::mpi {
namespace {

/// Arguments beyond the standard's two, which are integers and pointers, go on as words.
using Word = std::intptr_t;

/// Functions with which MPI calls the handlers for one kind of object.
template <typename Object>
class Places {
 public:
  using Handler = ErrorHandler<Object>;

  static Handler* find(Handler* handler) {
    if (!handler) return handler;
    for (std::size_t i = 0; i < count; ++i) {
      Handler* there = nullptr;
      if (handlers[i].compare_exchange_strong(there, handler) || there == handler) {
        return reinterpret_cast<Handler*>(functions[i]);
      }
    }
    return handler;
  }

 private:
  using Function = void(Object*, int*, Word, Word, Word, Word);
  static constexpr std::size_t count = 32;  ///< a program has one or two

  template <std::size_t i>
  static void note(Object* object, int* code, Word c, Word d, Word e, Word f) {
    Handler* const handler = handlers[i].load();
    const bool is_noted = ErrorNotes::add(
        *code, [=, on = *object, given = *code]() mutable { handler(&on, &given, c, d, e, f); });
    if (!is_noted) handler(object, code, c, d, e, f);
  }

  template <std::size_t... i>
  static constexpr std::array<Function*, count> all(std::index_sequence<i...>) {
    return {&note<i>...};
  }

  static inline std::array<std::atomic<Handler*>, count> handlers{};
  static constexpr std::array<Function*, count> functions = all(std::make_index_sequence<count>());
};

/// MPICH's binding for C++ makes handlers as C does, and then says that MPI is to call them with
/// objects of C++'s in the place of handles.
bool may_be_of_cxx() {
  bool is_found = false;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        for_each_import(*info, [found](const char* name) {
          if (std::strstr(name, "Errhandler_set_cxx")) *static_cast<bool*>(found) = true;
        });
        return 0;
      },
      &is_found);
  return is_found;
}

/// Errors that belong to no call.
struct Later {
  std::mutex mutex;
  std::deque<std::function<void()>> raises;
};
Immortal<Later> later;

}  // namespace

ErrorHandler<MPI_Comm>* noting_on_comm(ErrorHandler<MPI_Comm>* handler) {
  return may_be_of_cxx() ? handler : Places<MPI_Comm>::find(handler);
}

ErrorHandler<MPI_Win>* noting_on_win(ErrorHandler<MPI_Win>* handler) {
  return may_be_of_cxx() ? handler : Places<MPI_Win>::find(handler);
}

ErrorHandler<MPI_File>* noting_on_file(ErrorHandler<MPI_File>* handler) {
  return may_be_of_cxx() ? handler : Places<MPI_File>::find(handler);
}

void raise_later(std::function<void()> raise) {
  const std::lock_guard lock(later->mutex);
  later->raises.push_back(std::move(raise));
  ErrorNotes::has_later.store(true, std::memory_order_relaxed);
}

void raise_now() {
  while (const auto raise = ErrorNotes::take_later()) raise();
}

std::function<void()> ErrorNotes::take_later() {
  if (!has_later.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(later->mutex);
  if (later->raises.empty()) return {};
  std::function<void()> raise = std::move(later->raises.front());
  later->raises.pop_front();
  has_later.store(!later->raises.empty(), std::memory_order_relaxed);
  return raise;
}

bool ErrorNotes::add(int code, std::function<void()> handle) {
  if (here.depth == 0) return false;
  if (innermost()) return true;
  if (!here.notes) here.notes = new std::vector<Note>;
  here.notes->push_back({here.depth, code, std::move(handle)});
  return true;
}

const ErrorNotes::Note* ErrorNotes::last_if_innermost() {
  const Note& last = here.notes->back();
  return last.depth == here.depth ? &last : nullptr;
}

ErrorNotes::Note ErrorNotes::take() {
  if (!innermost()) return {};
  Note note = std::move(here.notes->back());
  here.notes->pop_back();
  if (here.notes->empty()) delete std::exchange(here.notes, nullptr);
  return note;
}

void ErrorNotes::pass_on() {
  if (here.notes->back().depth <= here.depth) return;
  ++here.depth;
  Note note = take();
  --here.depth;
  if (here.depth > 0) {
    add(note.code, std::move(note.handle));
  } else {
    postpone(std::move(note));
  }
}

void ErrorNotes::postpone(Note note) {
  mpi::raise_later([code = note.code, handle = std::move(note.handle)] {
    if (!add(code, handle)) handle();
  });
}

void ProgramCall::end_with_handlers() {
  const auto handle = ErrorNotes::take().handle;
  ErrorNotes::leave();
  if (handle) handle();
  if (ErrorNotes::here.depth > 0) return;
  while (const auto raise = ErrorNotes::take_later()) {
    std::function<void()> handle;
    {
      const ProgramCall call;
      raise();
      handle = ErrorNotes::take().handle;
    }
    if (handle) handle();
  }
}

}  // namespace mpress::mpi
