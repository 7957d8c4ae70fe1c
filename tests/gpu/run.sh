#!/usr/bin/env bash
# Everything that needs a GPU, in one call on a machine that has one: builds, compares the twins,
# runs the codec tests on both, the queues that messages use, the apps, and the sanitizers. Writes
# RESULTS (default: gpu-tests.json).
#
# Where there are several GPUs, memory and arrays are tested on all of them, one after another and
# at once; the rest runs on the first.
#
# Needs nvcc, a C++ compiler and, for the interpreter PYTHON (default: python3), what the extra
# `test` names, CuPy and torch; nothing is downloaded, and mpi4py's own tests are run where BUILD
# has them already (tests/test_mpi4py.py). JOBS steps run at a time. PARTS names those to run:
# some of the words of its default. FROM is the number of the first step to run (default: 0). AWARE:
# the MPI takes memory of GPUs itself.
set -uo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
BUILD=${BUILD:-build-gpu}
RESULTS=${RESULTS:-gpu-tests.json}
JOBS=${JOBS:-$(nproc)}
PARTS=${PARTS:-twins sanitizers memory messages arrays faults large}
QUEUE_TESTS="gpu_test gpu_joint_test gpu_joint_move_test gpu_joint_sum_test gpu_reduce_test"
SPECS="mpc mpc:dim=3 zfp:4 zfp:7.25 zfp:16 zfp:24 szp:abs=1e-3 szp:rel=1e-3 szp:rel=1e-5,mode=dense"

if [ -z "${BUILT:-}" ]; then
  "$PYTHON" -m pip install -q --no-index --no-deps --no-build-isolation "-Cbuild-dir=$BUILD" \
    -Ccmake.define.MPRESS_TESTS=ON -Ccmake.define.MPRESS_CUDA=ON . || exit 2
  cmake --build "$BUILD" --target twins device_memory $QUEUE_TESTS || exit 2
fi

outcomes=$(mktemp -d)
steps=0
# step NAME COMMAND...: runs it in the background, shows its last line and the seconds that it took,
# keeps its outcome. Where it does not end in time, or fails, nor does the command `alone` end well, if
# there is one, the outcome says that.
step() {
  local name=$1 number=$((steps++))
  shift
  [ "$number" -ge "${FROM:-0}" ] || return 0
  while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
  {
    local status=ok log begin=$SECONDS
    log=$(timeout "${SECONDS_EACH:-300}" "$@" 2>&1) || { status=failed; tail -25 <<<"$log"; }
    if [ "$status" = failed ] && [ -n "${alone:-}" ]; then
      echo "-- alone:"
      timeout "${SECONDS_EACH:-300}" $alone 2>&1 | tail -25
      case ${PIPESTATUS[0]} in
      0) ;;
      124) status="stuck alone, too," ;;
      *) status="failed alone, too," ;;
      esac
    fi
    echo "$status $number, $name, $((SECONDS - begin)) s: $(tail -1 <<<"$log")"
    printf '{"check": "%s", "outcome": "%s"}' "$name" "${status%,}" \
      >"$outcomes/$(printf %03d $number)"
  } &
}

wanted() { case " $PARTS " in *" $1 "*) ;; *) return 1 ;; esac; }

twins=$BUILD/tests/twins
wanted twins && for type in f32 f64; do
  for spec in $SPECS; do
    step "twins, $spec, $type" "$twins" check "$spec" $type
    step "graph replay, $spec, $type" "$twins" replay "$spec" $type
    case $spec in szp*) step "sums, $spec, $type" "$twins" sums "$spec" $type ;; esac
  done
done
wanted sanitizers && for tool in memcheck racecheck initcheck; do
  for spec in mpc zfp:7.25 szp:rel=1e-3 szp:abs=1e-5,mode=dense; do
    for type in f32 f64; do
      step "$tool, $spec, $type" compute-sanitizer --tool $tool --error-exitcode 9 \
        "$twins" quick "$spec" $type
    done
  done
done
if wanted memory; then
  memory=$BUILD/tests/device_memory
  step "memory of every GPU" "$memory"
  for tool in memcheck initcheck; do
    step "$tool, memory" compute-sanitizer --tool $tool --error-exitcode 9 "$memory"
  done
  for test in $QUEUE_TESTS; do
    queues="$BUILD/tests/unit/$test $PWD/$BUILD/src/libmpress_cuda.so"
    step "queues, $test" $queues
    step "memcheck, $test" compute-sanitizer --tool memcheck --report-api-errors no \
      --error-exitcode 9 $queues
  done
fi
# Messages in device memory, under every MPI whose compiler wrapper MPICCS names.
cuda=$(dirname "$(dirname "$(command -v nvcc)")")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Else Open MPI binds the ranks of all jobs, which run beside each other, to the same cores.
export OMPI_MCA_hwloc_base_binding_policy=none
# messages NAME PROGRAM OPTIONS...: as many ranks as `ranks`, the program's argument `argument`, or
# words `arguments`, the GPUs of `visible`. Where the MPI is what carries GPUs' memory (AWARE), the
# program is run under it alone, too, if it does not end. Such an MPI opens each new block of memory
# in other processes, for which the steps' time would go: only programs that are about that free any.
messages() {
  local name=$1 program=$2 alone= memory=kept
  shift 2
  [ -z "${AWARE:-}" ] || [ -n "${argument:-}" ] ||
    alone="env DEVICE_MEMORY=kept ${mpicc%mpicc}mpiexec -n $ranks $folder/$program ${arguments:-}"
  case ${AWARE:-no}/$program in no/* | */device_direct* | */device_linked) memory= ;; esac
  step "$program $name, ${mpicc%/mpicc}" env ${visible:+"CUDA_VISIBLE_DEVICES=$visible"} \
    DEVICE_MEMORY=$memory \
    mpress run -n $ranks --mpiexec "${mpicc%mpicc}mpiexec" "$@" \
    -- "$folder/$program" ${argument:+"$argument"} ${arguments:-}
}
# use_mpi MPICC: programs are compiled with it, and mpi4py opens its library.
use_mpi() {
  mpicc=$1
  folder=$(mktemp -d)
  printf '#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n' |
    "$mpicc" -x c - -o "$folder/empty" || exit 2
  export MPI4PY_LIBMPI=$(ldd "$folder/empty" | awk '$1 ~ /^libmpi\.so/ { print $3 }')
}
# tests NAME FILE OPTIONS...: those of pytest's that need a GPU.
tests() {
  local name=$1 file=$2
  shift 2
  step "$name" env TESTS_BUILD_DIR="$BUILD" "$PYTHON" -m pytest -q -m "cuda and not extended" \
    --mpi "$mpicc" "$@" tests/$file.py
}
mpiccs=${MPICCS:-$(command -v mpicc)}
gpus=$(nvidia-smi -L | wc -l)
prefix=$("$PYTHON" -m mpress info --prefix)
for mpicc in $mpiccs; do
  wanted messages || continue
  use_mpi "$mpicc"
  # Two ranks a GPU are more than Open MPI's own ways for memory of GPUs manage in the time.
  ranks=${AWARE:+2} argument=
  ranks=${ranks:-4}
  programs="device_messages device_gaps device_lossy device_edges device_strewn device_refused device_linked \
    device_by_turns device_peers device_direct device_direct_long device_returned blocks"
  # These make calls of MPI 4.
  newer=
  printf '#include <mpi.h>\nversion MPI_VERSION\n' | "$mpicc" -E -x c - | grep -q '^version [4-9]' &&
    newer="device_calls device_collectives neighbors reductions reductions_alike \
      reductions_linked reductions_long reductions_reproducible"
  for program in $programs $newer; do
    "$mpicc" -O1 -Itests/mpi -Itests/simulated_gpu "-I$cuda/include" tests/mpi/$program.c \
      tests/gpu/device_memory.c -o "$folder/$program" "-L$cuda/lib64" -lcudart_static -ldl -lrt \
      -lpthread -lm || exit 2
  done
  # By MPI, from GPU to GPU, so where ranks share one, and by memory of the host.
  for way in mpi peer "peer on one GPU" host; do
    export MPRESS_LINK=${way%% *}
    visible=
    [ "$way" = "${way#* }" ] || { visible=${CUDA_VISIBLE_DEVICES:-0}; visible=${visible%%,*}; }
    messages "as they are, by $way" device_messages --codec none
    messages "encoded, by $way" device_messages --codec mpc --force --threshold 0
    for program in device_edges device_gaps device_strewn; do
      ranks=2 messages "as they are, by $way" $program --codec none
      ranks=2 messages "encoded, by $way" $program --codec mpc --force --threshold 0
    done
    ranks=2 messages "of both kinds, by $way" device_by_turns --force
    messages "behind the default stream, by $way" device_returned --codec none
    messages "behind the default stream, encoded, by $way" device_returned \
      --codec mpc --force --threshold 0
    argument=held messages "beside other streams, by $way" device_returned --codec none
    argument=held messages "beside other streams, encoded, by $way" device_returned \
      --codec mpc --force --threshold 0
    for codec in zfp:16 szp:abs=1e-3 szp:rel=1e-4; do
      ranks=4 messages "with $codec, by $way" device_lossy --codec $codec --force
    done
    for seed in 1 2 3; do
      arguments="$seed 100" messages "of collective calls, by $way" blocks --codec none
      arguments="$seed 100" messages "of collective calls, encoded, by $way" blocks \
        --codec mpc --force --threshold 0
    done
    for choice in bcast=chain,allgather=ring,alltoall=pairwise bcast=two-shot,allgather=doubling; do
      arguments="4 100" MPRESS_ALGORITHM=$choice messages "of collective calls, $choice, by $way" \
        blocks --codec mpc --force --threshold 0
    done
    if [ -n "$newer" ]; then
      arguments="5 30 any" messages "of neighbours, by $way" neighbors --codec none
      arguments="6 30 device" messages "of neighbours, encoded, by $way" neighbors \
        --codec mpc --force --threshold 0
      arguments="1 100 exact device" messages "of reductions, by $way" reductions --codec none
      arguments="2 100 exact device" messages "of reductions, encoded, by $way" reductions \
        --codec mpc --force --threshold 0
      arguments="3 100 rel=1e-4 device" messages "of reductions, with a bound, by $way" reductions \
        --codec szp:rel=1e-4 --force --threshold 0
      MPIR_CVAR_ODD_EVEN_CLIQUES=1 arguments="5 100 rel=1e-4 device" messages \
        "of reductions on two hosts, by $way" reductions --codec szp:rel=1e-4 --force --threshold 0
      arguments="1 mixed" messages "of sums in quanta, by $way" reductions_alike \
        --codec szp:abs=1e-4 --force --threshold 0
      arguments="1 exact key device" messages "of reproducible reductions, by $way" \
        reductions_reproducible --codec none
      arguments="1 abs=1e-3 key device" messages "of the same with a bound, by $way" \
        reductions_reproducible --codec szp:abs=1e-3
      [ "$way" = mpi ] || arguments="4 100" messages "without messages, by $way" \
        reductions_linked --codec none
      for codec in none szp:abs=1e-3; do
        ranks=2 arguments="1e-3 50000000" messages "of long sums with $codec, by $way" \
          reductions_long --codec $codec --force
      done
    fi
    case $way in mpi | host) continue ;; esac
    argument="every device" messages "as they are, by $way" device_peers --codec none
    for part in truncation "no send waits" "more than fits" order probes completions freed; do
      ranks=2 argument=$part MPRESS_POOL_LIMIT=4M MPRESS_CHUNK=4K \
        messages "$part, by $way" device_linked --codec mpc --force --threshold 0
    done
    for part in received blocking "both ways" "looked at late" "not looking" \
      "taken before a barrier" "freed memory" \
      "freed early" elsewhere requests; do
      for program in device_direct device_direct_long; do
        # A send that MPI has waits for its receiver, and this program does not let it.
        [ "${AWARE:+$program $part}" = "device_direct_long freed early" ] && continue
        ranks=2 argument=$part messages "$part, by $way" $program --codec none
      done
    done
    for part in "no room" "too long"; do
      ranks=2 argument=$part MPRESS_POOL_LIMIT=2M messages "$part, by $way" device_direct --codec none
    done
  done
  unset MPRESS_LINK visible
  MPRESS_CHUNK=64K MPRESS_POOL_LIMIT=100K \
    messages "with little memory" device_messages --codec mpc --force
  for program in ${newer:+device_calls device_collectives}; do messages "as they are" $program; done
  [ -n "${AWARE:-}" ] || argument=$folder/file messages "as they are" device_refused
  for what in nccl kernel streams; do
    [ "$what $gpus" = "nccl 1" ] && continue  # NCCL refuses two ranks on one
    beside="$PYTHON -m mpi4py tests/gpu/beside.py $what"
    alone=${AWARE:+"${mpicc%mpicc}mpiexec -n 2 $beside"}
    step "messages beside $what, ${mpicc%/mpicc}" mpress run -n 2 \
      --mpiexec "${mpicc%mpicc}mpiexec" --force -- $beside
    alone=
  done
  "$mpicc" -O1 -Itests/simulated_gpu "-I$prefix/include" "-I$cuda/include" tests/api/streams.c \
    tests/gpu/device_memory.c -o "$folder/streams" "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" \
    -lmpress "-L$cuda/lib64" -lcudart_static -ldl -lrt -lpthread -lm || exit 2
  for way in peer host mpi; do
    step "calls with a stream, by $way, ${mpicc%/mpicc}" env MPRESS_LINK=$way MPRESS_FORCE=1 \
      MPRESS_THRESHOLD=0 "${mpicc%mpicc}mpiexec" -n 2 "$folder/streams"
  done
  "$mpicc" -O1 -Itests/simulated_gpu "-I$prefix/include" "-I$cuda/include" \
    tests/api/neighbour_exchanges.c tests/gpu/device_memory.c -o "$folder/neighbour_exchanges" \
    "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -lmpress "-L$cuda/lib64" -lcudart_static -ldl -lrt \
    -lpthread -lm || exit 2
  for way in peer host mpi; do
    step "isomorphic neighbourhoods, by $way, ${mpicc%/mpicc}" env MPRESS_LINK=$way \
      MPRESS_CODEC=mpc MPRESS_FORCE=1 MPRESS_THRESHOLD=0 "${mpicc%mpicc}mpiexec" -n 4 \
      "$folder/neighbour_exchanges" 7 60 devices
    step "halos of CuPy arrays, by $way, ${mpicc%/mpicc}" env MPRESS_LINK=$way MPRESS_FORCE=1 \
      MPRESS_THRESHOLD=0 "${mpicc%mpicc}mpiexec" -n 4 "$PYTHON" -m mpi4py tests/gpu/halo.py
  done
  for seed in 1 2 3; do
    step "random calls of a Communicator, ${mpicc%/mpicc}" env MPRESS_FORCE=1 MPRESS_THRESHOLD=0 \
      MPRESS_CHUNK=32K "${mpicc%mpicc}mpiexec" -n 3 "$PYTHON" -m mpi4py \
      tests/communicator_random.py $seed 100 devices
  done
  for library in cupy torch jax; do
    [ $library = jax ] && ! "$PYTHON" -c "import jax" 2>/dev/null && continue  # not asked for
    step "arrays of $library in a Communicator, ${mpicc%/mpicc}" env MPRESS_FORCE=1 \
      "${mpicc%mpicc}mpiexec" -n 2 "$PYTHON" tests/gpu/communicator.py $library
  done
  if [ -d "$BUILD/mpi4py" ]; then
    tests "mpi4py's tests, ${mpicc%/mpicc}" test_mpi4py
    tests "mpi4py's tests of a Communicator, ${mpicc%/mpicc}" test_communicator
  fi
done
if wanted arrays; then
  mpicc=${mpicc:-mpicc} folder=${folder:-$(mktemp -d)}
  tests "apps/wave on GPUs" test_wave_app
  tests "apps/stacking on GPUs" test_stacking
  tests "arrays of other libraries" test_cuda
  ${CC:-cc} -std=c99 -O1 "-I$prefix/include" "-I$cuda/include" tests/gpu/codec_async.c \
    "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -lmpress "-L$cuda/lib64" "-Wl,-rpath,$cuda/lib64" \
    -lcudart -lm -o "$folder/codec_async" && step "codecs of the C interface" "$folder/codec_async"
  step "codec tests on both twins" env TESTS_BUILD_DIR="$BUILD" \
    "$PYTHON" -m pytest -q --device cuda tests/test_codec_api.py
fi
wait
JOBS=1  # these fill the memory
for mpicc in $mpiccs; do
  wanted faults || continue
  tests "faults, ${mpicc%/mpicc}" test_device_faults --durations=0
done
wanted large && for spec in mpc zfp:8 szp:abs=1e-3; do
  for type in ${LARGE_TYPES:-f32 f64}; do step "2^32 elements, $spec, $type" "$twins" large "$spec" $type; done
done
wait

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null)
{
  printf '{"kind": "gpu-tests", "date": "%s", "gpu": "%s", "gpus": %s, "commit": "%s", "checks": [\n' \
    "$(date -u +%F)" "$gpu" "$gpus" "$commit"
  separator=
  for file in "$outcomes"/*; do
    printf %b "$separator"
    separator=',\n'
    cat "$file"
  done
  printf '\n]}\n'
} >"$RESULTS"
! grep -q '"failed"' "$RESULTS"
