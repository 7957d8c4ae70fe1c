"""A link of the tests' own: what a new link touches outside its folder, and that it then works."""

import subprocess

import pytest
from patched_sources import ROOT, check_touched, copy_sources

DUMMY = ROOT / "tests" / "dummy_link"
PATCH = DUMMY / "three_files.patch"
TOUCHED = ("src/CMakeLists.txt", "src/core/links.hpp", "src/link/list.hpp")


@pytest.fixture
def patched(tmp_path):
    """The sources with the dummy link."""
    tree = tmp_path / "tree"
    own = [(source, "src/link/dummy") for source in DUMMY.glob("dummy_link.*")]
    copy_sources(tree, PATCH, own)
    return tree


def test_a_link_touches_three_files(patched):
    check_touched(patched, PATCH, TOUCHED)


@pytest.mark.extended
def test_messages_travel_by_it(patched, tmp_path):
    build = tmp_path / "build"
    options = ("-DMPRESS_PYTHON=OFF", "-DMPRESS_TESTS=ON", "-DMPRESS_CUDA=OFF")
    subprocess.run(["cmake", "-G", "Ninja", "-S", patched, "-B", build, *options], check=True)
    program = "protocols_random_test"
    subprocess.run(["cmake", "--build", build, "--target", program], check=True)
    # For each link of the list it sends messages by that one, and counts them.
    subprocess.run([build / "tests" / "unit" / program], check=True, timeout=120)
