"""Opening a pool."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Literal

from ._pool import Pool

Medium = Literal["auto", "file", "memory", "dax", "devdax"]
Tracking = Literal["auto", "wp-async", "mprotect"]


def open(
    path: str | os.PathLike[str],
    size: int | None = None,
    *,
    read_only: bool = False,
    medium: Medium = "auto",
    tracking: Tracking = "auto",
    allow_remote: bool = False,
    wait: float | None = None,
) -> Pool:
    """Opens the pool at `path`. If there is none, formats one of `size` bytes there; NoPool without a size.

    A pool that exists keeps its size; a warning says so if it is less than `size`. The file is sparse: space is claimed as objects need it. `medium` ("auto", "file", "memory", "dax",
    "devdax") forces what the path is taken for, `tracking` ("auto", "wp-async", "mprotect") how stores
    are noticed; `allow_remote` accepts network file systems, whose locks may not exclude other machines. `wait`
    is for how many seconds to wait for an object that somebody else has (by default not at all), and for the
    table while another process has it (by default 20).
    """
    if size is not None and operator.index(size) < 0:
        raise ValueError(f"a pool cannot have {size} bytes")
    pool = Pool(
        path,
        size,
        read_only=read_only,
        medium=medium,
        tracking=tracking,
        allow_remote=allow_remote,
        wait=wait,
    )
    if size is not None and (length := pool.info()["length"]) < size:
        warnings.warn(
            f"pool {os.fspath(path)} has {length} bytes, less than the {size} asked for: a pool that exists keeps its size",
            stacklevel=2,
        )
    return pool
