"""Exchanges under way, and those that are started again and again."""

from __future__ import annotations

import ctypes
from typing import Any

from mpi4py import MPI

from mpress import _api
from mpress.comm import Outcome, _told
from mpress.iso._call import call


class Request:
    """An exchange under way; keeps its arrays."""

    _is_persistent = False

    def __init__(self, kept: Any) -> None:
        self._handle = ctypes.c_void_p()
        self._outcome = _api.COutcome(0, 0.0)
        self._kept = kept

    def wait(self) -> Outcome:
        """Returns when it is over, and what became of it."""
        call("mpress_wait", ctypes.addressof(self._handle), _status_ignore())
        return self.outcome

    def test(self) -> bool:
        """Is it over? Never waits."""
        flag = ctypes.c_int()
        call(
            "mpress_test", ctypes.addressof(self._handle), ctypes.addressof(flag), _status_ignore()
        )
        return bool(flag.value)

    @property
    def outcome(self) -> Outcome:
        """Once it is over."""
        return _told(self._outcome)

    def __del__(self) -> None:
        if self._handle and MPI is not None and not MPI.Is_finalized():
            if not self._is_persistent:
                self.wait()  # MPI may still write to the arrays
            else:
                call("mpress_request_free", ctypes.addressof(self._handle))


class PersistentRequest(Request):
    """An exchange that is started again and again, with the same arrays. Collective to make."""

    _is_persistent = True

    def start(self) -> None:
        call("mpress_start", ctypes.addressof(self._handle))


def _status_ignore() -> int:
    # MPI_STATUS_IGNORE is an MPI's own; a status that nobody reads suits all of them.
    return ctypes.addressof(_unread)


_unread = (ctypes.c_byte * 256)()
