"""Names of the variables that keep an object attached, for errors: those of the main program,
outputs of a notebook, and frames of tracebacks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from . import _registry
from ._log import LogReader

# Variables of IPython that have outputs under other names, too.
_SAME = {"_oh", "Out", "In", "_ih", "_dh"}
_MOST = 5


def of(name: str) -> str:
    """What keeps the object attached, as far as it can be named: text for the end of an error, or
    nothing.
    """
    try:
        found = list(dict.fromkeys(_found(name)))
    except Exception:
        # The error that is being made counts.
        return ""
    if not found:
        return ""
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"; it is held by {', '.join(found[:_MOST])}{more}"


def at(message: str) -> str | None:
    """Advice for an error about addresses that are taken, if an object of this process has them."""
    first = re.search(r"0x([0-9a-f]+)\.\.", message)
    address = int(first[1], 16) if first else 0
    for (_, name, _), found in list(_registry._attached.items()):
        if getattr(found, "address", None) == address and not found.closed:
            return (
                f"object {name!r}, which this process has attached, has the same addresses: one is"
                f" a copy of the other; close that one first{of(name)}; or make a copy with addresses"
                " of its own, by `copy_to(name, pool, copy, rebase=True)`, and of a whole pool by"
                " `pmo restore --rebase` or `pmo clone --rebase`"
            )
    reader = LogReader.at(address)
    if reader is None:
        return None
    return (
        f"a reader of the log {reader.name!r}, which this process has open by a pool for reading,"
        f" has these addresses: close it first{of(reader.name)}"
    )


def _found(name: str) -> Iterator[str]:
    main: Mapping[str, Any] = vars(sys.modules.get("__main__"))
    outputs = main.get("_oh")
    if isinstance(outputs, dict):
        yield from (
            f"Out[{number}]" for number, value in list(outputs.items()) if _is_of(value, name)
        )
    for variable, value in list(main.items()):
        if (
            variable not in _SAME
            and _is_of(value, name)
            and not (isinstance(outputs, dict) and variable.startswith("_"))
        ):
            yield f"variable {variable}"
    if isinstance(outputs, dict) and any(
        _is_of(main.get(last), name) for last in ("_", "__", "___")
    ):
        yield "the last outputs (_, __, ___)"
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        yield from _in_traceback(
            error.__traceback__,
            name,
            f"the traceback of the last {type(error).__name__} (sys.last_value)",
        )
    handled = sys.exception()
    if handled is not None:
        yield from _in_traceback(
            handled.__traceback__,
            name,
            f"the traceback of {type(handled).__name__}, which is being handled",
        )


def _in_traceback(traceback: TracebackType | None, name: str, what: str) -> Iterator[str]:
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals is not frame.f_locals:
            for variable, value in list(frame.f_locals.items()):
                if not variable.startswith("_") and _is_of(value, name):
                    yield f"variable {variable} of {frame.f_code.co_name}() in {what}"
        traceback = traceback.tb_next


def _is_of(value: Any, name: str) -> bool:
    """Whether a value is the object, or lies in its memory."""
    kind = type(value)
    if kind in (list, tuple):
        return any(_is_of(item, name) for item in value[:100] if type(item) not in (list, tuple))
    while isinstance(value, np.ndarray | memoryview):
        value = value.base if isinstance(value, np.ndarray) else _owner(value)
    if (
        type(value).__module__.partition(".")[0] != "indelible"
        or getattr(value, "name", None) != name
    ):
        # An array of a dict lies in a block of it.
        owner = getattr(value, "_owner", None) if type(value).__name__ == "Block" else None
        return owner is not None and owner.name == name
    return not getattr(value, "closed", False)


def _owner(value: memoryview) -> Any:
    try:
        return value.obj
    except ValueError:
        return None
