// The calls that make handlers of errors: MPI gets what notes the error in the handler's place.

#include "mpi/error_handlers.hpp"

#include "mpi/calls/calls.hpp"
#include "preload/export.hpp"

using namespace mpress;

MPRESS_EXPORT int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function* handler,
                                             MPI_Errhandler* made) {
  return mpi::calls().Comm_create_errhandler(mpi::noting_on_comm(handler), made);
}

MPRESS_EXPORT int MPI_Win_create_errhandler(MPI_Win_errhandler_function* handler,
                                            MPI_Errhandler* made) {
  return mpi::calls().Win_create_errhandler(mpi::noting_on_win(handler), made);
}

MPRESS_EXPORT int MPI_File_create_errhandler(MPI_File_errhandler_function* handler,
                                             MPI_Errhandler* made) {
  return mpi::calls().File_create_errhandler(mpi::noting_on_file(handler), made);
}
