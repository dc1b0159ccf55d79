"""Far pointers: structs in several objects that lead to each other, in whatever pools the objects are."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from . import _indelible
from ._record import Far, Struct, _set, _Type, _values


class Space(_indelible.Space):
    """Objects whose structs lead to each other by far pointers; a context manager, which psyncs at its end unless there is an exception.

    An object that a pointer leads to is attached for reading when it is first reached, in the first of `pools` that has it. Objects that are
    to be stored to are attached by `attach`; they are made with `position_independent=True`. The space has its objects for itself. Values are copies.
    """

    def __enter__(self) -> Space:
        return self

    def __exit__(
        self,
        exception: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is None:
            self.psync()
        self.close()

    def root(self, object: bytes, name: str, of: Struct, first: Mapping[str, Any] | None = None) -> Reference:
        """The struct that an object, by its ID, has under a name. With `first` it is made of these fields if there is none."""
        new = None if first is None else _values(first, of).tobytes()
        return Reference(self, object, self._record(object, name, _Type(of).described, new), of)

    def create(self, object: bytes, of: Struct, fields: Mapping[str, Any] | None = None) -> Reference:
        """A new struct in an object, of these fields, defaults and zeros. Nothing leads to it yet: see `Reference.point`."""
        value = _values(fields or {}, of)
        return Reference(self, object, self._create(object, value.tobytes()), of)


class Reference:
    """A struct in an object of a space."""

    __slots__ = ("object", "place", "space", "struct")

    def __init__(self, space: Space, object: bytes, place: int, struct: Struct) -> None:
        self.space = space
        self.object = object
        """ID of the object."""
        self.place = place
        """Where it lies in the object, as a pointer within that."""
        self.struct = struct

    def __repr__(self) -> str:
        return f"<indelible.Reference to {self.struct.name!r} at {self.place:#x} of object {self.object.hex()}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        return (self.object, self.place) == (other.object, other.place) and self.space is other.space

    def __hash__(self) -> int:
        return hash((self.object, self.place))

    def get(self) -> np.ndarray[Any, Any]:
        """A copy of the struct, which cannot be stored to."""
        _, _, found = self.space._get(self.object, self.place, self.struct.dtype.itemsize)
        return np.ndarray((), self.struct.dtype, np.frombuffer(found, np.uint8))

    def set(self, **fields: Any) -> None:
        """Stores fields; the others stay as they are. Pointers are stored by `point`."""
        self._change(fields)

    def _change(self, fields: Mapping[str, Any]) -> None:
        value = self.get().copy()
        for field, content in fields.items():
            _set(value, field, content)
        self.space._set(self.object, self.place, value.tobytes())

    def follow(self, field: str, of: Struct | None = None) -> Reference | None:
        """The struct that a pointer of this one leads to; None if it is null. `of` is needed if the type of the field does not say it. A pointer that leads
        nowhere is a Dangling.
        """
        struct = of or self._target(field)
        word = int(self.get()[field])
        if word == 0:
            return None
        object, place, _ = self.space._get(self.object, word, struct.dtype.itemsize)
        return Reference(self.space, object, place, struct)

    def point(self, field: str, target: Reference | None, *, write: bool = False) -> None:
        """Has a pointer of this struct lead to another one, in whatever object of the space, or nowhere. With `write`, what it leads to may be stored to."""
        self._far(field)
        if target is None:
            word = 0
        elif target.space is not self.space:
            raise ValueError(f"{target!r} is of another space")
        else:
            word = self.space._far(self.object, target.object, target.place, write)
        self._change({field: word})

    def free(self) -> None:
        """Frees the struct's block. Pointers to it lead to whatever comes there."""
        self.space._free(self.object, self.place)

    def _far(self, field: str) -> Far:
        part = self.struct.parts.get(field)
        if part is None or part.far is None or part.dtype.subdtype is not None:
            raise ValueError(f"struct {self.struct.name!r} has no far pointer {field!r}")
        return part.far

    def _target(self, field: str) -> Struct:
        of = self._far(field).of
        if isinstance(of, Struct):
            return of
        if of == self.struct.name:
            return self.struct
        raise ValueError(f"the type of {field!r} does not say which struct it leads to: give it as the second argument")
