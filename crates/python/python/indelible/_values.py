"""Conversions that the native dict asks for: values on their way in and out that it cannot make alone.

It calls these without its lock: what interrupts them leaves the dict as it was. A block that was filled and not linked is
freed with the dict's next change, or when it is next opened.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from . import _indelible, _tree
from ._errors import Damaged
from ._layout import MAX_HEADER, Order, fill, is_padded, layout, unpack

_ALIGN = 64


def prepare(owner: _indelible.Dict, key: str, value: Any) -> Any:
    """Returns the stored form of `value`: one of the types that the dict knows, a block with an array, or the bytes of
    a tree in a tuple; `owner` itself if the key has that very array already. TypeError if there is none.
    """
    if isinstance(value, np.generic):
        value = _tree.scalar(value)
    _tree.expect_exact(value)
    if isinstance(value, enum.Enum):
        return (_tree.encode(value),)
    match value:
        case np.ndarray():
            _tree.expect_plain_array(value)
            return owner if _is_same(owner.get(key), value) else _store(owner, value)
        case bytearray() | memoryview() | bytes():
            return bytes(value)
        case bool():
            return value
        case float() | str():
            return value
        case int() if -(1 << 63) <= value < 1 << 63:
            return value
        case _:
            return (_tree.encode(value),)


def _is_same(old: Any, value: np.ndarray[Any, Any]) -> bool:
    """Whether `value` is the very memory that the dict has: `d["w"] += 1` assigns it to itself."""
    if not isinstance(old, np.ndarray):
        return False
    new, here = value.__array_interface__, old.__array_interface__
    # No generator: one that is closed early swallows an interrupt.
    parts = ("data", "shape", "strides", "descr")
    return [new.get(part) for part in parts] == [here.get(part) for part in parts]


def _store(owner: _indelible.Dict, value: np.ndarray[Any, Any]) -> _indelible.Block:
    source = np.asarray(value)
    order: Order = "F" if source.flags.f_contiguous and not source.flags.c_contiguous else "C"
    found = layout(source.shape, source.dtype, order)
    header = found.pack(_ALIGN)
    block = owner._room(len(header) + found.nbytes)
    memory = np.frombuffer(memoryview(block), np.uint8)
    memory[: len(header)] = np.frombuffer(header, np.uint8)
    elements = np.ndarray(found.shape, found.dtype, memory, len(header), order=order)
    if is_padded(found.dtype):
        memory[len(header) :] = 0
    fill(elements, source)
    return block


def array(name: str, block: _indelible.Block) -> np.ndarray[Any, Any]:
    """The array in a block, as a view."""
    memory = np.frombuffer(memoryview(block), np.uint8)
    what = f"the dict in object {name!r}"
    found, at = unpack(memory[:MAX_HEADER].tobytes(), what)
    if at + found.nbytes > len(memory):
        raise Damaged(f"{what}: its array of {found} does not lie in {len(memory)} bytes")
    return np.ndarray(found.shape, found.dtype, memory, at, order=found.order)


def tree(name: str, data: bytes) -> Any:
    """The value that a tree stands for."""
    return _tree.decode(data, f"the dict in object {name!r}")
