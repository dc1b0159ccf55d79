"""A pool: objects by name, and what can be made of them."""

from __future__ import annotations

import logging
import operator
import os
import threading
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from . import _array, _indelible
from ._array import Array
from ._checkpoints import Checkpoints
from ._dict import Dict
from ._errors import Mismatch, NoRoom, NoSpace, NotAHeap, NotFound, RootType
from ._indelible import Object, psync_all
from ._layout import MAGIC, Layout, Order, layout

Mode = Literal["r", "r+", "w+"]
Medium = Literal["auto", "file", "memory", "dax", "devdax"]
Tracking = Literal["auto", "wp-async", "mprotect"]

_log = logging.getLogger("indelible")

# Bytes of an object for a dict, at least; what a heap begins with.
_LEAST = 64 << 10
HEAP = b"PMO-HEAP"

# This process's attached arrays and dicts, by the pool's ID and name: a second call shares them. A copy of a
# pool has the same ID, and cannot be opened beside it.
_attached: weakref.WeakValueDictionary[tuple[bytes, str], Object | Dict] = weakref.WeakValueDictionary()
_attaching = threading.RLock()
os.register_at_fork(after_in_child=lambda: _forget())


def _forget() -> None:
    """A child has none of it; another thread may have been attaching when the process was copied."""
    global _attaching
    _attaching = threading.RLock()


@dataclass(frozen=True, slots=True)
class Stat:
    """The pool table's entry of an object."""

    name: str
    size: int
    """Bytes."""
    address: int
    """Fixed virtual address."""
    reach: int
    """Bytes it can grow to."""
    state: Literal["D", "R", "W", "P", "C"]
    """D detached, R read, W written, P or C in the middle of a psync."""
    holder: int | None
    """Process that has it, if one has. Of several readers one."""
    other_readers: list[int]
    """The other processes that read it."""
    unseen_readers: int
    """How many processes beside those read it that this one may not see, at least."""
    needs_recovery: bool
    """Its last writer died; the next attach recovers it."""
    read_only: bool
    sparse: bool
    psyncs: int
    """Psyncs over its life that are durable now."""
    created: float
    """Seconds since 1970."""


class Pool(_indelible.Pool):
    """A pool: one formatted file or device full of named objects. Made by `open`; a context manager."""

    def list(self) -> list[Stat]:
        """The objects, sorted by name."""
        return sorted((Stat(**fields) for fields in self._list()), key=lambda stat: stat.name)

    def stat(self, name: str) -> Stat:
        """State, size, holder and so on of an object; NotFound if there is none."""
        return Stat(**self._stat(name))

    def __getitem__(self, name: str) -> Array | Dict | Object:
        """The content of the object `name`, for storing: an array, a dict, or its bytes if it is neither."""
        with _attaching:
            shared = self._shared(name)
            if isinstance(shared, Dict):
                return shared
            if shared is not None:
                return self.array(name)
            obj = self.attach(name)
            with memoryview(obj) as memory:
                begin = bytes(memory[:8])
            if begin == HEAP:
                obj.close()
                try:
                    return self.dict(name)
                except (NotAHeap, RootType):
                    return self.attach(name)
            if begin != MAGIC:
                return obj
            obj.close()
            return self.array(name)

    def __iter__(self) -> Iterator[str]:
        return (stat.name for stat in self.list())

    def __len__(self) -> int:
        return int(self.info()["objects"])

    def __bool__(self) -> bool:
        return True

    def __exit__(
        self,
        exception: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Psyncs the arrays and dicts that were taken from this pool and are still there, as one step, and closes. On an
        exception nothing is psynced.
        """
        if exception is None and not self.closed:
            with _attaching:
                mine = [found for found in _attached.values() if not found.closed and found.pool is self]
            writers = [found for found in mine if not found.readonly]
            if writers:
                psync_all(writers)
        super().__exit__(exception, value, traceback)

    def array(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        mode: Mode = "r+",
        order: Order | None = None,
        *,
        key: bytes | None = None,
        sparse: bool = False,
    ) -> Array:
        """The array in the object `name`: its elements are the object's bytes.

        Without an object of that name one is made, with `shape` (`dtype` float64 and `order` "C" unless
        given), all zero. With one, what is given must agree with it (Mismatch). A length of -1 along the
        first axis agrees with any, and is 0 for a new array: one that grows. Modes are those of
        `numpy.memmap`: "r+" stores, "r" only reads, beside other readers, and "w+" begins anew, losing
        what the object had. `sparse` claims space as elements are psynced.
        """
        _check(mode)
        with _attaching:
            shared = self._shared(name)
            if isinstance(shared, Object) and mode != "w+" and (mode == "r" or not shared.readonly):
                return self._open_array(shared, shape, dtype, mode, order)
            if mode == "w+" or (mode == "r+" and name not in self):
                wanted = _wanted(name, shape, dtype, order)
                self._make(name, _array.size_for(wanted), key, sparse, anew=mode == "w+")
            obj = self.attach(name, "r" if mode == "r" else "r+", key=key)
            try:
                if not obj.readonly and obj.psyncs == 0 and _is_blank(obj):
                    _format(obj, _wanted(name, shape, dtype, order))
                array = self._open_array(obj, shape, dtype, mode, order)
            except BaseException:
                # A traceback that somebody keeps would keep the object attached.
                obj.close()
                raise
            self._enter(name, obj)
            return array

    def dict(self, name: str, mode: Mode = "r+", *, size: int = 1 << 20, key: bytes | None = None) -> Dict:
        """The dict in the object `name`: from str to values as `Dict` has them.

        Without an object of that name one of `size` bytes is made; it grows as needed. Modes as for
        `array`.
        """
        _check(mode)
        if operator.index(size) <= 0:
            raise ValueError(f"a dict cannot be made in {size} bytes")
        with _attaching:
            shared = self._shared(name)
            if isinstance(shared, Dict) and mode != "w+" and shared.readonly == (mode == "r"):
                return shared
            if mode == "w+" or (mode == "r+" and name not in self):
                self._make(name, max(size, _LEAST), key, False, anew=mode == "w+")
            found = Dict(self, name, "r" if mode == "r" else "r+", key)
            self._enter(name, found)
            return found

    def checkpoints(self, name: str, *, last: int = 3, best: int = 1) -> Checkpoints:
        """Named states of a training loop, of which the `last` and the `best` are kept: see `Checkpoints`."""
        return Checkpoints(self.dict(name), last=last, best=best)

    def _shared(self, name: str) -> Object | Dict | None:
        found = _attached.get((self.id, name))
        return None if found is None or found.closed else found

    def _enter(self, name: str, found: Object | Dict) -> None:
        _attached[self.id, name] = found
        if found.recovered:
            _log.info(
                "recovered object %r of pool %s: its last writer died; %d bytes of its log were replayed",
                name, os.fspath(self.path), found.recovered,
            )  # fmt: skip

    def _make(self, name: str, size: int, key: bytes | None, sparse: bool, *, anew: bool) -> None:
        """Creates an object. With `anew`, in the place of one that there may be, which stays if that fails."""
        if not anew or name not in self:
            self.create(name, size, key=key, sparse=sparse)
            return
        made = name + "~new"
        if made in self:
            # A process died in the middle of this.
            self.remove(made, key=key)
        try:
            self.create(made, size, key=key, sparse=sparse)
        except (NoRoom, NoSpace):
            # There may be room when the old one is gone.
            if size > self.stat(name).size:
                raise
            self.remove(name, key=key)
            self.create(name, size, key=key, sparse=sparse)
            return
        try:
            self.remove(name, key=key)
        except BaseException:
            self.remove(made, key=key)
            raise
        self.rename(made, name, key=key)

    def _open_array(self, obj: Object, shape: Any, dtype: Any, mode: str, order: str | None) -> Array:
        found = _array.read_layout(obj)
        if _is_open(shape):
            shape = (found.shape[0] if found.shape else 0, *shape[1:])
        wanted = layout(
            found.shape if shape is None else shape,
            found.dtype if dtype is None else dtype,
            found.order if order is None else order,
        )
        if wanted != found:
            raise Mismatch(
                f"the array in object {obj.name!r} has {found}, and asked for was {wanted} (ask for what it has, or"
                " begin anew with mode 'w+')",
                operation="open",
                pool=os.fspath(self.path),
                object=obj.name,
            )
        return _array.over(obj, found, writable=mode != "r")


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


def _check(mode: str) -> None:
    if mode not in ("r", "r+", "w+"):
        raise ValueError(f"mode is 'r', 'r+' or 'w+', not {mode!r}")


def _wanted(name: str, shape: Any, dtype: Any, order: str | None) -> Layout:
    if shape is None:
        raise NotFound(
            f"there is no array {name!r}, and no shape was given to make one", operation="open", object=name
        )
    if _is_open(shape):
        shape = (0, *shape[1:])
    return layout(shape, "f8" if dtype is None else dtype, order or "C")


def _is_open(shape: Any) -> bool:
    """Whether the first axis may have any length."""
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == -1


def _is_blank(obj: Object) -> bool:
    """Whether nothing was stored yet: a process died between creating the object and its first psync."""
    with memoryview(obj) as memory:
        return not any(memory[: _array.DATA])


def _format(obj: Object, wanted: Layout) -> None:
    if obj.size < _array.size_for(wanted):
        obj.grow(_array.size_for(wanted))
    _array.write_layout(obj, wanted)
    obj.psync()
