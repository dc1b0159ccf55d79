"""Growing objects."""

from __future__ import annotations

from ._errors import NoRoom, NoSpace
from ._indelible import Heap, Object


def grow_to(obj: Object | Heap, needed: int) -> None:
    """Grows to `needed` bytes: by a quarter at least, so that what grows piece by piece is moved seldom,
    unless there is room for no more than what is needed.
    """
    try:
        obj.grow(max(needed, obj.size + obj.size // 4))
    except (NoRoom, NoSpace):
        obj.grow(needed)
