"""A pool, as far as views and security contexts are concerned."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from . import _registry
from ._indelible import _read_context, _read_view, _rights
from ._sharing import SharingPool
from ._views import AttachedView, Rights, Rules, SecurityContext, View, ViewSlot, rules, view_slots


class ViewingPool(SharingPool):
    """The part of `Pool` that has views and security contexts."""

    def view(self, name: str, slots: int | None = None) -> View:
        """Opens the view `name` to change it. Without an object of that name one with so many slots is made, all empty; NotFound if `slots` is not given."""
        opened = _registry.once(self, name, "view", lambda: View(self, name, slots))
        return self._in_block(opened)

    def view_slots(self, name: str) -> builtins.list[ViewSlot]:
        """The slots of a view that are set, as its last psync left them, attached or not."""
        return view_slots(_read_view(self, name))

    def attach_view(self, name: str, contexts: Iterable[str] = ()) -> AttachedView:
        """Attaches the view `name`, also while others have it open. It locks no object: each is attached when it is first used.

        In security `contexts`, an object is attached with the rights that its slot asks for, as far as one of them allows them; without, everything is allowed. Nothing is refused before it is used: Denied then.
        """
        if isinstance(contexts, str):
            raise TypeError("contexts are several names, not a str")
        return self._in_block(AttachedView(self, name, list(contexts)))

    def context(self, name: str, entries: int | None = None) -> SecurityContext:
        """Opens the security context `name` to change it. Without an object of that name one with room for so many entries is made, which gives nothing; NotFound if `entries` is not given."""
        made = lambda: SecurityContext(self, name, entries)  # noqa: E731
        return self._in_block(_registry.once(self, name, "context", made))

    def context_rules(self, name: str) -> Rules:
        """All rules of a security context, as its last psync left them, attached or not."""
        return rules(_read_context(self, name))

    def rights(self, name: str, contexts: Iterable[str]) -> Rights | None:
        """The rights to an object that these security contexts grant together; None: none."""
        if isinstance(contexts, str):
            raise TypeError("contexts are several names, not a str")
        return _rights(self, name, list(contexts))
