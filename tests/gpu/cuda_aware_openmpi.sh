#!/usr/bin/env bash
# The device tests under an Open MPI that takes memory of GPUs itself, by its own shared memory
# (smcuda) and by UCX: tests/gpu/cuda_aware_openmpi.sh OPENMPI UCX PREFIX
#
#   OPENMPI  its source, as Debian has it: openmpi_4.1.4.orig.tar.xz
#   UCX      a wheel of UCX with CUDA from PyPI: libucx_cu13-*.whl
#   PREFIX   the folder to install both in; what is there already is used as it is
#
# Nothing is downloaded. Needs nvcc, a C compiler, make, mpress installed for Open MPI, and what
# tests/gpu/run.sh needs and builds. STEPS names those to run: some of the words of its default.
# PARTS, FROM, BUILD and SECONDS_EACH are those of tests/gpu/run.sh; RESULTS is a prefix of its results
# (default: gpu-tests). BENCH_SECONDS is the time for the benchmark, BENCH_WAYS what carries its
# messages, BENCH_ARGS more of its arguments.
set -uo pipefail
[ $# = 3 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
source=$(realpath "$1") wheel=$(realpath "$2") prefix=$(realpath -m "$3")
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
STEPS=${STEPS:-build smcuda ucx bench}
RESULTS=${RESULTS:-gpu-tests}
wanted() { case " $STEPS " in *" $1 "*) ;; *) return 1 ;; esac; }
cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")

build() (
  set -e
  rm -rf "$prefix" && mkdir -p "$prefix/source"
  "$PYTHON" -m zipfile -e "$wheel" "$prefix/wheel"
  mv "$prefix/wheel/libucx" "$prefix/ucx"
  mv "$prefix/wheel/libucx_cu13.libs" "$prefix/"  # where its modules for CUDA look
  # They name folders of the machine that the wheel was made on, and libtool believes them.
  find "$prefix/ucx" -name '*.la' -delete
  tar -xf "$source" -C "$prefix/source" --strip-components 1
  cd "$prefix/source"
  # Make takes the time of an unpacked file for that of a change.
  find . -exec touch -r configure {} +
  ./configure --prefix="$prefix" --with-cuda="$cuda" --with-ucx="$prefix/ucx" \
    --disable-mpi-fortran --disable-oshmem --disable-mpi-java --without-verbs --without-ofi \
    --without-psm2 --enable-mca-no-build=coll-hcoll,io-romio321 --enable-silent-rules \
    "LDFLAGS=-Wl,-rpath,$prefix/ucx/lib"
  make -j "$(nproc)" install
  rm -rf "$prefix/source" "$prefix/wheel"
)

if [ ! -x "$prefix/bin/mpicc" ]; then
  wanted build || { echo "no Open MPI in $prefix"; exit 2; }
  log=$(mktemp)
  build >"$log" 2>&1 || { tail -40 "$log"; exit 2; }
fi
export PATH=$prefix/bin:$PATH LD_LIBRARY_PATH=$prefix/lib:$prefix/ucx/lib:${LD_LIBRARY_PATH:-}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ompi_info --parsable --all | grep -q mpi_built_with_cuda_support:value:true ||
  { echo "the Open MPI in $prefix takes no memory of GPUs"; exit 2; }

# Without its modules UCX takes memory of GPUs for the host's, and ends the process.
ldd "$prefix"/ucx/lib/ucx/libuc[mt]_cuda.so | grep "not found" &&
  { echo "the UCX in $prefix takes no memory of GPUs"; exit 2; }

# mpress serves it as any Open MPI; it cannot be built with the headers of one without Fortran.
export AWARE=1 BUILT=1 MPICCS=$prefix/bin/mpicc PARTS=${PARTS:-messages} MPI4PY_MPIABI=openmpi
# use WAY: what carries messages.
use() {
  case $1 in
  smcuda) export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,smcuda ;;
  ucx) unset OMPI_MCA_btl; export OMPI_MCA_pml=ucx ;;
  esac
}
failed=0
for way in smcuda ucx; do
  wanted "$way" || continue
  use "$way"
  echo "== $way"
  RESULTS=$RESULTS-$way.json tests/gpu/run.sh || failed=1
done
if wanted bench; then
  for way in ${BENCH_WAYS:-smcuda ucx}; do
    use "$way"
    "$PYTHON" bench/cuda_aware.py --name "$way" --seconds "${BENCH_SECONDS:-60}" ${BENCH_ARGS:-} \
      --json "$RESULTS-$way-bench.json" || failed=1
  done
fi
exit $failed
