"""The dict as a mapping of Python: the native one, and what a mapping has besides."""

from __future__ import annotations

import copy
import html
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    Sequence,
    ValuesView,
)
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex

import numpy as np

from . import _indelible, _notebook
from ._errors import Error
from ._named import ByName, reduce_dict
from ._record import Struct, Version, open_record

if TYPE_CHECKING:
    from _typeshed import SupportsKeysAndGetItem

    _Given = SupportsKeysAndGetItem[str, Any] | Iterable[tuple[str, Any]]

_KEYS, _VALUES, _ITEMS = range(3)


class _Keys(KeysView[str]):
    _mapping: Dict

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._mapping)


class _Values(ValuesView[Any]):
    _mapping: Dict

    def __iter__(self) -> Iterator[Any]:
        return self._mapping._iterate(_VALUES, False)

    def __reversed__(self) -> Iterator[Any]:
        return self._mapping._iterate(_VALUES, True)


class _Items(ItemsView[str, Any]):
    _mapping: Dict

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._iterate(_ITEMS, False)

    def __reversed__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._iterate(_ITEMS, True)


class Dict(_indelible.Dict, MutableMapping[str, Any]):
    """A persistent dict from str to None, bool, int, float, complex, str, bytes, dates and times, paths, numpy arrays and
    generators, and lists, tuples and dicts of these. Made by `Pool.dict`.

    An array is stored as a copy, and what comes out is a view: storing to its elements stores to the object. A list or
    dict comes out as a copy that refuses changes: change a copy of that, and assign it. Changes become durable with
    `psync`, as one step. Threads may use it at once: each method is done as a whole.

    A pickle has the name of the object, and no items: a process that loads it has the dict for
    reading, as the newest psync left it; the process that stores to it has an ordinary dict. With
    changes that were not psynced, or with a key, it has the items, and is loaded as an ordinary dict.
    """

    def keys(self) -> _Keys:
        return _Keys(self)

    def values(self) -> _Values:
        return _Values(self)

    def items(self) -> _Items:
        return _Items(self)

    def update(self, other: _Given = (), /, **more: Any) -> None:
        """Assigns items, as `dict.update`: all of them, or none, as one step."""
        self._update([*_items(other), *more.items()])

    def record(
        self,
        name: str,
        struct: Struct,
        *,
        before: Sequence[Version] = (),
        reset: Callable[[str], object] | None = None,
    ) -> np.ndarray[Any, Any]:
        """The record `name`: a value of a fixed layout in the same object, as an array of shape (),
        made if there is none. It is not a key of the dict but a root with its type: `pmo types`
        shows it, programs in Rust and C open it by name.

        A record of another struct is an error, RootType, with the first field that differs, but for
        three cases. A record made before the last fields of `struct` were added gets their
        defaults. A record of one of the earlier structs `before`, given from the oldest to the
        newest, is converted: each has a function that takes such a record and returns one of the
        next struct, as a mapping of field names (missing fields have their defaults) or as an
        array. With `reset`, the contents of any other record are dropped, and `reset` is called
        with a text that says so. All of it becomes durable with the next psync.
        """
        return open_record(self, name, struct, before, reset)

    def copy(self) -> dict[str, Any]:
        """An ordinary dict with the same values. Its arrays are still views of the object."""
        return dict(self.items())

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return self.copy() | dict(other) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(other) | self.copy() if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other: _Given) -> Self:
        self.update(other)
        return self

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def by_name(self, mode: Literal["r", "r+"] = "r+") -> ByName:
        """This dict for a pickle that is loaded with the given mode. With "r+", this process closes it
        before the pickle is loaded: an object has one writer.
        """
        return ByName(reduce_dict(self, mode))

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
        try:
            return reduce_dict(self)
        except Error:
            return dict, (), None, None, iter(self.items())

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        if self.closed:
            return html.escape(repr(self))
        rows = ((key, _notebook.short(value)) for key, value in self.items())
        return _notebook.table(f"dict {self.name!r}, {len(self):,} items", ("key", "value"), rows, len(self))

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self)} items"
        return f"<indelible.Dict {self.name!r}, {about}>"


def _items(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, Mapping):
        return list(given.items())
    if hasattr(given, "keys"):
        return [(key, given[key]) for key in given.keys()]
    return [_pair(item) for item in given]


def _pair(item: Iterable[Any]) -> tuple[str, Any]:
    key, value = item
    return key, value
