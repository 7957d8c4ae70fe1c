# Finds the MPIs that backends are built for. Only headers are used: libraries are bound at run time.
#
# Libraries with one binary interface are a family: mpich (MPICH and all that promise its ABI),
# openmpi, and abi (the standard ABI of MPI 5). For each that is found, MPRESS_MPI_FAMILIES lists it,
# and MPRESS_<family>_INCLUDES, _DEFINITIONS, _NAME (with the version), _LAUNCHER describe it.
#
# Looked at in this order, the first of a family counts: the compiler wrappers that MPICC names
# (cache variable, else environment), those beside the Python interpreter and on PATH, and what
# CMake's FindMPI finds. Beside each wrapper, mpicc_abi is looked at too. With MPRESS_MPICC_ONLY,
# only what MPICC names is looked at.

set(MPICC "" CACHE STRING "MPI C compiler wrappers of the MPIs to build for, a list")
option(MPRESS_MPICC_ONLY "Build for the MPIs that MPICC names, and for no other that is found" OFF)

set(MPRESS_MPI_FAMILIES "")

# What the headers say of themselves; `result` is the family, or empty where there is no mpi.h.
function(mpress_mpi_family includes definitions result result_name)
  list(TRANSFORM includes PREPEND "-I")
  list(TRANSFORM definitions PREPEND "-D")
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/mpi_probe.c)
  file(WRITE ${probe} "#include <mpi.h>\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c -E -dM ${definitions} ${includes} ${probe}
                  OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE status)
  foreach(macro MPICH_VERSION OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
          MPI_ABI_VERSION MPI_ABI_SUBVERSION)
    if(macros MATCHES "#define ${macro} \"?([^\"\n ]+)")
      set(${macro} ${CMAKE_MATCH_1})
    else()
      set(${macro} "")
    endif()
  endforeach()
  set(family "")
  set(name "")
  if(NOT status EQUAL 0)
  elseif(MPICH_VERSION)
    set(family mpich)
    set(name "MPICH ${MPICH_VERSION}")
  elseif(OMPI_MAJOR_VERSION)
    set(family openmpi)
    set(name "Open MPI ${OMPI_MAJOR_VERSION}.${OMPI_MINOR_VERSION}.${OMPI_RELEASE_VERSION}")
  elseif(MPI_ABI_VERSION)
    set(family abi)
    set(name "MPI ABI ${MPI_ABI_VERSION}.${MPI_ABI_SUBVERSION}")
  endif()
  set(${result} "${family}" PARENT_SCOPE)
  set(${result_name} "${name}" PARENT_SCOPE)
endfunction()

# Adds the MPI of these headers, unless its family is known; `found` is its family.
function(mpress_add_mpi includes definitions launcher found)
  mpress_mpi_family("${includes}" "${definitions}" family name)
  set(${found} "${family}" PARENT_SCOPE)
  if(NOT family OR family IN_LIST MPRESS_MPI_FAMILIES)
    return()
  endif()
  set(MPRESS_MPI_FAMILIES ${MPRESS_MPI_FAMILIES} ${family} PARENT_SCOPE)
  set(MPRESS_${family}_INCLUDES "${includes}" PARENT_SCOPE)
  set(MPRESS_${family}_DEFINITIONS "${definitions}" PARENT_SCOPE)
  set(MPRESS_${family}_NAME "${name}" PARENT_SCOPE)
  set(MPRESS_${family}_LAUNCHER "${launcher}" PARENT_SCOPE)
  message(STATUS "mpress: MPI backend ${family}: ${name} (${includes})")
endfunction()

# Adds the MPI of a compiler wrapper, from the -I and -D that it adds; `found` as above.
macro(mpress_add_wrapper wrapper found)
  set(${found} "")
  foreach(show -show --showme:compile)  # MPICH and its relatives; Open MPI
    execute_process(COMMAND "${wrapper}" ${show} OUTPUT_VARIABLE line ERROR_QUIET
                    RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0 AND NOT ${found})
      separate_arguments(words UNIX_COMMAND "${line}")
      set(includes ${words})
      set(definitions ${words})
      list(FILTER includes INCLUDE REGEX "^-I.")
      list(FILTER definitions INCLUDE REGEX "^-D.")
      list(TRANSFORM includes REPLACE "^-I" "")
      list(TRANSFORM definitions REPLACE "^-D" "")
      list(REMOVE_DUPLICATES includes)
      get_filename_component(bin "${wrapper}" DIRECTORY)
      mpress_add_mpi("${includes}" "${definitions}" "${bin}/mpiexec" ${found})
    endif()
  endforeach()
endmacro()

set(wrappers "${MPICC}")
if(NOT wrappers)
  set(wrappers "$ENV{MPICC}")
endif()
foreach(wrapper IN LISTS wrappers)
  find_program(wrapper_path "${wrapper}" NO_CACHE)
  mpress_add_wrapper("${wrapper_path}" family)
  if(NOT family)
    message(FATAL_ERROR "MPICC=${wrapper} names no MPI compiler wrapper: it was asked with -show "
                        "and --showme:compile for the directory of mpi.h")
  endif()
  unset(wrapper_path)
endforeach()

set(directories $ENV{PATH})
string(REPLACE ":" ";" directories "${directories}")
if(MPRESS_MPICC_ONLY)
  set(directories "")
elseif(MPRESS_PYTHON)
  get_filename_component(bin "${Python_EXECUTABLE}" DIRECTORY)
  list(PREPEND directories "${bin}")
endif()
if(NOT MPRESS_MPICC_ONLY)
  foreach(wrapper IN LISTS wrappers)
    get_filename_component(bin "${wrapper}" DIRECTORY)
    list(PREPEND directories "${bin}")
  endforeach()
endif()
list(REMOVE_DUPLICATES directories)
foreach(directory IN LISTS directories)
  foreach(name mpicc mpicc_abi mpicc.mpich mpicc.openmpi)
    if(directory AND EXISTS "${directory}/${name}")
      mpress_add_wrapper("${directory}/${name}" family)
    endif()
  endforeach()
endforeach()

if(NOT MPRESS_MPI_FAMILIES)
  enable_language(C)  # FindMPI asks for it
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    mpress_add_mpi("${MPI_C_INCLUDE_DIRS}" "${MPI_C_COMPILE_DEFINITIONS}" "${MPIEXEC_EXECUTABLE}"
                   family)
  endif()
endif()

if(NOT MPRESS_MPI_FAMILIES)
  message(WARNING "No MPI was found: the codecs are built, but not libmpress_preload.so, and "
                  "`mpress run` will not work. Install an MPI (`pip install mpich` is enough) or "
                  "set MPICC to its compiler wrapper, and build again.")
endif()
