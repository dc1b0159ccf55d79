"""Persistent memory objects for stock Linux, as numpy arrays and dicts.

    import indelible

    with indelible.open("run.pmo", size=64 << 20) as pool:
        w = pool.array("w", (1000, 100), "f8")
        w += 1.0
        w.psync()

`psync` makes everything stored since the last psync durable as one step: after a crash at any instant
an object is exactly as some psync left it.
"""

from ._array import Array
from ._checkpoints import Checkpoints
from ._dict import Dict
from ._errors import (
    ClassMismatch,
    AnchorBehind,
    Closed,
    Damaged,
    Error,
    Exists,
    Forked,
    Held,
    Mismatch,
    NoPool,
    NoRoom,
    NoSpace,
    NotFound,
    Poisoned,
    PoolBehind,
    PoolExists,
    ReadOnly,
    Sealed,
    TieCycle,
    TooManyTies,
    Version,
    VolatileGone,
    WrongKey,
)
from ._indelible import Object, SealKey, __version__, verify_key
from ._open import open
from ._pool import Pool
from ._psync import psync
from ._record import Field, Struct
from ._table import Collected, Difference, KeySlot, Stat, Tie

__all__ = [
    "AnchorBehind",
    "Array",
    "Checkpoints",
    "ClassMismatch",
    "Closed",
    "Collected",
    "Damaged",
    "Dict",
    "Difference",
    "Error",
    "Exists",
    "Field",
    "Forked",
    "Held",
    "KeySlot",
    "Mismatch",
    "NoPool",
    "NoRoom",
    "NoSpace",
    "NotFound",
    "Object",
    "Poisoned",
    "Pool",
    "PoolBehind",
    "PoolExists",
    "ReadOnly",
    "SealKey",
    "Sealed",
    "Stat",
    "Struct",
    "Tie",
    "TieCycle",
    "TooManyTies",
    "Version",
    "VolatileGone",
    "WrongKey",
    "__version__",
    "open",
    "psync",
    "verify_key",
]
