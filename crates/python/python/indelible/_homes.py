"""How each attached object was opened: pickles ask for it."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple


class Home(NamedTuple):
    """The opening of an object."""

    id: str
    """Of the object: another one may have its name by now."""
    lock: bool
    """It is read with a lock that keeps writers away."""
    keyed: bool
    """A key opened it."""
    opened: tuple[str, int] | None
    """The line of the program that opened it."""


# By identity: a dict has no hash. Entries of objects that are gone stay until there are many: code
# that runs when an object goes would swallow a Ctrl-C.
_homes: dict[int, tuple[weakref.ref[Any], Home]] = {}
_LEAST = 64
_most = [_LEAST]


def enter(found: Any, home: Home) -> None:
    """Notes the opening of an object. The registry's lock is held."""
    _homes[id(found)] = weakref.ref(found), home
    if len(_homes) > _most[0]:
        for number, (held, _) in list(_homes.items()):
            if held() is None:
                _homes.pop(number, None)
        _most[0] = _LEAST + 2 * len(_homes)


def of(found: Any) -> Home | None:
    """The opening of an object."""
    known = _homes.get(id(found))
    return known[1] if known is not None and known[0]() is found else None
