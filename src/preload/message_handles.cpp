// Handles of matched messages as other languages know them. MPI cannot convert those that mpress
// holds itself.

#include <type_traits>

#include "mpi/calls/calls.hpp"
#include "mpi/messages/message_handle.hpp"
#include "preload/export.hpp"

using namespace mpress;

#define MPRESS_MESSAGE_CONVERSIONS(to_integer, from_integer)                             \
  using to_integer##_t = std::invoke_result_t<decltype(PMPI_##to_integer), MPI_Message>; \
  MPRESS_EXPORT to_integer##_t MPI_##to_integer(MPI_Message message) {                   \
    const int number = engine::own_message_number(message);                              \
    return number != 0 ? number : mpi::calls().to_integer(message);                      \
  }                                                                                      \
  MPRESS_EXPORT MPI_Message MPI_##from_integer(to_integer##_t number) {                  \
    return engine::is_own_message(number) ? engine::own_message(number)                  \
                                          : mpi::calls().from_integer(number);           \
  }
MPRESS_MESSAGE_CONVERSIONS(Message_c2f, Message_f2c)
MPRESS_MESSAGE_CONVERSIONS(Message_toint, Message_fromint)
