"""The extension of IPython: `%load_ext indelible` shows after each cell which objects have changes
that no psync has made durable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ._unsynced import unsynced

_shown: set[str] = set()


class _Events(Protocol):
    def register(self, event: str, function: Callable[..., object]) -> None: ...
    def unregister(self, event: str, function: Callable[..., object]) -> None: ...


class _Shell(Protocol):
    """What IPython's shell has of it."""

    @property
    def events(self) -> _Events: ...


def load_ipython_extension(shell: _Shell) -> None:
    """Called by `%load_ext indelible`."""
    shell.events.register("post_run_cell", after_cell)


def unload_ipython_extension(shell: _Shell) -> None:
    """Called by `%unload_ext indelible`."""
    shell.events.unregister("post_run_cell", after_cell)


def after_cell(_result: object = None) -> None:
    """Shows changes that were not there after the cell before."""
    now = {name for name, _ in unsynced()}
    if now - _shown:
        print(f"not psynced yet: {', '.join(sorted(now))}")
    _shown.clear()
    _shown.update(now)
