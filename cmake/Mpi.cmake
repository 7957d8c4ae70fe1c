# Finds the MPI that the preload library is built for -> MPRESS_MPI_INCLUDE_DIRS (empty: none) and
# MPRESS_MPI_NAME. Only the headers are used: the library itself is bound at run time.
#
# In this order: MPICC (cache variable, then environment), mpicc beside the Python interpreter,
# CMake's FindMPI.

set(MPICC "" CACHE STRING "MPI C compiler wrapper of the MPI to build for")

# The directories that a compiler wrapper adds and that hold mpi.h.
function(mpress_wrapper_includes wrapper result)
  set(found "")
  foreach(flag -show --showme:compile)  # MPICH and its relatives; Open MPI
    execute_process(COMMAND ${wrapper} ${flag} OUTPUT_VARIABLE line ERROR_QUIET
                    RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
      separate_arguments(words UNIX_COMMAND "${line}")
      foreach(word IN LISTS words)
        string(REGEX REPLACE "^-I" "" directory "${word}")
        if(word MATCHES "^-I" AND EXISTS "${directory}/mpi.h")
          list(APPEND found "${directory}")
        endif()
      endforeach()
    endif()
    if(found)
      break()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(mpress_define header name result)
  file(STRINGS "${header}" line REGEX "^#[ ]*define[ ]+${name}[ ]+" LIMIT_COUNT 1)
  string(REGEX REPLACE "^#[ ]*define[ ]+${name}[ ]+\"?([^\" ]*)\"?.*$" "\\1" value "${line}")
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

function(mpress_mpi_name directory result)
  set(name "an MPI in ${directory}")
  mpress_define("${directory}/mpi.h" MPICH_VERSION mpich)
  mpress_define("${directory}/mpi.h" OMPI_MAJOR_VERSION ompi)
  if(mpich)
    set(name "MPICH ${mpich}")
  elseif(ompi)
    mpress_define("${directory}/mpi.h" OMPI_MINOR_VERSION minor)
    mpress_define("${directory}/mpi.h" OMPI_RELEASE_VERSION release)
    set(name "Open MPI ${ompi}.${minor}.${release}")
  endif()
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

set(MPRESS_MPI_INCLUDE_DIRS "")
set(MPRESS_MPI_NAME "")
set(wrapper "${MPICC}")
if(NOT wrapper)
  set(wrapper "$ENV{MPICC}")
endif()
if(wrapper)
  mpress_wrapper_includes("${wrapper}" MPRESS_MPI_INCLUDE_DIRS)
  if(NOT MPRESS_MPI_INCLUDE_DIRS)
    message(FATAL_ERROR "MPICC=${wrapper} names no MPI compiler wrapper: it was asked with -show "
                        "and --showme:compile for the directory of mpi.h")
  endif()
elseif(MPRESS_PYTHON)
  get_filename_component(bin "${Python_EXECUTABLE}" DIRECTORY)
  if(EXISTS "${bin}/mpicc")
    mpress_wrapper_includes("${bin}/mpicc" MPRESS_MPI_INCLUDE_DIRS)
  endif()
endif()
if(NOT MPRESS_MPI_INCLUDE_DIRS)
  enable_language(C)  # FindMPI asks for it
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(MPRESS_MPI_INCLUDE_DIRS ${MPI_C_INCLUDE_DIRS})
  endif()
endif()

foreach(directory IN LISTS MPRESS_MPI_INCLUDE_DIRS)
  if(EXISTS "${directory}/mpi.h")
    mpress_mpi_name("${directory}" MPRESS_MPI_NAME)
    break()
  endif()
endforeach()
if(MPRESS_MPI_INCLUDE_DIRS)
  message(STATUS "mpress: MPI is ${MPRESS_MPI_NAME} (${MPRESS_MPI_INCLUDE_DIRS})")
else()
  message(WARNING "No MPI was found: the codecs are built, but not libmpress_preload.so, and "
                  "`mpress run` will not work. Install an MPI (`pip install mpich` is enough) or "
                  "set MPICC to its compiler wrapper, and build again.")
endif()
