"""A pool, as far as objects are concerned that processes share, and logs."""

from __future__ import annotations

import os
import weakref
from typing import Any, Literal, TypeVar, overload

from . import _registry
from ._errors import Mismatch
from ._indelible import Log, Queue, Shared, _attach_shared, _open_log, _queue_bytes
from ._log import LogReader
from ._sealed import SealedPool


_T = TypeVar("_T")


class SharingPool(SealedPool):
    """The part of `Pool` that has shared objects, queues and logs."""

    def _in_block(self, opened: _T) -> _T:
        """Registers a handle that the end of the pool's `with` block psyncs."""
        self._others().add(opened)
        return opened

    def _others(self) -> weakref.WeakSet[Any]:
        found: weakref.WeakSet[Any] = vars(self).setdefault("_opened", weakref.WeakSet())
        return found

    def shared(self, name: str, size: int | None = None, *, key: bytes | None = None) -> Shared:
        """The shared object `name`: memory that any number of processes of one user have at once, at the same address. Nothing in it becomes durable.

        Without an object of that name one of `size` bytes is made, all zero; with one of another size it is a Mismatch. Its contents stay as long as the machine runs, attached or
        not, until the object is removed. After a restart of the machine it is made anew: with a size here, VolatileGone without.
        """
        found = _attach_shared(self, name, size, key)
        if size is not None and found.size != size:
            found.close()
            raise Mismatch(
                f"the shared object {name!r} has {found.size} bytes, and asked for were {size} (ask for what it has, or for no size)",
                operation="attach",
                pool=os.fspath(self.path),
                object=name,
            )
        return found

    def queue(
        self,
        name: str,
        *,
        slots: int = 1024,
        most: int = 64,
        one_producer: bool = False,
        key: bytes | None = None,
    ) -> Queue:
        """The queue of messages that is the shared object `name`, which is made if there is none:
        of `slots` messages, a power of two, of up to `most` bytes.

        Any number of processes put messages in at once, and one takes them out; with
        `one_producer`, one process at a time puts them in, which is faster. All processes open it
        with the same options, else RootType. `Shared.queue` has several queues in one object.
        """
        size = _queue_bytes(slots, most, one_producer)
        try:
            shared = _attach_shared(self, name, size, key)
        except OverflowError:
            raise ValueError(f"a queue cannot have {slots} messages") from None
        return shared.queue(0, slots=slots, most=most, one_producer=one_producer)

    @overload
    def log(self, name: str, mode: Literal["r+"] = "r+", *, key: bytes | None = None) -> Log: ...
    @overload
    def log(self, name: str, mode: Literal["r"], *, key: bytes | None = None) -> LogReader: ...
    def log(self, name: str, mode: Literal["r+", "r"] = "r+", *, key: bytes | None = None) -> Log | LogReader:
        """The log in the object `name`: records of any bytes, one behind the other, as `pmo log`
        shows them.

        With mode "r+" it is for appending, by one process at a time, and made if there is none: as
        long as it is open, another call returns the same log. With mode "r" it is for reading, from
        the first record on, beside a process that appends, at no cost in space; in a pool that was
        opened for reading, the reader locks writers out.
        """
        if mode == "r":
            return LogReader(self, name, key)
        if mode != "r+":
            raise ValueError(f"mode is 'r' or 'r+', not {mode!r}")
        made = lambda: _open_log(self, name, key)  # noqa: E731
        opened = _registry.once(self, name, "log", made, key)
        return self._in_block(opened)
