"""GPUs where there is none: what chooses their library, and that the simulated ones show
mistakes."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from compiled_programs import simulated_gpu_library
from execution import ROOT, execute

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")


def test_programs_without_a_gpu_load_nothing_for_one(mpi_program, mpress_run, tmp_path):
    env = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loaded")}
    done = mpress_run(2, mpi_program("one_message"), options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.report["totals"]["compressed_messages"] == 1
    loaded = "".join(path.read_text() for path in tmp_path.glob("loaded.*"))
    assert "libmpress_preload.so" in loaded
    assert "libmpress_cuda" not in loaded and "libcuda" not in loaded


def test_importing_loads_nothing_for_a_gpu():
    program = "import mpress, numpy; mpress.codec('mpc').encode(numpy.ones(1000)); "
    program += "print(open('/proc/self/maps').read())"
    done = execute([sys.executable, "-c", program])
    assert done.status == 0, done.output
    assert "_core" in done.stdout
    assert "libmpress_cuda" not in done.stdout and "libcuda" not in done.stdout


def test_a_library_that_is_named_must_be_one(mpi_program, mpress_run, tmp_path):
    program = mpi_program("one_message")
    missing = tmp_path / "libgpu.so"
    done = mpress_run(None, program, options=FORCED, env={"MPRESS_GPU": str(missing)})
    assert done.status != 0
    assert f"MPRESS_GPU='{missing}': {missing}: cannot open" in done.stderr
    other = "/lib/x86_64-linux-gnu/libm.so.6"
    if Path(other).exists():
        done = mpress_run(None, program, options=FORCED, env={"MPRESS_GPU": other})
        assert done.status != 0
        assert f"{other} is no library for GPUs: it has no mpress_gpu" in done.stderr
    done = mpress_run(None, program, options=FORCED, env={"MPRESS_GPU": "rocm"})
    assert done.status != 0
    assert "MPRESS_GPU='rocm': expected cuda, off, or the path" in done.output


@pytest.mark.parametrize("choice", ["off", "simulated"])
def test_messages_of_host_memory_are_as_ever(choice, mpi_program, mpress_run, simulated_gpu):
    env = {"MPRESS_GPU": "off"} if choice == "off" else simulated_gpu
    done = mpress_run(2, mpi_program("one_message"), options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.report["totals"]["compressed_messages"] == 1


@pytest.mark.parametrize("chunk", ["0", "64K"])
def test_device_memory_is_left_to_mpi_where_gpus_are_off(chunk, mpress_run, mpi, tmp_path):
    # Other MPIs look at the data when they are told to send them.
    arguments = [] if mpi.name in ("default", "mpich") else ["at once"]
    source = ROOT / "tests" / "mpi" / "device_left.c"
    driver, program = tmp_path / "libcuda.so.1", tmp_path / "device_left"
    made = ["-DDRIVER", "-shared", "-fPIC", f"-Wl,-soname,{driver.name}", "-o", driver]
    assert execute([mpi.mpicc, source, *made, "-ldl"]).status == 0
    linked = [driver, f"-Wl,-rpath,{tmp_path}", "-o", program]
    assert execute([mpi.mpicc, source, *linked, "-lm"]).status == 0
    env = {"MPRESS_GPU": "off", "MPRESS_CHUNK": chunk}
    done = mpress_run(1, program, arguments, options=FORCED, env=env)
    assert done.status == 0, done.output
    assert "messages in device memory are left to MPI" in done.stderr
    assert done.report["left_raw"]["device memory left to MPI"]["messages"] == 2
    assert done.report["totals"]["compressed_messages"] == 2


@pytest.fixture
def simulation(build_dir):
    """simulation(statements): runs them with the simulated GPUs as `gpu`."""
    library = simulated_gpu_library(build_dir)
    prelude = f"""
import ctypes
gpu = ctypes.CDLL({str(library)!r})
gpu.sim_malloc.restype = ctypes.c_void_p
gpu.sim_malloc.argtypes = ctypes.c_int, ctypes.c_size_t
gpu.sim_free.argtypes = (ctypes.c_void_p,)
gpu.sim_copy_in.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
gpu.sim_copy_out.argtypes = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
gpu.sim_set_limit.argtypes = ctypes.c_int, ctypes.c_size_t
memory = gpu.sim_malloc(1, 1000)
"""
    return lambda statements: execute([sys.executable, "-c", prelude + statements])


def test_simulated_memory_holds_what_is_copied_to_it(simulation):
    done = simulation("""
out = ctypes.create_string_buffer(10)
gpu.sim_copy_in(memory + 990, b"0123456789", 10)
gpu.sim_copy_out(out, memory + 990, 10)
gpu.sim_free(memory)
gpu.sim_set_limit(1, 5000)
blocks = [gpu.sim_malloc(1, 2000) for _ in range(3)]
print(out.raw, [block is not None for block in blocks])
""")
    assert done.status == 0, done.output
    assert done.stdout == "b'0123456789' [True, True, False]\n"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("gpu.sim_free(memory); gpu.sim_free(memory)", "a block is released that is not taken"),
        ("gpu.sim_copy_in(memory + 995, b'0123456789', 10)", "do not lie in a block"),
        ("gpu.sim_free(memory); gpu.sim_copy_in(memory, b'1', 1)", "do not lie in a block"),
    ],
)
def test_misuse_of_simulated_memory_ends_the_program(statements, message, simulation):
    done = simulation(statements)
    assert done.status == -signal.SIGABRT
    assert "simulated GPU: " in done.stderr and message in done.stderr


@pytest.mark.parametrize("access", ["ctypes.memset(memory, 0, 1)", "ctypes.string_at(memory, 1)"])
def test_the_cpu_cannot_touch_simulated_memory(access, simulation):
    assert simulation(access).status == -signal.SIGSEGV
