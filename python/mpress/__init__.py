"""MPI programs exchange floating-point data compressed on the fly."""
