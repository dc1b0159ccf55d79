"""This process's attached arrays and dicts, by pool, name and purpose: a second call shares them."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Literal

from . import _indelible
from ._dict import Dict
from ._indelible import Object

Purpose = Literal["store", "follow", "lock"]
"""To store; to read beside a writer; to read with a lock that keeps writers away."""

# Pools by their ID: a copy of a pool has the same, and cannot be opened beside it.
_attached: weakref.WeakValueDictionary[tuple[bytes, str, Purpose], Object | Dict] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _forget() -> None:
    """A child may read on what it has of its parent, but not refresh it: it attaches what is newest by itself. Another thread may have
    been attaching when the process was copied.
    """
    global _lock
    _lock = threading.RLock()
    for key, found in list(_attached.items()):
        if key[2] == "follow" and isinstance(found, Object):
            del _attached[key]


os.register_at_fork(after_in_child=_forget)


def attaching() -> threading.RLock:
    """The lock that is held from looking for an attachment to entering a new one."""
    return _lock


def find(pool: _indelible.Pool, name: str, purpose: Purpose) -> Object | Dict | None:
    """What is attached for a purpose, and not closed. The name may be that of another object by now."""
    found = _attached.get((pool.id, name, purpose))
    return None if found is None or found.closed else found


def enter(pool: _indelible.Pool, name: str, purpose: Purpose, found: Object | Dict) -> None:
    """Enters an attachment, until nobody refers to it."""
    _attached[pool.id, name, purpose] = found


def writers(pool: _indelible.Pool) -> list[Object | Dict]:
    """What is attached to store, of those that were taken from this very handle."""
    with attaching():
        found = list(_attached.values())
        return [each for each in found if not each.closed and not each.readonly and each.pool is pool]
