"""The header before an array's elements, version 1: crates/python/FORMAT.md.

A header that is read is not trusted: each number is checked before it is used.
"""

from __future__ import annotations

import json
import operator
import re
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex

import numpy as np

from ._errors import Damaged, Version

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Order = Literal["C", "F"]
Shape = SupportsIndex | Sequence[SupportsIndex]
"""Lengths of an array, or the length of one with a single axis."""

MAGIC = b"PMO-NDAR"
VERSION = 1
# magic, version, features, header's bytes, CRC, dimensions, order, reserved, bytes of the type's text
_FIXED = struct.Struct("<8sIIIIB1sHI")
_CRC = struct.Struct("<I")
_CRC_AT = 20
_MAX_DIMENSIONS = 32
_MAX_TYPE = 3072
MAX_HEADER = 4096


class Layout(NamedTuple):
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Order

    def __str__(self) -> str:
        return f"shape {self.shape}, dtype {self.dtype}, order {self.order!r}"

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count * self.dtype.itemsize

    def pack(self, align: int) -> bytes:
        """The header, padded to a multiple of `align`."""
        text = json.dumps(_describe(self.dtype), separators=(",", ":")).encode()
        if len(text) > _MAX_TYPE:
            raise TypeError(
                f"dtype {self.dtype} takes {len(text)} bytes to describe, at most {_MAX_TYPE} can be kept"
            )
        shape = struct.pack(f"<{len(self.shape)}Q", *self.shape)
        size = -(-(_FIXED.size + len(shape) + len(text)) // align) * align
        fixed = _FIXED.pack(MAGIC, VERSION, 0, size, 0, len(self.shape), self.order.encode(), 0, len(text))
        header = bytearray((fixed + shape + text).ljust(size, b"\0"))
        _CRC.pack_into(header, _CRC_AT, zlib.crc32(header))
        return bytes(header)


def layout(shape: Shape, dtype: DTypeLike, order: str) -> Layout:
    """A layout from what a caller gave, or TypeError, or ValueError."""
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    lengths = (shape,) if not isinstance(shape, Sequence) else shape
    checked = tuple(_length(length) for length in lengths)
    if len(checked) > _MAX_DIMENSIONS:
        raise ValueError(f"{len(checked)} dimensions; at most {_MAX_DIMENSIONS} can be kept")
    found = Layout(checked, _persistable(np.dtype(dtype)), "F" if order == "F" else "C")
    if found.nbytes > np.iinfo(np.intp).max:
        raise ValueError(f"{found} is more than memory can have")
    return found


def fill(target: np.ndarray[Any, Any], source: Any) -> None:
    """Stores `source` in elements that are zeros, if they are padded: field by field.

    The bytes between the fields of `source` are any of this process.
    """
    if is_padded(target.dtype):
        array = np.asarray(source, dtype=target.dtype)
        for name in target.dtype.names or ():
            fill(target[name], array[name])
    else:
        target[...] = source


def is_padded(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return is_padded(dtype.subdtype[0])
    fields = [dtype[name] for name in dtype.names or ()]
    return bool(fields) and (sum(field.itemsize for field in fields) != dtype.itemsize or any(map(is_padded, fields)))


def unpack(header: bytes, what: str) -> tuple[Layout, int]:
    """The layout a header describes, and where the elements begin; Damaged or Version if it is none.

    `header` is the object's first bytes, at least up to the header's end, at most MAX_HEADER of them.
    """
    if len(header) < _FIXED.size:
        raise Damaged(f"{what}: {len(header)} bytes are too few for an array's header")
    magic, version, features, size, crc, ndim, order, reserved, text_len = _FIXED.unpack_from(header)
    if magic != MAGIC:
        raise Damaged(f"{what} holds no array: it begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION or features != 0:
        raise Version(
            f"{what}: its array is of version {version} with features {features:#x}, this software knows"
            f" version {VERSION} (use the version that wrote it, or a newer one)"
        )
    if not _FIXED.size <= size <= min(len(header), MAX_HEADER) or size % 64:
        raise Damaged(f"{what}: an array's header of {size} bytes")
    zeroed = header[:_CRC_AT] + bytes(_CRC.size) + header[_CRC_AT + _CRC.size : size]
    if zlib.crc32(zeroed) != crc:
        raise Damaged(f"{what}: the checksum of its array's header is wrong")
    end = _FIXED.size + 8 * ndim
    if ndim > _MAX_DIMENSIONS or end + text_len > size or reserved != 0 or order not in (b"C", b"F"):
        raise Damaged(f"{what}: the fields of its array's header contradict themselves")
    shape = struct.unpack_from(f"<{ndim}Q", header, _FIXED.size)
    dtype = _parse(header[end : end + text_len], what)
    found = Layout(shape, dtype, "F" if order == b"F" else "C")
    if found.nbytes > np.iinfo(np.intp).max or any(length > np.iinfo(np.intp).max for length in shape):
        raise Damaged(f"{what}: its array of {found} is more than memory can have")
    return found, size


def _length(length: SupportsIndex) -> int:
    found = operator.index(length)
    if not 0 <= found <= np.iinfo(np.intp).max:
        raise ValueError(f"an array cannot have {found} elements along an axis")
    return found


def _extension(name: str) -> np.dtype[Any]:
    """The type of that name in the package ml_dtypes; ValueError if it has none."""
    if not re.fullmatch(r"(bfloat|float|int|uint)[0-9a-z_]{1,16}", name):
        raise ValueError(f"no type of ml_dtypes: {name!r}")
    try:
        import ml_dtypes  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            f"an array of type {name} needs the package ml_dtypes: install it (pip install ml_dtypes)", name="ml_dtypes"
        ) from error
    found = getattr(ml_dtypes, name, None)
    if found is None:
        raise ValueError(f"the package ml_dtypes has no type {name!r}: a newer version of it may")
    dtype: np.dtype[Any] = np.dtype(found)
    return dtype


def _describe(dtype: np.dtype[Any]) -> Any:
    """The description as it is kept."""
    if dtype.type.__module__ == "ml_dtypes" and dtype.names is None:
        return {"ml_dtypes": dtype.name}
    return np.lib.format.dtype_to_descr(dtype)


def _described(value: Any) -> np.dtype[Any]:
    """The type that a description stands for."""
    if isinstance(value, dict):
        if set(value) != {"ml_dtypes"}:
            raise ValueError(f"not a description: {value!r}")
        return _extension(str(value["ml_dtypes"]))
    found: np.dtype[Any] = np.lib.format.descr_to_dtype(_tuples(value))
    return found


def _persistable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type as it comes back from its description; TypeError if it cannot lie in an object."""
    if dtype.hasobject:
        raise TypeError(
            f"dtype {dtype} holds Python objects, whose memory ends with the process; use numbers, fixed-length"
            " strings or structures of these"
        )
    if dtype.itemsize == 0:
        raise TypeError(f"dtype {dtype} has elements of 0 bytes; give its length")
    try:
        back = _described(_describe(dtype))
    except (TypeError, ValueError) as error:
        raise TypeError(f"dtype {dtype} cannot be described: {error}") from None
    if back != dtype or back.itemsize != dtype.itemsize:
        raise TypeError(f"dtype {dtype} does not survive its description: {back} would come back")
    return dtype


def _tuples(value: Any) -> Any:
    """Fields are tuples in NumPy's description; JSON has lists only."""
    if not isinstance(value, list | tuple):
        return value
    return [_field(field) for field in value]


def _field(field: Any) -> tuple[Any, ...]:
    if not isinstance(field, list | tuple) or not 2 <= len(field) <= 3:
        raise ValueError(f"not a field: {field!r}")
    name, kind, *shape = field
    name = tuple(name) if isinstance(name, list) else name
    return (name, _tuples(kind), *(tuple(lengths) for lengths in shape))


def _parse(text: bytes, what: str) -> np.dtype[Any]:
    try:
        dtype = _described(json.loads(text))
    except (
        ArithmeticError,
        LookupError,
        RuntimeError,
        SyntaxError,
        TypeError,
        ValueError,
        MemoryError,
        Warning,
    ) as error:
        raise Damaged(f"{what}: its array is of no known type: {error}") from None
    if dtype.hasobject or dtype.itemsize <= 0:
        raise Damaged(f"{what}: its array is of type {dtype}, which cannot lie in an object")
    return dtype
