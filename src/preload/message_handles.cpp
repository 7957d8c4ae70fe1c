// Handles of matched messages as other languages know them. MPI cannot convert those that mpress
// holds itself; where handles are integers there is nothing to convert.

#include "engine/message_handle.hpp"
#include "link/mpi.hpp"
#include "preload/export.hpp"

using namespace mpress;

#define MPRESS_MESSAGE_CONVERSIONS(to_integer, from_integer, Integer)           \
  MPRESS_EXPORT Integer MPI_##to_integer(MPI_Message message) {                 \
    const int number = engine::own_message_number(message);                     \
    return number != 0 ? number : link::mpi().to_integer(message);              \
  }                                                                             \
  MPRESS_EXPORT MPI_Message MPI_##from_integer(Integer message) {               \
    return engine::is_own_message(message) ? engine::own_message(message)       \
                                           : link::mpi().from_integer(message); \
  }

#if defined(MPI_ABI_VERSION)
MPRESS_MESSAGE_CONVERSIONS(Message_toint, Message_fromint, int)
#elif defined(OPEN_MPI)
MPRESS_MESSAGE_CONVERSIONS(Message_c2f, Message_f2c, MPI_Fint)
#endif
