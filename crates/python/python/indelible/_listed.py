"""A pool as a mapping of names to what its objects hold, and as a table in a notebook."""

from __future__ import annotations

import builtins
import html
import os

from . import _notebook
from ._table import Stat
from ._transactional import TransactionalPool


class Listed(TransactionalPool):
    """The part of `Pool` that lists its objects."""

    def list(self) -> builtins.list[Stat]:
        """The objects, sorted by name."""
        return sorted((Stat(**fields) for fields in self._list()), key=lambda stat: stat.name)

    def stat(self, name: str) -> Stat:
        """State, size, holder and so on of an object; NotFound if there is none."""
        if not isinstance(name, str):
            raise KeyError(name)
        return Stat(**self._stat(name))

    def _ipython_key_completions_(self) -> builtins.list[str]:
        return [stat.name for stat in self.list()]

    def _repr_html_(self) -> str:
        if self.closed:
            return html.escape(repr(self))
        stats = self.list()
        free = _notebook.size(int(self.info()["free"]))
        caption = f"{os.fspath(self.path)}: {len(stats):,} objects, {free} free"
        return _notebook.objects(caption, stats)
