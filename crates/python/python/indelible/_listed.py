"""A pool as a mapping of names to what its objects hold, and as a table in a notebook."""

from __future__ import annotations

import html
import os
from collections.abc import ItemsView, KeysView, ValuesView
from typing import Any

from . import _notebook
from ._table import Stat


class Listed:
    """The part of a pool that a mapping has besides its items."""

    def keys(self: Any) -> KeysView[str]:
        """The names of the objects."""
        return KeysView(self)

    def values(self: Any) -> ValuesView[Any]:
        """What the objects hold, as `pool[name]` has it; each is opened when its turn comes."""
        return ValuesView(self)

    def items(self: Any) -> ItemsView[str, Any]:
        """Names and what the objects hold, as `pool[name]` has it."""
        return ItemsView(self)

    def get(self: Any, name: str, default: Any = None) -> Any:
        """What the object `name` holds, or `default` if there is none."""
        return self[name] if name in self else default

    def _ipython_key_completions_(self: Any) -> list[str]:
        return list(self)

    def _repr_html_(self: Any) -> str:
        if self.closed:
            return html.escape(repr(self))
        stats = self.list()
        rows = (
            (stat.name, _notebook.size(stat.size), _kind(stat), stat.state, stat.psyncs, stat.holder or "")
            for stat in stats
        )
        free = _notebook.size(int(self.info()["free"]))
        caption = f"{os.fspath(self.path)}: {len(stats):,} objects, {free} free"
        heads = ("object", "size", "kind", "state", "psyncs", "process")
        return _notebook.table(caption, heads, rows, len(stats))


def _kind(stat: Stat) -> str:
    """Properties of an object, in words."""
    marks = ("snapshot", "sealed", "read_only", "sparse", "volatile", "ecc", "gone")
    words = [mark.replace("_", "-") for mark in marks if getattr(stat, mark)]
    return ", ".join([stat.durability, *words])
