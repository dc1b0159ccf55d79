"""Programs that `pmo run` starts in a view, and starts again after their death."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ._errors import Error
from ._open import open
from ._views import AttachedView

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Left:
    """An object that a program's death concerns."""

    slot: int
    """Its slot in the view."""
    name: str
    psyncs: int
    """Psyncs that it has had, over its life: it is as the last of them left it."""
    in_use: bool
    """Whether the process had it for stores when it died. Stores after the last psync are lost; whether there were any is not known."""
    gone: bool
    """Whether it is volatile and the machine was started anew: it has no contents, and cannot be used."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a program comes to run again."""

    restarts: int
    """How often it was started again by the `pmo run` that started it; 0: its death is found by a new one, after a reboot for example."""
    process: int | None
    """ID of the process that died, if that is known."""
    signal: int | None
    """Signal that ended it, if that is known."""
    objects: list[Left]
    """The objects of the view that it had, or that are gone."""


def resume(start: Callable[[AttachedView], _R], resume: Callable[[AttachedView, Resumed], _R]) -> _R:
    """Runs `start` in the view that `pmo run --view` names, or `resume` in its place where an earlier process that ran in the view died: by a signal, a crash, or with the power. Then it is told
    what was lost. The objects of the view are recovered as they are used.

    Programs that `pmo run` starts begin with it. Error of the kind "Unsuitable": the program was not started by `pmo run`.
    """
    path = os.environ.get("PMO_POOL")
    if path is None or "PMO_VIEW" not in os.environ:
        raise Error(
            "cannot start in a view: PMO_POOL and PMO_VIEW are not set (start the program with `pmo run`)",
            kind="Unsuitable",
            operation="start in a view",
        )
    view = AttachedView(open(path), None, [])
    how = view._resumed
    if how is None:
        return start(view)
    restarts, process, signal, objects = how
    return resume(view, Resumed(restarts, process, signal, [Left(*left) for left in objects]))
