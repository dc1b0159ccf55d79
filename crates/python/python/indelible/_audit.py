"""Addresses in objects that mean nothing in the next run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _array
from ._dict import Dict
from ._indelible import Object, _audit
from ._layout import MAGIC, Order


@dataclass(frozen=True, slots=True)
class StrayPointer:
    """An address in an object that means nothing in the next run: see `audit`."""

    offset: int
    """Byte of the object where it lies."""
    target: int
    """The address."""
    place: str
    """Which element of an array, key of a dict or field of a record that is, as far as it is known."""
    into: str
    """What the address leads into."""

    def __str__(self) -> str:
        return f"{self.place} at byte {self.offset} leads into {self.into}"


def audit(value: np.ndarray[Any, Any] | Dict | Object | memoryview) -> list[StrayPointer]:
    """Looks for addresses in an object that mean nothing in the next run: of the memory of this
    process (what `id`, `ctypes` or `ndarray.ctypes.data` return, and pointers in structs of C), of
    its program and libraries, and of other objects.

    `value` is an array, a dict, an attached object, or a memoryview of these; the whole object is
    looked at, of a dict its records and those values that are an int, a float, bytes or an array:
    text, and lists and other nested values, are not searched. For tests: `assert not
    indelible.audit(w)` before `w.psync()`. Numbers that look like such an address count as one;
    addresses that do not lie at a multiple of 8 bytes, as in packed structs, are not seen. It reads
    all of these bytes. ReadOnly if it is attached for reading.
    """
    owner = value if isinstance(value, Object | Dict) else _array.owner(value)
    whole = None if isinstance(owner, Dict) else _array_in(owner)
    found = []
    for offset, target, place, into, key in _audit(owner):
        array = whole
        if key is not None and isinstance(owner, Dict):
            place = f"{owner.name}[{key!r}]"
            held = owner.get(key)
            array = held if isinstance(held, np.ndarray) else None
        elif whole is not None:
            place = owner.name
        if array is not None:
            element = _element(array, owner.address + offset)
            if element is None and key is not None:
                continue  # After the elements: unused.
            place += element or ""
        found.append(StrayPointer(offset, target, place, into))
    return found


def _array_in(obj: Object) -> np.ndarray[Any, Any] | None:
    """The array that the object is, if it is one."""
    with memoryview(obj) as memory:
        if bytes(memory[:8]) != MAGIC:
            return None
    return _array.over(obj, _array.read_layout(obj))


def _element(array: np.ndarray[Any, Any], address: int) -> str | None:
    """The element, and the field of it, at an address in the memory of an array; None if it is not there."""
    byte = address - int(array.__array_interface__["data"][0])
    order: Order = "C" if array.flags.c_contiguous else "F"
    return _path(array.dtype, array.shape, byte, order) if 0 <= byte < array.nbytes else None


def _path(dtype: np.dtype[Any], shape: tuple[int, ...], byte: int, order: Order = "C") -> str:
    at, within = divmod(byte, dtype.itemsize)
    index = ", ".join(str(int(each)) for each in np.unravel_index(at, shape, order))
    return (f"[{index}]" if index else "") + _field(dtype, within)


def _field(dtype: np.dtype[Any], byte: int) -> str:
    if dtype.subdtype is not None:
        return _path(*dtype.subdtype, byte)
    for name, (field, at, *_) in (dtype.fields or {}).items():
        if at <= byte < at + field.itemsize:
            return f"[{name!r}]" + _field(field, byte - at)
    return ""
