"""Warnings of changes that are lost: once for each object and line that opened it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

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


def show() -> None:
    """Python hides warnings about resources unless it is told otherwise."""
    if not sys.warnoptions:
        warnings.simplefilter("default", UnsyncedWarning)
