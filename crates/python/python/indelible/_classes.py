"""Values of classes of a program, as parts and back: members of enums, named tuples, dataclasses.

A class is known by its module and name. Names in an object import nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from ._errors import Mismatch


class Parts(NamedTuple):
    """A value with fields: its tag in trees, its class, names and values of its fields."""

    tag: bytes
    kind: type
    names: tuple[str, ...]
    values: tuple[Any, ...]


def parts(value: Any) -> Parts | None:
    """The fields of a named tuple or dataclass; None of anything else. TypeError of one that has
    more.
    """
    kind: Any = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return Parts(b"n", kind, tuple(kind._fields), tuple(value))
    if not dataclasses.is_dataclass(value):
        return None
    # Of a copy that refuses changes, the class itself.
    kind = value.__class__
    names = tuple(field.name for field in dataclasses.fields(value))
    _expect_fields_alone(value, kind, names)
    return Parts(b"C", kind, names, tuple(getattr(value, name) for name in names))


def name(kind: type) -> tuple[str, str]:
    """Module and name of a class; TypeError if it is not found by them."""
    if _find(kind.__module__, kind.__qualname__) is not kind:
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} cannot be kept: no module has it by that name"
            " (define"
            " it at the top of one)"
        )
    return kind.__module__, kind.__qualname__


def member(value: enum.Enum) -> str | int:
    """A member of an enum: its name, or the number of flags that have none together."""
    kind = type(value)
    if isinstance(value.name, str) and kind.__members__.get(value.name) is value:
        return value.name
    if isinstance(value, enum.Flag) and type(value.value) is int:
        return value.value
    raise TypeError(f"{value!r} cannot be kept: its enum has no member of that name")


def find(module: str, name: str, what: str) -> Any:
    """A class of the program; Mismatch if it has none."""
    found = _find(module, name)
    if not isinstance(found, type):
        raise Mismatch(
            f"{what}: it has a {module}.{name}, which this program does not have (import {module}"
            " before you load it)"
        )
    return found


def member_of(kind: Any, of: Any, what: str) -> Any:
    """The member of an enum."""
    try:
        if issubclass(kind, enum.Enum):
            return kind[of] if isinstance(of, str) else kind(of)
    except (KeyError, ValueError):
        pass
    raise Mismatch(
        f"{what}: it has {of!r} of the enum {kind.__qualname__}, which this program does not have"
        " (load it"
        " with the program that saved it)"
    )


def named_tuple(kind: Any, names: Any, values: Sequence[Any], what: str) -> Any:
    """A named tuple."""
    if not issubclass(kind, tuple) or getattr(kind, "_fields", None) != names:
        _differ(kind, names, what)
    return tuple.__new__(kind, values)


def data_class(kind: Any, names: Any, values: Sequence[Any], what: str, frozen: bool) -> Any:
    """A dataclass; with `frozen` one that refuses changes."""
    if not dataclasses.is_dataclass(kind) or tuple(f.name for f in dataclasses.fields(kind)) != names:
        _differ(kind, names, what)
    made: Any = kind
    return _made(_frozen(made) if frozen and not _refuses_changes(made) else made, names, values)


def expect_frozen(kind: type) -> None:
    """TypeError of a dataclass of which no copy can refuse changes."""
    own = any("__init_subclass__" in vars(base) for base in kind.__mro__[:-1])
    if not _refuses_changes(kind) and (own or type(kind) is not type):
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} cannot be kept: a change of its copy would be"
            " lost (make"
            " it a dataclass with frozen=True, or store dataclasses.asdict(x))"
        )


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _expect_fields_alone(value: Any, kind: type, names: tuple[str, ...]) -> None:
    cached = {
        name
        for base in kind.__mro__
        for name, of in vars(base).items()
        if isinstance(of, functools.cached_property)
    }
    more = set(getattr(value, "__dict__", ())) - set(names) - cached
    if more:
        raise TypeError(
            f"{kind.__qualname__} has {', '.join(sorted(more))} beside its fields, which cannot"
            " be kept"
        )


def _refuses_changes(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


def _made(kind: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    made = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


@functools.cache
def _frozen(kind: Any) -> Any:
    """The class of copies that refuse changes. They say that they are of the class itself, so that
    `==`, `repr` and `dataclasses.replace` take them for such.
    """

    def refuse(_self: Any, *_arguments: Any) -> NoReturn:
        raise TypeError(
            f"this {kind.__qualname__} is a copy of the object's value, and a change of it"
            " would not be"
            " stored: change dataclasses.replace(x, ...), and assign that to the key"
        )

    names = [field.name for field in dataclasses.fields(kind)]

    def own(self: Any, values: Sequence[Any] | None = None) -> Any:
        return _made(kind, names, values or [getattr(self, name) for name in names])

    def deep(self: Any, memo: dict[int, Any]) -> Any:
        return own(self, [copy.deepcopy(getattr(self, name), memo) for name in names])

    def reduced(self: Any, _protocol: Any) -> Any:
        return _made, (kind, names, [getattr(self, name) for name in names])

    body = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__class__": property(lambda _self: kind),
        "__setattr__": refuse,
        "__delattr__": refuse,
        "__copy__": own,
        "__deepcopy__": deep,
        "__reduce_ex__": reduced,
    }
    return type(kind.__name__, (kind,), body)


def _differ(kind: Any, names: Any, what: str) -> NoReturn:
    raise Mismatch(
        f"{what}: its {kind.__module__}.{kind.__qualname__} has the fields"
        f" {', '.join(map(str, names))}, and"
        " that of this program others (load it with the program that saved it)"
    )
