"""numpy, whose new arrays are views of an object in a pool: the module that the suite of the array
API tests.

    PYTHONPATH=crates/python/tests/suites ARRAY_API_TESTS_MODULE=array_api pytest array_api_tests

`PLAIN=1` leaves numpy as it is: failures are then those of numpy.
"""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from pathlib import Path
from typing import Any

import indelible
import numpy as np
from numpy import *  # noqa: F403

MIB = 1 << 20
MADE = (
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like",
)  # fmt: skip

__array_api_version__ = np.__array_api_version__
__name__ = "numpy"


def __getattr__(name: str) -> Any:
    return getattr(np, name)


class Views:
    """Places arrays in the object, round and round: few are in use at a time."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        atexit.register(self._folder.cleanup)
        pool = indelible.open(Path(self._folder.name) / "pool.pmo", 512 * MIB)
        self._memory = pool.array("memory", 256 * MIB, "u1")
        self._at = 0

    def keep(self, made: Any) -> Any:
        """The array, as a view."""
        if not isinstance(made, np.ndarray) or not 0 < made.nbytes <= MIB:
            return made
        if self._at + made.nbytes > self._memory.nbytes:
            self._at = 0
        place = self._memory[self._at : self._at + made.nbytes]
        self._at += -(-made.nbytes // 64) * 64
        view = place.view(made.dtype).reshape(made.shape)
        view[...] = made
        assert isinstance(view, indelible.Array)
        return view


def _kept(make: Any) -> Any:
    @functools.wraps(make)
    def made(*given: Any, **named: Any) -> Any:
        array = make(*given, **named)
        # A result without a copy is the caller's own array.
        same = any(
            array is each or np.shares_memory(array, each)
            for each in given
            if isinstance(each, np.ndarray)
        )
        return array if same else views.keep(array)

    return made


if "PLAIN" not in os.environ:
    views = Views()
    globals().update({name: _kept(getattr(np, name)) for name in MADE})
