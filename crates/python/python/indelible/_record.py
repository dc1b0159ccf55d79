"""Records, and their types in the words in which roots keep them: FORMAT.md at the top of the project, section 10.

A record is a root of a heap that has the same fields, at the same places, as a struct of Rust or C.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _indelible
from ._errors import Error, RootType

_C = "struct "
_NUMBERS = {
    "b1": ("bool", "bool"),
    "i1": ("i8", "int8_t"),
    "i2": ("i16", "int16_t"),
    "i4": ("i32", "int32_t"),
    "i8": ("i64", "int64_t"),
    "u1": ("u8", "uint8_t"),
    "u2": ("u16", "uint16_t"),
    "u4": ("u32", "uint32_t"),
    "u8": ("u64", "uint64_t"),
    "f4": ("f32", "float"),
    "f8": ("f64", "double"),
}
"""By kind and bytes: the word, and what C calls it."""


class Field(NamedTuple):
    """The type of a field, and the value that a new record has there."""

    type: Any
    default: Any


class Struct:
    """The layout of records: a name, and the type of each field, as numpy takes it, or a Struct, or a Field with a default.

    Fields lie as a compiler of C lays them out, so that programs in Rust (`#[derive(Persist)] #[repr(C)] struct Point`, for
    the name "Point") and in C (`PMO_TYPE(point, ...)`, for "struct point") with the same fields use the same records.
    """

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        if not re.fullmatch(r"(struct )?[A-Za-z_]\w*", name, re.ASCII):
            raise ValueError(f"{name!r} is no name of a struct: it is one word, as in Rust, or 'struct' and one, as in C")
        for field in fields:
            if not re.fullmatch(r"[A-Za-z_]\w*", field, re.ASCII):
                raise ValueError(f"{field!r} is no name of a field: it is one word")
        self.name = name
        self.fields = {field: of if isinstance(of, Field) else Field(of, None) for field, of in fields.items()}
        self.parts = {field: _part(of.type) for field, of in self.fields.items()}
        self.dtype = np.dtype([(field, part.dtype) for field, part in self.parts.items()], align=True)
        """The numpy type of the records."""
        self.first()

    def first(self) -> np.ndarray[Any, Any]:
        """The value of a new record, outside any object: defaults, and zeros where there is none."""
        value = np.zeros((), self.dtype)
        for field, part in self.parts.items():
            default = self.fields[field].default
            if default is not None:
                _set(value, field, default)
            elif part.struct is not None:
                value[field] = part.struct.first()
        return value

    def __repr__(self) -> str:
        return f"<indelible.Struct {self.name!r}: {', '.join(self.fields)}>"

    def _before(self) -> list[Struct]:
        """The struct without its last fields, as far as these have defaults: its earlier versions, the newest first."""
        names, versions = list(self.fields), []
        while len(names) > 1 and self.fields[names[-1]].default is not None:
            names.pop()
            versions.append(Struct(self.name, {name: self.fields[name] for name in names}))
        return versions


class _Part(NamedTuple):
    """The type of a field. The struct is that of its elements, if it is an array."""

    dtype: np.dtype[Any]
    struct: Struct | None


def _part(of: Any) -> _Part:
    if isinstance(of, Struct):
        return _Part(of.dtype, of)
    if isinstance(of, tuple) and len(of) == 2 and isinstance(of[0], Struct):
        return _Part(np.dtype((of[0].dtype, of[1])), of[0])
    return _Part(np.dtype(of), None)


class _Type:
    """A struct in words."""

    def __init__(self, of: Struct) -> None:
        self.of = of
        self._in_c = of.name.startswith(_C)
        self._met: list[Struct] = []
        self._words: list[str] = []
        self._add_struct(of)
        self.described = of.name, "".join(word + " " for word in self._words)

    def _add(self, field: str, dtype: np.dtype[Any], struct: Struct | None) -> None:
        if dtype.subdtype is not None:
            base, shape = dtype.subdtype
            # An array of arrays is one array in C's descriptions.
            self._words += [f"[{length}]" for length in ([math.prod(shape)] if self._in_c else shape)]
            self._add(field, base, struct)
        elif struct is not None:
            self._add_struct(struct)
        elif dtype.type is np.bytes_ and dtype.itemsize > 0:
            self._words += [f"[{dtype.itemsize}]", *(["char~", "i8"] if self._in_c else ["u8"])]
        else:
            self._add_number(field, dtype)

    def _add_number(self, field: str, dtype: np.dtype[Any]) -> None:
        word, in_c = _NUMBERS.get(dtype.kind + str(dtype.itemsize), ("", ""))
        if not word or not dtype.isnative or dtype.names is not None:
            raise TypeError(
                f"field {field!r} of a record cannot be of type {dtype}: use bool, numbers of this machine, bytes of a fixed length,"
                " Structs, and arrays of these of a fixed shape"
            )
        if self._in_c and word != in_c:
            self._words.append(f"{in_c}~")
        self._words.append(word)

    def _add_struct(self, of: Struct) -> None:
        for number, met in enumerate(self._met):
            if met is of:
                self._words.append(f"={number}")
                return
        self._met.append(of)
        self._words += [f"{of.name.removeprefix(_C)}:{of.dtype.itemsize}:{of.dtype.alignment}", "{"]
        for field, part in of.parts.items():
            offset = 0 if of.dtype.fields is None else of.dtype.fields[field][1]
            self._words.append(f"{field}@{offset}:{part.dtype.itemsize}")
            self._add(field, part.dtype, part.struct)
        self._words.append("}")


Version = tuple[Struct, Callable[[np.ndarray[Any, Any]], Any]]
"""An earlier struct, and the function that makes a value of the next one from a record of it."""

_ATTEMPTS = 10
"""To convert a record that others store to meanwhile."""


def open_record(
    owner: _indelible.Dict,
    name: str,
    of: Struct,
    before: Sequence[Version],
    reset: Callable[[str], object] | None,
) -> np.ndarray[Any, Any]:
    """The record as `Dict.record` says."""
    now, first = _Type(of).described, of.first().tobytes()
    chain = _chain(of, before)
    for _ in range(_ATTEMPTS):
        try:
            return _view(memoryview(owner._record(name, *now, first)), of)
        except RootType as error:
            # Else it would keep arrays in its traceback.
            why = error.with_traceback(None)
        if owner.readonly:
            raise why
        if not _convert(owner, name, chain):
            if reset is None:
                raise why
            blocks, size = owner._reset_record(name, *now, first)
            reset(f"reset record {name!r} of object {owner.name!r}; freed {blocks} blocks, {size} bytes: {why}")
    raise Error(
        f"record {name!r} of object {owner.name!r} was stored to during each of {_ATTEMPTS} conversions (stop its other writers, and open it again)",
        kind="Busy",
        operation="convert a record of",
        object=owner.name,
    )


def _view(memory: memoryview | bytes, of: Struct) -> np.ndarray[Any, Any]:
    return np.ndarray((), of.dtype, np.frombuffer(memory, np.uint8))


_Chain = list[tuple[Struct, Callable[[np.ndarray[Any, Any]], Any] | None]]
"""Structs from the oldest to the one in use, each with the function that makes the next one of it."""


def _chain(of: Struct, before: Sequence[Version]) -> _Chain:
    chain: _Chain = [*before, (of, None)]
    types = [_Type(version).described for version, _ in chain]
    for number, described in enumerate(types):
        if described in types[:number]:
            raise ValueError(f"struct {described[0]!r} is among the versions twice, with the same fields")
    return chain


def _convert(owner: _indelible.Dict, name: str, chain: _Chain) -> bool:
    """Whether the record is of a version in the chain, or of one without the last fields that have defaults. Then it is of the last one now,
    or a store came meanwhile: it must be converted anew."""
    for index in range(len(chain) - 1, -1, -1):
        struct = chain[index][0]
        for version in [struct, *struct._before()]:
            was = _Type(version).described
            found = _bytes(owner, name, was)
            if found is not None:
                value = _view(found, version)
                if version is not struct:
                    value = _values(value, struct)
                value = _follow(value, chain[index:])
                owner._convert_record(name, was, found, _Type(chain[-1][0]).described, value.tobytes())
                return True
    return False


def _follow(value: np.ndarray[Any, Any], chain: _Chain) -> np.ndarray[Any, Any]:
    for (_, function), (struct, _) in itertools.pairwise(chain):
        if function is not None:
            value = _values(function(value), struct)
    return value


def _bytes(owner: _indelible.Dict, name: str, described: tuple[str, str]) -> bytes | None:
    """A copy of the record, if it is of this type, with all that is between its fields."""
    try:
        return bytes(memoryview(owner._record(name, *described, None)))
    except RootType:
        return None


def _values(given: Any, of: Struct) -> np.ndarray[Any, Any]:
    """A value of the struct with the fields that are given, by their names, and defaults elsewhere."""
    value = of.first()
    if isinstance(given, Mapping):
        items = dict(given)
    elif getattr(getattr(given, "dtype", None), "names", None) is not None:
        items = {field: given[field] for field in given.dtype.names}
    else:
        raise TypeError(f"a record of {of.name!r} is made of a mapping, or of a numpy value with fields, not of {given!r}")
    for field, content in items.items():
        _set(value, field, content)
    return value


def _set(value: np.ndarray[Any, Any], field: str, content: Any) -> None:
    """Stores a field, unless it would have another value then: numpy cuts integers and bytes that are too long."""
    if field not in (value.dtype.names or ()):
        raise ValueError(f"no field of name {field!r}")
    value[field] = content
    if value[field].dtype.kind in "biuS" and not np.all(value[field] == np.asarray(content)):
        raise ValueError(f"field {field!r}, of type {value[field].dtype}, cannot have the value {content!r}")
