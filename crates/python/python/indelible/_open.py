"""Opening a pool."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Any, Literal

from ._pool import Pool
from ._unsynced import psync_at_exit

Medium = Literal["auto", "file", "memory", "dax", "devdax"]
Tracking = Literal["auto", "wp-async", "fault-log", "mprotect"]


def open(
    path: str | os.PathLike[str],
    size: int | None = None,
    *,
    read_only: bool = False,
    medium: Medium = "auto",
    tracking: Tracking = "auto",
    allow_remote: bool = False,
    wait: float | None = None,
    memory_limit: int | None = None,
    autosync: Literal["exit"] | None = None,
) -> Pool:
    """Opens the pool at `path`. If there is none, formats one of `size` bytes there; NoPool without
    a size.

    A pool that exists keeps its size; a warning says so if it is less than `size`. The file is
    sparse: space is claimed as objects need it. `medium` ("auto", "file", "memory", "dax",
    "devdax") overrides the kind of the path, `tracking` ("auto", "wp-async", "fault-log",
    "mprotect") chooses how stores are found; `allow_remote` accepts network file systems, whose
    locks may not exclude other machines. `wait` is the time limit in seconds for an object in use
    elsewhere (by default 0), and for the table while another process has it (by default 20).
    `memory_limit`, at least 1 MiB, is the most memory in bytes of each object that the kernel cannot
    reclaim: beyond it, psyncs give pages that they made durable back. By default a quarter of the
    memory that the process may use.

    With `autosync="exit"`, everything that the pool has opened becomes durable when the interpreter
    ends, as at the end of a `with` block: not after an exception, which warns of lost changes, nor
    after a signal.
    """
    if autosync not in (None, "exit"):
        raise ValueError(f"autosync is 'exit' or None, not {autosync!r}")
    if size is not None and operator.index(size) < 0:
        raise ValueError(f"a pool cannot have {size} bytes")
    options: dict[str, Any] = {
        "read_only": read_only,
        "medium": medium,
        "tracking": tracking,
        "allow_remote": allow_remote,
        "wait": wait,
        "memory_limit": memory_limit,
    }
    pool = Pool(path, size, **options)
    # A pickle of the pool has them.
    vars(pool)["_options"] = options
    if autosync is not None:
        psync_at_exit(pool)
    if size is not None and (length := pool.info()["length"]) < size:
        warnings.warn(
            f"pool {os.fspath(path)} has {length} bytes, less than the {size} asked for: a pool that exists keeps its size",
            stacklevel=2,
        )
    return pool
