"""Arrays, dicts and pools in pickles: by path and name, so that another process attaches the object
and nothing is copied.
"""

from __future__ import annotations

import copy
import os
import weakref
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _homes
from ._errors import Error, Mismatch, NotFound
from ._indelible import Dict as NativeDict
from ._indelible import Object

if TYPE_CHECKING:
    from ._pool import Pool

Mode = Literal["r", "r+"]
_Reduced = tuple[Any, tuple[Any, ...]]

# Pools that pickles have opened, as long as something of them is in use.
_opened: weakref.WeakValueDictionary[str, Pool] = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_opened.clear)


class ByName:
    """An array or dict for a pickle, to be opened in a given mode where it is loaded: made by
    `Array.by_name` and `Dict.by_name`. Its pickle is loaded as the array or dict.
    """

    def __init__(self, reduced: _Reduced) -> None:
        self._reduced = reduced

    def __reduce__(self) -> _Reduced:
        return self._reduced

    def __repr__(self) -> str:
        _, name, *_, mode, _ = self._reduced[1][:6]
        return f"<indelible.ByName {name!r}, mode {mode!r}>"


def reduce_array(array: np.ndarray[Any, Any], obj: Object, mode: Mode = "r") -> _Reduced:
    """The pickle of an array in the memory of an object. Error: it cannot be known by a name."""
    at = int(array.__array_interface__["data"][0]) - obj.address
    place = (at, array.shape, array.strides, array.dtype)
    return _array_again, (*_named(obj, mode), place)


def reduce_dict(of: NativeDict, mode: Mode = "r") -> _Reduced:
    """The pickle of a dict. Error: it cannot be known by a name."""
    return _dict_again, _named(of, mode)


def reduce_pool(pool: Pool) -> _Reduced:
    """The pickle of a pool."""
    if pool.closed:
        raise TypeError("a closed pool cannot be pickled")
    return _pool_again, (os.path.abspath(pool.path), pool.id, vars(pool).get("_options", {}))


def _named(obj: Object | NativeDict, mode: Mode) -> tuple[Any, ...]:
    pool: Any = obj.pool
    if obj._is_unsynced():
        raise Error(
            f"object {obj.name!r} has changes that were not psynced: other processes do not see"
            " them"
            " (psync it first)",
            kind="Unsynced",
            operation="pickle",
            object=obj.name,
        )
    home, stat = _homes.of(obj), pool.stat(obj.name)
    if home is None or home.keyed or stat.sealed or stat.id != home.id:
        raise Error(
            f"object {obj.name!r} cannot be opened by its name alone: it needs a key, or the name"
            " is that"
            " of another object by now",
            kind="Unnamed",
            operation="pickle",
            object=obj.name,
        )
    # The psync tells a program that hashes pickles that something has changed.
    return pool, obj.name, stat.id, stat.psyncs, mode, home.lock


def _array_again(
    pool: Pool, name: str, id: str, _psyncs: int, mode: Mode, lock: bool, place: Any
) -> Any:
    from ._array import Array, owner

    _expect(pool, name, id)
    obj = owner(pool.array(name, mode=mode, lock=lock and mode == "r"))
    offset, shape, strides, dtype = place
    memory = np.frombuffer(memoryview(obj), np.uint8)
    made = np.ndarray.__new__(Array, shape, dtype, memory, offset, strides)
    if mode == "r":
        made.flags.writeable = False
    return made


def _dict_again(
    pool: Pool, name: str, id: str, _psyncs: int, mode: Mode, lock: bool
) -> Any:
    from . import _registry

    _expect(pool, name, id)
    own = _registry.find(pool, name, "store")
    if mode == "r" and isinstance(own, NativeDict):
        # A change of the loaded value does not change the object.
        return copy.deepcopy(own)
    beside = _registry.find(pool, name, "follow") is not None
    return pool.dict(name, mode, lock=lock and mode == "r" and not beside)


def _pool_again(path: str, id: bytes, options: dict[str, Any]) -> Pool:
    from ._open import open

    pool = _opened.get(path)
    if pool is None or pool.closed or pool.id != id:
        options = {**options, "read_only": options.get("read_only", False) or not os.access(path, os.W_OK)}
        pool = _opened[path] = open(path, **options)
    if pool.id != id:
        raise Mismatch(
            f"pool {path} is another one than the pickle was made of", operation="open", pool=path
        )
    return pool


def _expect(pool: Pool, name: str, id: str) -> None:
    if pool.stat(name).id != id:
        raise NotFound(
            f"object {name!r} of pool {os.fspath(pool.path)} is another one than the pickle was made of:"
            " that one is gone",
            operation="open",
            pool=os.fspath(pool.path),
            object=name,
        )
