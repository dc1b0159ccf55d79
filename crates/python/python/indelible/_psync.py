"""psync of several objects as one step."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ._array import owner
from ._dict import Dict
from ._indelible import Object, psync_all


def psync(*objects: Any, cut: bool = False) -> None:
    """Makes what was stored to all of `objects` durable as one step: after a crash all of them are as
    this call left them, or none is.

    They are arrays, dicts, attached objects, or memoryviews of these, of one pool. `cut`, of a single one,
    takes a consistent cut beside threads that store.
    """
    if not objects:
        raise TypeError("psync needs something to psync")
    dicts = {id(each): each for each in objects if isinstance(each, Dict)}
    others = [each if isinstance(each, Object) else owner(each) for each in objects if id(each) not in dicts]
    with ExitStack() as stack:
        # In one order, so that two threads cannot wait for each other.
        heaps = [stack.enter_context(dicts[key]._still()) for key in sorted(dicts)]
        psync_all([*others, *heaps], cut=cut)
