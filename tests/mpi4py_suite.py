"""Runs modules of mpi4py's own test suite in this rank and writes down how each test ended.

    mpiexec -n N python mpi4py_suite.py TESTS OUTCOMES PLACE MODULE...

PLACE is host, device, communicator or device-communicator; `few-` in front of it leaves out types
of elements. A module's name may be followed by a point and a pattern for the names of its cases.

TESTS is the folder `test` of mpi4py's source distribution. OUTCOMES/rank-R.jsonl gets a line a
test, [id, outcome], written when the test ends; a subtest that fails gets a line of its own.

The suite's messages are of a few elements. To make frames of them, the modules of SCALED see
arrays in which each element stands for a block of BLOCK equal ones: the tests' own code sizes,
fills and checks them.

But with `host`, all arrays are of TYPECODES, or with `few-` those that are not scaled of
FEW_TYPECODES: others differ to MPI alone. With `device`, all are CuPy's besides, each rank's on a
GPU of its own where there are enough. With `communicator` and `device-communicator`, what the cases
call is mpress.Communicator, their duplicates and grids too.
"""

import importlib
import json
import sys
import types
import unittest
from fnmatch import fnmatchcase
from pathlib import Path

SCALED = ("test_p2p_buf", "test_p2p_buf_matched", "test_p2p_buf_part")
BLOCK = 300
# Integers stay raw; how Python holds the arrays is nothing to MPI.
TYPECODES = "ifdFD"
FEW_TYPECODES = "ifD"  # elements of 4 and 8 bytes, alone and in pairs
HOST = ("ArrayArray", "ArrayNumPy")
DEVICE = ("GPUArrayCuPy",)


def few_types_of(base, codes=TYPECODES):
    """The suite's array class `base`, of those types alone."""
    typemap = {code: kind for code, kind in base.TypeMap.items() if code in codes}
    return type(base.__name__, (base,), {"TypeMap": typemap})


def blocks_of(base):
    """The suite's array class `base`, with blocks for elements."""
    import numpy

    class Blocks(few_types_of(base)):
        def __init__(self, value, typecode, shape=None):
            self.count = int(shape or 0)
            super().__init__(value, typecode, self.count * BLOCK)

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            if isinstance(index, slice):
                return [self[i] for i in range(*index.indices(self.count))]
            if not -self.count <= index < self.count:
                raise IndexError(index)
            start = index % self.count * BLOCK
            block = self.array[start : start + BLOCK]
            block = block.get() if hasattr(block, "get") else numpy.asarray(block)
            # What is not one value all through equals no value that a test may expect.
            return block[0] if (block == block[0]).all() else "a mixed block"

    return Blocks


def scaled_arrays(arrayimpl, place):
    """What stands in for the module `arrayimpl` in the scaled modules."""
    names = DEVICE if "device" in place else HOST
    backends = [blocks_of(getattr(arrayimpl, name)) for name in names]
    current = types.SimpleNamespace(array=None, typecode=None)

    def loop():
        for array in backends:
            for typecode in array.TypeMap:
                current.array, current.typecode = array, typecode
                yield array, typecode

    def test(case, **names):
        return case.subTest(typecode=current.typecode, backend=current.array.backend, **names)

    def scalar(value):
        return current.array(value, current.typecode, 1)[0]

    return types.SimpleNamespace(loop=loop, test=test, scalar=scalar)


class Flat:
    """Elements of a GPU's array. What is assigned is there when the assignment returns: some tests
    give it to MPI, which knows no streams, without waiting for it."""

    def __init__(self, elements):
        self.elements = elements

    def __iter__(self):
        return iter(self.elements)

    def __getitem__(self, key):
        return self.elements[key]

    def __setitem__(self, key, value):
        import cupy

        self.elements[key] = value.elements if isinstance(value, Flat) else value
        cupy.cuda.get_current_stream().synchronize()


def on_device(base, codes):
    """The suite's array class `base` of a GPU."""

    class OnDevice(few_types_of(base, codes)):
        @property
        def flat(self):
            return Flat(super().flat)

    return OnDevice


def use_few_types(codes):
    arrayimpl = importlib.import_module("arrayimpl")
    arrayimpl.ArrayBackends[:] = [few_types_of(base, codes) for base in arrayimpl.ArrayBackends]


def use_devices(codes):
    """Lets the suite know of CuPy's arrays alone."""
    import cupy
    from mpi4py import MPI

    cupy.cuda.Device(MPI.COMM_WORLD.rank % cupy.cuda.runtime.getDeviceCount()).use()
    arrayimpl = importlib.import_module("arrayimpl")
    backends = [getattr(arrayimpl, name) for name in DEVICE]
    arrayimpl.ArrayBackends[:] = [on_device(base, codes) for base in backends]
    # What MPIs cannot do with such arrays by themselves is tested too.
    importlib.import_module("mpiunittest").is_mpi_gpu = lambda *_: False
    # The space for buffered sends is the host's.
    attach = MPI.Attach_buffer
    MPI.Attach_buffer = lambda space: attach(
        bytearray(space.nbytes) if isinstance(space, cupy.ndarray) else space
    )


def use_communicators(module):
    """Lets the module's cases call mpress.Communicator in the place of mpi4py's communicators."""
    from mpi4py import MPI

    import mpress

    def made(comm):
        return mpress.Communicator(comm, codec="mpc")

    def setting_up(set_up):
        """Of cases that make their own."""

        def set_up_with_communicator(case):
            set_up(case)
            if type(case.COMM) is MPI.Intracomm:
                case.COMM = made(case.COMM)

        return set_up_with_communicator

    def of_topologies(create):
        """What makes a generator of them."""
        return lambda comm: map(made, create(comm))

    for case in [one for one in vars(module).values() if isinstance(one, type)]:
        comm = getattr(case, "COMM", MPI.COMM_NULL)
        if type(comm) is MPI.Intracomm and comm != MPI.COMM_NULL:
            case.COMM = made(comm)
        if hasattr(case, "COMM") and "setUp" in vars(case):
            case.setUp = setting_up(case.setUp)
    if hasattr(module, "create_topo_comms"):
        module.create_topo_comms = of_topologies(module.create_topo_comms)


class Loader(unittest.TestLoader):
    """Of cases with such names. Leaves out the tests of calls that the MPI lacks. mpi4py looks
    calls up, and finds mpress's: those end the job."""

    def __init__(self, pattern):
        super().__init__()
        self.pattern = pattern

    def loadTestsFromTestCase(self, case):
        fits = fnmatchcase(case.__name__, self.pattern)
        return super().loadTestsFromTestCase(case) if fits else self.suiteClass()

    def getTestCaseNames(self, case):
        from mpi4py import MPI

        lacks = MPI.Get_version() < (4, 0)
        persistent = case.__module__.startswith("test_cco_pr")
        names = super().getTestCaseNames(case)
        return [n for n in names if not (lacks and (persistent or "ISendrecv" in n))]


class Outcomes(unittest.TextTestResult):
    """Writes a line when a test ends, so that a crash or a hang shows where it was."""

    def __init__(self, *args, file, **options):
        super().__init__(*args, **options)
        self.file = file

    def write(self, test, outcome, wrong=None):
        print(json.dumps([test.id(), outcome]), file=self.file, flush=True)
        if wrong:
            sys.stderr.write(f"{test.id()}\n{wrong[-1][1]}\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write(test, "passed")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.write(test, "failed", self.failures)

    def addError(self, test, error):
        super().addError(test, error)
        self.write(test, "error", self.errors)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, f"skipped: {reason}")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.write(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write(test, "passed unexpectedly")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            kind = self.failures if issubclass(error[0], test.failureException) else self.errors
            self.write(subtest, "failed", kind)


def main(tests, outcomes, place, *modules):
    sys.path.insert(0, tests)
    codes = FEW_TYPECODES if "few" in place else TYPECODES
    # GPU packages that happen to be installed are not what is tested here.
    sys.modules["numba"] = None
    if "device" in place:
        use_devices(codes)
    else:
        sys.modules["cupy"] = None
    from mpi4py import MPI

    if "communicator" in place:
        import mpress

        mpress.Communicator(MPI.COMM_WORLD)  # all ranks start mpress
    if place != "host" and "device" not in place:
        use_few_types(codes)
    scaled = None
    with open(Path(outcomes) / f"rank-{MPI.COMM_WORLD.rank}.jsonl", "w") as file:
        runner = unittest.TextTestRunner(
            verbosity=0, resultclass=lambda *args, **options: Outcomes(*args, file=file, **options)
        )
        # Some modules open a session when they are imported, and then mpress sends no more frames.
        for named in sorted(modules, key=lambda named: named.split(".")[0] not in SCALED):
            name, _, pattern = named.partition(".")
            module = importlib.import_module(name)
            if name in SCALED:
                scaled = scaled or scaled_arrays(importlib.import_module("arrayimpl"), place)
                module.arrayimpl = scaled
            if "communicator" in place:
                use_communicators(module)
            runner.run(Loader(pattern or "*").loadTestsFromModule(module))


if __name__ == "__main__":
    main(*sys.argv[1:])
