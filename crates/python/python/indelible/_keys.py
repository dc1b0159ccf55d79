"""Bytes by keys in the dict of a pool, for stores of other libraries: each change is durable when
it returns, those of a group become durable together.

A group is a buffer. It belongs to the thread or task that began it and to tasks started in that
context; other threads neither see its changes nor add to them. The end of the group makes them one
change of the dict, or of the group around it.

Lock: `_lock` is held by each change, so that a psync has all of a change or nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from . import _registry
from ._dict import Dict
from ._errors import NotFound

if TYPE_CHECKING:
    from ._pool import Pool

_Value = bytes | None
_Later = Callable[[_Value], _Value]
# The new value of a key, None to remove it, or functions that compute it from the present value.
_Change = _Value | tuple[_Later, ...]


class _Group:
    """Changes that are not in the dict yet, by keys."""

    def __init__(self, keys: Keys, outer: _Group | None) -> None:
        self.keys, self.outer = keys, outer
        self.changes: dict[str, _Change] = {}
        self.ended = False
        # Run at the block's end, as the last part of it.
        self.at_end: list[Callable[[], None]] = []
        self.block: Callable[[], Generator[None] | None] = lambda: None

    def is_open(self) -> bool:
        """Whether its block runs. Python ends that as one step, also at an interrupt."""
        block = self.block()
        return not self.ended and getattr(block, "gi_frame", None) is not None

    def take(self, changes: Mapping[str, _Change]) -> None:
        known = self.changes
        known.update(
            {key: _after(known.get(key, ()), each, True) for key, each in changes.items()}
        )


class _New:
    """Sets a key that must not exist when the change is stored."""

    def __init__(self, key: str, value: bytes) -> None:
        self.key, self.value = key, value

    def __call__(self, _now: _Value) -> bytes:
        return self.value

    def check(self, now: _Value) -> None:
        if now is not None:
            raise FileExistsError(errno.EEXIST, "it was made by another writer", self.key)


_innermost: contextvars.ContextVar[_Group | None] = contextvars.ContextVar("group", default=None)


class Keys:
    """The keys of one dict. A process that only reads follows the one that stores."""

    def __init__(self, pool: Pool, name: str) -> None:
        self.pool, self.name = pool, name
        self._lock = threading.RLock()
        self._own: Dict | None = None
        self._followed: Dict | None = None
        # A change of the dict has begun, and is not durable.
        self._half = False

    def get(self, key: str) -> bytes | None:
        """The bytes of a key."""
        with self._lock:
            later: tuple[_Later, ...] = ()
            for group in self._groups():
                change = _after(group.changes.get(key, ()), later, False)
                if not isinstance(change, tuple):
                    return change
                later = change
            found = self._reading()
            return _value(later, None if found is None else found.get(key), False)

    def names(self) -> list[str]:
        """All keys."""
        with self._lock:
            found = self._reading()
            there = [] if found is None else list(found)
            changed = {key for group in self._groups() for key in group.changes}
            if not changed:
                return there
            names = dict.fromkeys([*there, *sorted(changed)])
            return [key for key in names if key not in changed or self.get(key) is not None]

    def __contains__(self, key: str) -> bool:
        with self._lock:
            if next(self._groups(), None) is not None:
                return self.get(key) is not None
            found = self._reading()
            return found is not None and key in found

    def change(self, items: Mapping[str, bytes], gone: Iterable[str] = ()) -> None:
        """Sets and deletes keys, as one step."""
        self._take({**items, **dict.fromkeys(gone)})

    def set_new(self, key: str, value: bytes) -> None:
        """Sets a key if there is none."""
        self._take({key: (lambda now: value if now is None else now,)})

    def append(self, key: str, more: bytes) -> None:
        """Appends to the bytes of a key, whatever these are by then."""
        self._take({key: (lambda now: (now or b"") + more,)})

    def create(self, key: str, value: bytes) -> None:
        """Sets a key that does not exist. FileExistsError: it does, also when the group ends."""
        with self._lock:
            new = _New(key, value)
            new.check(self.get(key))
            self._take({key: (new,)})

    def current(self) -> _Group | None:
        """The group that takes changes here."""
        return next(self._groups(), None)

    def within(self, group: _Group | None, what: str, body: Callable[[], None]) -> None:
        """Runs the body, which writes `what`, as if it were where `current` returned the group; no
        other thread's change comes between its steps. ValueError: the group has ended.
        """
        with self._lock:
            if group is not None and not group.is_open():
                raise ValueError(
                    f"cannot write {what}: the transaction or group in which it was opened has"
                    " ended (close it before that ends)"
                )
            contextvars.copy_context().run(_run_in, group, body)

    def group(self) -> contextlib.AbstractContextManager[None]:
        """Changes within become durable at its end, as one step; on an exception none of them
        happens. The changes are those of the block and of tasks started in its context, as asyncio
        does; other threads do not see them before the end.
        """
        outer = _innermost.get()
        while outer is not None and not outer.is_open():
            # An interrupt kept it from being forgotten.
            outer = outer.outer
        group = _Group(self, outer)
        block = self._block(group)
        group.block = weakref.ref(block.gen)
        return block

    @contextlib.contextmanager
    def _block(self, group: _Group) -> Generator[None]:
        with self._lock:
            # Fails at once if another process stores to the dict.
            self._writing()
        try:
            _innermost.set(group)
            yield
            for each in group.at_end:
                each()
        finally:
            if _innermost.get() is group:
                _innermost.set(group.outer)
        with self._lock:
            group.ended = True
            self._take(group.changes)

    def close(self) -> None:
        """Lets go of the dict; it is opened again when it is used. It is closed unless something
        else in this process has it.
        """
        with self._lock:
            self._own = self._followed = None

    def _groups(self) -> Iterator[_Group]:
        """The open groups of these keys, the innermost first."""
        group = _innermost.get()
        while group is not None:
            if group.keys is self and group.is_open():
                yield group
            group = group.outer

    def _take(self, changes: Mapping[str, _Change]) -> None:
        with self._lock:
            for group in self._groups():
                group.take(changes)
                return
            if changes:
                self._store(changes)

    def _store(self, changes: Mapping[str, _Change]) -> None:
        into = self._writing()
        new = {
            key: _value(change, into.get(key), True) if isinstance(change, tuple) else change
            for key, change in changes.items()
        }
        try:
            self._half = True
            into.update({key: value for key, value in new.items() if value is not None})
            for key, value in new.items():
                if value is None:
                    into.pop(key, None)
            into.psync()
            self._half = False
        finally:
            self._whole(into)

    def _whole(self, dict: Dict) -> Dict:
        """The dict without a change that an error or interrupt has ended."""
        if self._half:
            dict.revert()
            self._half = False
        return dict

    def _reading(self) -> Dict | None:
        known = _registry.find(self.pool, self.name, "store")
        if isinstance(known, Dict):
            return self._whole(known)
        try:
            if self._followed is None or self._followed.closed:
                self._followed = self.pool.dict(self.name, "r")
            self._followed.refresh()
        except NotFound:
            self._followed = None
        return self._followed

    def _writing(self) -> Dict:
        if self._own is None or self._own.closed:
            # A process has a dict at its addresses once.
            self._followed = None
            self._own = self.pool.dict(self.name)
        return self._whole(self._own)


def _run_in(group: _Group | None, body: Callable[[], None]) -> None:
    _innermost.set(group)
    body()


def _value(change: tuple[_Later, ...], now: _Value, checked: bool) -> _Value:
    """The value after the change; `checked`: unless it is of a new key that exists."""
    for each in change:
        if checked and isinstance(each, _New):
            each.check(now)
        now = each(now)
    return now


def _after(first: _Change, second: _Change, checked: bool) -> _Change:
    """The first change, and then the second one."""
    if not isinstance(second, tuple):
        return second
    return first + second if isinstance(first, tuple) else _value(second, first, checked)


_all: weakref.WeakValueDictionary[tuple[bytes, str], Keys] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def keys(pool: Pool, name: str) -> Keys:
    """The keys of a dict, once in a process: a group holds for all that use them."""
    with _lock:
        found = _all.get((pool.id, name))
        if found is None or found.pool.closed:
            found = _all[pool.id, name] = Keys(pool, name)
        return found


def _renew() -> None:
    """Another thread may have held the locks when the process was copied."""
    global _lock
    _lock = threading.Lock()
    for found in _all.values():
        found._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)
