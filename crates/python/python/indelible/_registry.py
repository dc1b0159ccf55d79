"""This process's attached arrays and dicts, by pool, name and purpose: a second call shares them."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from . import _homes, _indelible, _unsynced
from ._dict import Dict
from ._errors import InTransaction, NotFound
from ._indelible import Object
from ._transactions import TxArray
from ._views import SecurityContext, View

Purpose = Literal["store", "follow", "lock", "log", "view", "context", "transactional"]
"""To store; to read beside a writer; to read with a lock that keeps writers away; other things that
are open once in a process.
"""

Held = Object | Dict | _indelible.Log | View | SecurityContext | TxArray
_H = TypeVar("_H", Object, _indelible.Log, View, SecurityContext, TxArray)

# Pools by their ID: a copy of a pool has the same, and cannot be opened beside it.
_Key = tuple[bytes, str, Purpose]
_attached: weakref.WeakValueDictionary[_Key, Held] = weakref.WeakValueDictionary()
# Address of the object, as another one may have the name by now, and the key that opened it.
_opened: dict[_Key, tuple[int, bytes | None]] = {}
_lock = threading.RLock()
_saving: dict[tuple[bytes, str], threading.RLock] = {}


def _forget() -> None:
    """A child may read on what it has of its parent, but not refresh it: it attaches what is newest by itself. Another thread may have
    been attaching when the process was copied.
    """
    global _lock
    _lock = threading.RLock()
    _saving.clear()
    for key, found in list(_attached.items()):
        if key[2] == "follow" and isinstance(found, Object):
            del _attached[key]


os.register_at_fork(after_in_child=_forget)


def attaching() -> threading.RLock:
    """The lock that is held from looking for an attachment to entering a new one."""
    return _lock


def saving(pool: _indelible.Pool, name: str) -> threading.RLock:
    """The lock that is held while a checkpoint is saved in the dict of that name."""
    return _saving.setdefault((pool.id, name), threading.RLock())


def find(pool: _indelible.Pool, name: str, purpose: Purpose) -> Held | None:
    """What is attached for a purpose, and not closed. The name may be that of another object by now."""
    found = _attached.get((pool.id, name, purpose))
    return None if found is None or found.closed else found


def once(
    pool: _indelible.Pool,
    name: str,
    purpose: Purpose,
    open: Callable[[], _H],
    key: bytes | None = None,
) -> _H:
    """The thing that is open for a purpose, or else the result of `open`: also if the thing was
    opened by another key than the given one.
    """
    at = (pool.id, name, purpose)
    with attaching():
        found: Any = find(pool, name, purpose)
        address, other = _opened.get(at, (0, None))
        if found is not None and _address(pool, name) == address and key in (None, other):
            return cast(_H, found)
        expect_no_transaction(pool, name)
        made = open()
        _attached[at] = made
        _opened[at] = _address(pool, name), key
        return made


def expect_no_transaction(pool: _indelible.Pool, name: str) -> None:
    """InTransaction in the middle of one, before anything is made that would stay without being of
    use.
    """
    if _indelible._in_transaction():
        raise InTransaction(
            f"cannot open object {name!r} in a transaction (open it before)",
            operation="open",
            pool=os.fspath(pool.path),
            object=name,
        )


def _address(pool: _indelible.Pool, name: str) -> int:
    try:
        return int(pool._stat(name)["address"])
    except NotFound:
        return 0


def enter(
    pool: _indelible.Pool, name: str, purpose: Purpose, found: Object | Dict, keyed: bool = False
) -> None:
    """Enters an attachment, until its last reference is gone."""
    _attached[pool.id, name, purpose] = found
    try:
        id = pool._stat(name)["id"]
    except NotFound:
        # Deleted since.
        return
    _homes.enter(found, _homes.Home(id, purpose == "lock", keyed, _unsynced.line()))
