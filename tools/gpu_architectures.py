"""Print the CUDA architectures of this machine's GPUs as CMake names them, such as 80-real;90-real;
nothing where there is no GPU."""

import ctypes

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


def architectures() -> list[str]:
    """In ascending order; the driver tells them."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    found = set()
    for device in range(count.value):
        major, minor = ctypes.c_int(), ctypes.c_int()
        if (
            driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device) == 0
            and driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device) == 0
        ):
            found.add((major.value, minor.value))
    return [f"{major}{minor}-real" for major, minor in sorted(found)]


if __name__ == "__main__":
    print(";".join(architectures()))
