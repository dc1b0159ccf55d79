"""Objects that are made under another name and renamed when they are whole.

That name has a check of itself, so that no object of a user is taken for an unfinished one. A maker
that dies leaves such an object, which the next one to open or make the array or dict removes.

Lock: the pool's file, by flock, which the store itself does not use. Makers hold it shared. While a
process holds it exclusively, none makes an object, and each unfinished one is a leftover. The
operating system ends the lock of a process that dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from ._errors import Error

if TYPE_CHECKING:
    from ._indelible import Pool

# Bytes of a name that an unfinished object's name has of it.
_LONGEST = 400


def names(name: str) -> Iterator[str]:
    """The names of unfinished objects that are to have this name."""
    check = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    begin = name.encode()[:_LONGEST].decode(errors="ignore")
    return (f"{begin}~new {number} {check}" for number in itertools.count())


def clean(pool: Pool, name: str, key: bytes | None) -> None:
    """Removes what makers that died have left, unless an object is being made."""
    if next(names(name)) in pool:
        with _lock(pool) as fd:
            _clean(pool, name, key, fd)


@contextlib.contextmanager
def making(pool: Pool, name: str, key: bytes | None) -> Generator[str]:
    """A free name for an object that is made in the block, and gets the name at its end."""
    with _lock(pool) as fd:
        _clean(pool, name, key, fd)
        with contextlib.suppress(OSError):
            if fd is not None:
                fcntl.flock(fd, fcntl.LOCK_SH)
        yield next(made for made in names(name) if made not in pool)


def _clean(pool: Pool, name: str, key: bytes | None, fd: int | None) -> None:
    try:
        if fd is None:
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # An object is being made, or the file system has no such locks.
        return
    for left in itertools.takewhile(pool.__contains__, names(name)):
        # Those that a copy or backup is reading, or that have another key, stay.
        with contextlib.suppress(Error):
            pool.remove(left, key=key)


@contextlib.contextmanager
def _lock(pool: Pool) -> Generator[int | None]:
    """A descriptor to lock; None where the file cannot be opened: then nothing is removed."""
    try:
        file = open(pool.path, "rb", buffering=0)
    except OSError:
        yield None
        return
    with file:
        try:
            yield file.fileno()
        finally:
            # A child process may have a copy of the descriptor.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
