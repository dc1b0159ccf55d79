"""Warnings of changes that are lost: once for each object and line that opened it. The end of the
interpreter, which warns as well, or psyncs a pool.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._pool import Pool

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Warnings that were shown, as `warnings` keeps them.
_told: dict[Any, Any] = {}


class UnsyncedWarning(ResourceWarning):
    """Changes that were not psynced are lost, of the object that was opened at the line that the
    warning names. It is shown unless a filter
    says otherwise, once for each such line.
    """


def line() -> tuple[str, int] | None:
    """The line of the program that calls the package now."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def warn(what: str, opened: tuple[str, int] | None) -> None:
    """Says that the changes of an object are lost, which was opened at a line."""
    file, number = opened or line() or ("<unknown>", 0)
    text = (
        f"{what} is detached with changes that were not psynced: they are lost; this line has opened it"
        " (psync it, or use it or its pool in a with block)"
    )
    warnings.warn_explicit(text, UnsyncedWarning, file, number, "indelible", _told)


def unsynced() -> list[tuple[str, tuple[str, int] | None]]:
    """Names of objects of this process that have changes, and the lines that opened them."""
    from . import _homes, _registry

    found = []
    for (_, name, purpose), held in list(_registry._attached.items()):
        changed = getattr(held, "_is_unsynced", None)
        if purpose == "store" and changed is not None and not held.closed and changed():
            home = _homes.of(held)
            found.append((name, None if home is None else home.opened))
    return found


def _warn_at_exit() -> None:
    for name, opened in unsynced():
        # As the native half names objects: the same warning is shown once.
        warn("object " + json.dumps(name, ensure_ascii=False), opened)


def psync_at_exit(pool: Pool) -> None:
    """Makes all durable that a pool has opened, when the interpreter ends without an exception."""
    process = os.getpid()
    pool.__enter__()

    def leave() -> None:
        if os.getpid() != process or pool.closed:
            return
        # An interactive session goes on after an exception.
        failed = None if hasattr(sys, "ps1") or sys.flags.interactive else getattr(sys, "last_value", None)
        pool.__exit__(type(failed) if failed is not None else None, failed, None)

    atexit.register(leave)


def show() -> None:
    """Python hides warnings about resources unless it is told otherwise."""
    atexit.register(_warn_at_exit)
    if not sys.warnoptions:
        warnings.simplefilter("default", UnsyncedWarning)
