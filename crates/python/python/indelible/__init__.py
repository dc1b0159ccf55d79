"""Persistent memory objects for stock Linux, as numpy arrays and dicts; queues and logs between processes.

    import indelible

    with indelible.open("run.pmo", size=64 << 20) as pool:
        w = pool.array("w", (1000, 100), "f8")
        w += 1.0
        w.psync()

`psync` makes everything stored since the last psync durable as one step: after a crash at any instant
an object is exactly as some psync left it.
"""

import sysconfig as _sysconfig

if _sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError(
        "indelible does not run in free-threaded builds of Python, as its native half relies on the"
        " GIL (use a build with the GIL, such as python3.14 in the place of python3.14t)"
    )

from . import ipc, tx, views
from ._array import Array
from ._asyncio import Ticket
from ._audit import StrayPointer, audit
from ._backups import Backup, restore
from ._checkpoints import Checkpoints
from ._dict import Dict
from ._errors import (
    AfterCommit,
    AnchorBehind,
    BadName,
    BadSize,
    ClassMismatch,
    Closed,
    Conflict,
    Damaged,
    Dangling,
    Denied,
    DifferentPools,
    Error,
    Exists,
    Forked,
    Gone,
    HeapFull,
    Held,
    InTransaction,
    Io,
    Mismatch,
    NoAddresses,
    NoPool,
    NoRoom,
    NoSpace,
    NotAHeap,
    NotFound,
    ObjectReadOnly,
    Poisoned,
    PoolBehind,
    PoolExists,
    ReadOnly,
    RootType,
    Sealed,
    TieCycle,
    TooManyTies,
    Version,
    VolatileGone,
    WrongKey,
)
from ._extension import load_ipython_extension, unload_ipython_extension
from ._far import Far, Found, Space
from ._indelible import (
    Consumer,
    Event,
    Life,
    Log,
    Object,
    Producer,
    Queue,
    SealKey,
    Shared,
    Word,
    __version__,
    verify_key,
    wait_any,
)
from ._log import LogReader, LogRecord
from ._named import ByName
from ._open import open
from ._pool import Pool
from ._psync import psync
from ._record import Field, Struct
from ._resume import Left, Resumed, resume
from ._stream import StreamReader, StreamWriter
from ._table import Collected, Difference, KeySlot, Scrubbed, Stat, Tie
from ._transactions import Pending, Tx, TxArray, TxElements, transaction
from ._unsynced import UnsyncedWarning, show
from ._views import AttachedView, Rule, Rules, SecurityContext, SlotState, View, ViewSlot

__all__ = [
    "AfterCommit",
    "AnchorBehind",
    "Array",
    "AttachedView",
    "Backup",
    "BadName",
    "BadSize",
    "ByName",
    "Checkpoints",
    "ClassMismatch",
    "Closed",
    "Collected",
    "Conflict",
    "Consumer",
    "Damaged",
    "Dangling",
    "Denied",
    "Dict",
    "Difference",
    "DifferentPools",
    "Error",
    "Event",
    "Exists",
    "Far",
    "Field",
    "Forked",
    "Found",
    "Gone",
    "HeapFull",
    "Held",
    "InTransaction",
    "Io",
    "KeySlot",
    "Left",
    "Life",
    "Log",
    "LogReader",
    "LogRecord",
    "Mismatch",
    "NoAddresses",
    "NoPool",
    "NoRoom",
    "NoSpace",
    "NotAHeap",
    "NotFound",
    "Object",
    "ObjectReadOnly",
    "Pending",
    "Poisoned",
    "Pool",
    "PoolBehind",
    "PoolExists",
    "Producer",
    "Queue",
    "ReadOnly",
    "Resumed",
    "RootType",
    "Rule",
    "Rules",
    "Scrubbed",
    "SealKey",
    "Sealed",
    "SecurityContext",
    "Shared",
    "SlotState",
    "Space",
    "Stat",
    "StrayPointer",
    "StreamReader",
    "StreamWriter",
    "Struct",
    "Ticket",
    "Tie",
    "TieCycle",
    "TooManyTies",
    "Tx",
    "TxArray",
    "TxElements",
    "UnsyncedWarning",
    "Version",
    "View",
    "ViewSlot",
    "VolatileGone",
    "Word",
    "WrongKey",
    "__version__",
    "audit",
    "ipc",
    "load_ipython_extension",
    "open",
    "psync",
    "restore",
    "resume",
    "transaction",
    "tx",
    "unload_ipython_extension",
    "verify_key",
    "views",
    "wait_any",
]

# As programs name them: in tracebacks, help and pickles.
_named = [found for name in __all__ if isinstance(found := globals()[name], type)]
for _class in [each for each in _named if each.__module__.startswith("indelible.")]:
    _class.__module__ = "indelible"
del _named, _class

show()
del show
