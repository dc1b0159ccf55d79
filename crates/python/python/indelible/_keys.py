"""Bytes by keys in the dict of a pool, for stores of other libraries: each change is durable when
it returns, those of a group become durable together.

Lock: `_lock` is held by each change, so that a psync has all of a change or nothing.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from . import _registry
from ._dict import Dict
from ._errors import NotFound

if TYPE_CHECKING:
    from ._pool import Pool


class Keys:
    """The keys of one dict. A process that only reads follows the one that stores."""

    def __init__(self, pool: Pool, name: str) -> None:
        self.pool, self.name = pool, name
        self._lock = threading.RLock()
        self._groups = 0
        self._own: Dict | None = None
        self._followed: Dict | None = None

    def get(self, key: str) -> bytes | None:
        """The bytes of a key."""
        with self._lock:
            found = self._reading()
            return None if found is None else found.get(key)

    def names(self) -> list[str]:
        """All keys."""
        with self._lock:
            found = self._reading()
            return [] if found is None else list(found)

    def __contains__(self, key: str) -> bool:
        with self._lock:
            found = self._reading()
            return found is not None and key in found

    def change(self, items: Mapping[str, bytes], gone: Iterable[str] = ()) -> None:
        """Sets and deletes keys, as one step."""
        with self._lock:
            into = self._writing()
            into.update(items)
            for key in gone:
                into.pop(key, None)
            if not self._groups:
                into.psync()

    def set_new(self, key: str, value: bytes) -> None:
        """Sets a key that there is not."""
        with self._lock:
            if key not in self:
                self.change({key: value})

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Changes within become durable at its end, by one psync, those of other threads included;
        on an exception none of them happens.
        """
        with self._lock:
            into = self._writing()
            self._groups += 1
        try:
            yield
        except BaseException:
            with self._lock:
                self._groups -= 1
                into.revert()
            raise
        with self._lock:
            self._groups -= 1
            if not self._groups:
                into.psync()

    def close(self) -> None:
        """Lets go of the dict; it is opened again when it is used."""
        with self._lock:
            own, self._own, self._followed = self._own, None, None
            if own is not None and not own.closed:
                own.close()

    def _reading(self) -> Dict | None:
        known = _registry.find(self.pool, self.name, "store")
        if isinstance(known, Dict):
            return known
        try:
            if self._followed is None or self._followed.closed:
                self._followed = self.pool.dict(self.name, "r")
            self._followed.refresh()
        except NotFound:
            self._followed = None
        return self._followed

    def _writing(self) -> Dict:
        if self._own is None or self._own.closed:
            if self._followed is not None and not self._followed.closed:
                # A process has a dict at its addresses once.
                self._followed.close()
                self._followed = None
            self._own = self.pool.dict(self.name)
        return self._own


_all: weakref.WeakValueDictionary[tuple[bytes, str], Keys] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def keys(pool: Pool, name: str) -> Keys:
    """The keys of a dict, once in a process: a group holds for all that use them."""
    with _lock:
        found = _all.get((pool.id, name))
        if found is None or found.pool.closed:
            found = _all[pool.id, name] = Keys(pool, name)
        return found
