"""Exceptions: one base, a class for each kind that programs tell apart, and the rest by `kind`."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn


class Error(Exception):
    """A failed operation: `str()` names it, the cause and the remedy.

    `kind` is the kind of the cause, `code` its stable number (0: an error of this package alone);
    `operation`, `pool` and `object` name the operation and its target. Those that are an OSError
    have `errno`, `strerror` and `filename`, the pool's.
    """

    number: ClassVar[int | None] = None
    kind: str
    code: int
    operation: str | None
    pool: str | None
    object: str | None

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        code: int = 0,
        operation: str | None = None,
        pool: str | None = None,
        object: str | None = None,
    ) -> None:
        super().__init__(message)
        self.args = (message,)
        self.kind = kind or type(self).__name__
        self.code = code
        self.operation = operation
        self.pool = pool
        self.object = object
        if isinstance(self, OSError):
            for name, value in (("errno", self.number), ("strerror", message), ("filename", pool)):
                setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        about = {"kind": self.kind, "code": self.code, "operation": self.operation, "pool": self.pool}
        return _again, (type(self), str(self), {**about, "object": self.object})

    def __str__(self) -> str:
        return str(self.args[0])


def _again(kind: type[Error], message: str, about: dict[str, Any]) -> Error:
    """An error that was pickled."""
    return kind(message, **about)


class AfterCommit(ExceptionGroup[Exception]):
    """A transaction committed, but functions given to `Tx.on_commit` failed: their errors. All
    functions were called.
    """

    def derive(self, excs: Sequence[Exception]) -> AfterCommit:  # type: ignore[override]
        return AfterCommit(self.message, excs)


def raise_after_commit(errors: list[BaseException]) -> NoReturn:
    """Raises the errors of functions that ran after a commit: an interrupt or exit by itself, with the others as its context."""
    message = "the transaction has committed, and functions given to on_commit failed"
    plain = [error for error in errors if isinstance(error, Exception)]
    for error in errors:
        if not isinstance(error, Exception):
            if plain:
                error.__context__ = AfterCommit(message, plain)
            raise error
    raise AfterCommit(message, plain)


class NoPool(Error, FileNotFoundError):
    """There is no pool at that path, and no size was given to make one."""

    number = errno.ENOENT


class PoolExists(Error, FileExistsError):
    """There is a pool already."""

    number = errno.EEXIST


class NotFound(Error, KeyError):
    """No such object."""


class Exists(Error, ValueError):
    """An object of that name exists, or the object holds something else."""


class BadName(Error, ValueError):
    """The name cannot be used."""


class BadSize(Error, ValueError):
    """The size cannot be used."""


class DifferentPools(Error, ValueError):
    """Objects of different pools cannot change in one atomic step: psync those of each pool by themselves."""


class Mismatch(Error, ValueError):
    """The array is of another shape, type or order than asked for."""


class Closed(Error, ValueError):
    """A closed pool, array or dict was used."""


class Held(Error, BlockingIOError):
    """Another process, or another part of this process, has the object attached."""

    number = errno.EAGAIN


class Forked(Error, RuntimeError):
    """This process is a fork of the one that opened or attached."""


class Version(Error):
    """Made by a newer version of this software."""


class Damaged(Error, ValueError):
    """Bytes contradict themselves."""


class NotAHeap(Error, ValueError):
    """The object holds no dict."""


class RootType(Error, ValueError):
    """The object's heap holds something else."""


class Poisoned(Error, OSError):
    """An earlier write to the medium failed: close the pool's objects and attach them again, which recovers
    every psync that was acknowledged."""

    number = errno.EIO


class Io(Error, OSError):
    """The operating system failed. A psync took effect as a whole or not at all: attach again to see."""

    number = errno.EIO


class Gone(Error, OSError):
    """The pool's file was truncated, deleted or replaced."""

    number = errno.ESTALE


class VolatileGone(Error, LookupError):
    """The object is volatile, and the machine has rebooted since it was made."""


class TieCycle(Error, ValueError):
    """The two objects would each outlive the other."""


class TooManyTies(Error, ValueError):
    """The object is tied to as many others as one can be."""


class Conflict(Error, RuntimeError):
    """The transaction conflicts with another one: its function runs again after it ends, whatever it does."""


class InTransaction(Error, RuntimeError):
    """A transaction runs on this thread: make the call before or after it."""


class ClassMismatch(Error, ValueError):
    """The object is, or would be, of a durability class that does not fit."""


class ReadOnly(Error, PermissionError):
    """The pool or object may only be read."""

    number = errno.EACCES


class ObjectReadOnly(ReadOnly):
    """The object is permanently read-only."""


class WrongKey(Error, PermissionError):
    """The key does not match."""

    number = errno.EACCES


class Sealed(Error, PermissionError):
    """The object is sealed and needs a seal key; or the key is unusable or unavailable; or sealed
    objects lack this operation.
    """

    number = errno.EACCES


class Denied(Error, PermissionError):
    """No security context of the program allows the access."""

    number = errno.EACCES


class Dangling(Error, LookupError):
    """A far pointer leads nowhere: it is null, its target is in no pool of the space, or the target
    is too short.
    """


class PoolBehind(Error, ValueError):
    """A sealed object's state is older than its anchor's record: it was put back."""


class AnchorBehind(Error, ValueError):
    """A sealed object was changed without its anchor, or the anchor was put back to an older state."""


class NoSpace(Error, OSError):
    """The medium or its file system is full."""

    number = errno.ENOSPC


class NoRoom(Error, MemoryError):
    """The pool has no piece large enough."""


class NoAddresses(NoRoom):
    """The pool has no addresses for an object of that size."""


class HeapFull(NoRoom):
    """The dict's object is full and cannot grow."""


def of_kind(kind: str, message: str, **about: Any) -> Error:
    """The exception for an error of the native half."""
    found = globals().get(kind)
    known = found if isinstance(found, type) and issubclass(found, Error) else Error
    return known(message, kind=kind, **about)
