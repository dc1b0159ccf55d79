"""A pool: objects by name, and what can be made of them."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any

from . import _array, _indelible
from ._array import Array
from ._dict import Dict
from ._errors import Mismatch, NoAddresses, NotFound
from ._indelible import Object
from ._layout import Layout, layout

# What of this process's arrays and dicts is attached, by pool and name: a second call shares it.
_attached: weakref.WeakValueDictionary[tuple[bytes, str], Object | Dict] = weakref.WeakValueDictionary()
_attaching = threading.RLock()
os.register_at_fork(after_in_child=lambda: _forget())


def _forget() -> None:
    """A child has none of it; another thread may have been attaching when the process was copied."""
    global _attaching
    _attaching = threading.RLock()


@dataclass(frozen=True, slots=True)
class Stat:
    """What the pool's table knows of an object."""

    name: str
    size: int
    """Bytes."""
    address: int
    """Fixed virtual address."""
    reach: int
    """Bytes it can grow to."""
    state: str
    """D detached, R read, W written, P or C in the middle of a psync."""
    holder: int | None
    """Process that has it, if one has."""
    needs_recovery: bool
    """Its last writer died; the next attach recovers it."""
    read_only: bool
    sparse: bool
    psyncs: int
    """Psyncs over its life, as of the last checkpoint."""
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

    def array(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        mode: str = "r+",
        order: str | None = None,
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
        if mode not in ("r", "r+", "w+"):
            raise ValueError(f"mode is 'r', 'r+' or 'w+', not {mode!r}")
        with _attaching:
            shared = self._shared(name)
            if isinstance(shared, Object) and mode != "w+" and (mode == "r" or not shared.readonly):
                return self._open_array(shared, shape, dtype, mode, order)
            if mode == "w+" and name in self:
                self.remove(name, key=key)
            if mode != "r" and name not in self:
                wanted = _wanted(name, shape, dtype, order)
                self._create(name, _array.size_for(wanted), key, sparse)
            obj = self.attach(name, "r" if mode == "r" else "r+", key=key)
            try:
                if not obj.readonly and obj.psyncs == 0 and _is_blank(obj):
                    _format(obj, _wanted(name, shape, dtype, order))
                array = self._open_array(obj, shape, dtype, mode, order)
            except BaseException:
                # A traceback that somebody keeps would keep the object attached.
                obj.close()
                raise
            _attached[self._key(name)] = obj
            return array

    def dict(self, name: str, mode: str = "r+", *, size: int = 1 << 20, key: bytes | None = None) -> Dict:
        """The dict in the object `name`: str to int, float, bool, str, bytes, None or a numpy array.

        Without an object of that name one of `size` bytes is made; it grows as needed. Modes as for
        `array`.
        """
        if mode not in ("r", "r+", "w+"):
            raise ValueError(f"mode is 'r', 'r+' or 'w+', not {mode!r}")
        with _attaching:
            shared = self._shared(name)
            if isinstance(shared, Dict) and mode != "w+" and shared.readonly == (mode == "r"):
                return shared
            if mode == "w+" and name in self:
                self.remove(name, key=key)
            if mode != "r" and name not in self:
                self._create(name, size, key, False)
            found = Dict(self._attach_heap(name, "r" if mode == "r" else "r+", key))
            _attached[self._key(name)] = found
            return found

    def _key(self, name: str) -> tuple[bytes, str]:
        return self.id, name

    def _shared(self, name: str) -> Object | Dict | None:
        found = _attached.get(self._key(name))
        return None if found is None or found.closed else found

    def _create(self, name: str, size: int, key: bytes | None, sparse: bool) -> None:
        """Creates with room to grow; with as much as the pool thinks right if addresses are short."""
        reach = max(8 * size, min(self.info()["length"], 1 << 30))
        try:
            self.create(name, size, key=key, sparse=sparse, reach=reach)
        except NoAddresses:
            self.create(name, size, key=key, sparse=sparse)

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
    medium: str = "auto",
    tracking: str = "auto",
    allow_remote: bool = False,
) -> Pool:
    """Opens the pool at `path`. If there is none, formats one of `size` bytes there; NoPool without a size.

    The file is sparse: space is claimed as objects need it. `medium` ("auto", "file", "memory", "dax",
    "devdax") forces what the path is taken for, `tracking` ("auto", "wp-async", "mprotect") how stores
    are noticed; `allow_remote` accepts network file systems, whose locks may not exclude other machines.
    """
    return Pool(path, size, read_only=read_only, medium=medium, tracking=tracking, allow_remote=allow_remote)


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
