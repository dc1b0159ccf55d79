"""psync of several objects as one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._array import owner
from ._dict import Dict
from ._indelible import Object, psync_all

_OWNERS = (Object, Dict)

Psynced = np.ndarray[Any, Any] | Dict | Object | memoryview
"""An array in an object, a dict, or the bytes of an object."""


def psync(*objects: Psynced, cut: bool = False) -> None:
    """Makes what was stored to all of `objects` durable as one step: after a crash all of them are as
    this call left them, or none is.

    They are arrays, dicts, attached objects, or memoryviews of these, of one pool. `cut`, of a single one,
    takes a consistent cut beside threads that store.
    """
    if not objects:
        raise TypeError("psync needs something to psync")
    # Changes of dicts are done as a whole, so that psync of several never sees half of one.
    psync_all([each if isinstance(each, _OWNERS) else owner(each) for each in objects], cut=cut)
