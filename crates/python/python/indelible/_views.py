"""Views and security contexts: their slots and rules as values of Python, and arrays in slots."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import _array, _indelible
from ._errors import Error
from ._layout import MAX_HEADER

Rights = Literal["r", "rw"]
"""Loads; loads and stores."""


@dataclass(frozen=True, slots=True)
class ViewSlot:
    """A slot of a view that is set."""

    slot: int
    target: str
    """The object, by its ID: "id:" and 32 hexadecimal digits, which every call takes as a name."""
    rights: Rights
    """The rights that are asked for."""
    at_once: bool
    """It is attached together with the view, and not when it is first used."""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot of an attached view."""

    slot: int
    target: str
    """The object, by its ID."""
    rights: Rights
    """The rights that are asked for."""
    at_once: bool
    allowed: Rights | None
    """The rights that the security contexts allow; None: none at all."""
    name: str
    """Name of the object, when it was looked up."""
    address: int
    """Its first byte; 0: there is no such object."""
    size: int
    """Bytes that were reserved for it."""
    memory: Literal["absent", "reserved", "reading", "writing"]
    """Nothing; addresses that wait for the first use; the object for loads; the object for loads and stores."""
    refused: Error | None
    """Why the object could not be had when it was needed last."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of a security context."""

    kind: Literal["allow", "mask", "delegate", "unknown"]
    target: str
    """The object, or the context that is delegated from, by its ID: "id:" and 32 hexadecimal digits."""
    rights: Rights | None


@dataclass(frozen=True, slots=True)
class Rules:
    """All that a security context says."""

    default: Rights | None
    """To objects that no rule of the kind "allow" is about."""
    rules: list[Rule]


def view_slots(slots: list[tuple[int, str, Rights, bool]]) -> list[ViewSlot]:
    """The slots, as the native half has them."""
    return [ViewSlot(*slot) for slot in slots]


def rules(said: tuple[Rights | None, list[tuple[Literal["allow", "mask", "delegate", "unknown"], str, Rights | None]]]) -> Rules:
    """The rules, as the native half has them."""
    default, all_ = said
    return Rules(default, [Rule(*rule) for rule in all_])


class View(_indelible.View):
    """A view, opened to be changed: slots with objects of its pool, which a program that attaches the view has in its memory. Made by `Pool.view`; a context manager, which psyncs and closes it.

    Changes are durable as of `psync`, as one step, and processes that have the view attached find them then. It iterates over the slots that are set.
    """

    def list(self) -> builtins.list[ViewSlot]:
        """The slots that are set."""
        return view_slots(self._list())

    def __iter__(self) -> Iterator[ViewSlot]:
        return iter(self.list())

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{self.slots} slots"
        return f"<indelible.View {self.name!r}, {about}>"


class SecurityContext(_indelible.SecurityContext):
    """A security context, opened to be changed: rights to objects. Made by `Pool.context`; a
    context manager, which psyncs and closes it.

    To an object it gives ((what `allow` states, or else the default) or (what each delegated
    context gives, and the delegation's rights)) and the mask. A program that has several contexts
    has what any of them gives. It prevents mistakes, not attacks.
    """

    def rules(self) -> Rules:
        """All that it says."""
        return rules(self._rules())

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"room for {self.room} entries"
        return f"<indelible.SecurityContext {self.name!r}, {about}>"


class AttachedView(_indelible.AttachedView):
    """A view in this process: `view[slot]` is the memory of the object in a slot, which is attached
    by its first use, for what its slot asks for, as far as a security context allows it. Made by
    `Pool.attach_view`; a context manager, which psyncs its objects and closes it.

    New slots are found automatically; removals wait for `adopt`.
    """

    def slots(self) -> list[SlotState]:
        """The slots that are set, and what is at the addresses of their objects."""
        return [
            SlotState(*slot, allowed, name, address, size, memory, refused)
            for slot, allowed, name, address, size, memory, refused in self._slots()
        ]

    def array(self, slot: int, mode: Literal["r", "r+"] | None = None) -> np.ndarray[Any, Any]:
        """The elements of the array in a slot, which `Pool.array` made; for loads ("r"), or for
        stores as well ("r+"); without a mode, with all rights that are granted. `psync` of the view
        makes stores durable.
        """
        memory = self.buffer(slot, mode)
        found = _array.checked_layout(f"slot {slot} of view {self.name}", bytes(memory[:MAX_HEADER]), len(memory))
        # An array made of a buffer directly would not hold it; `frombuffer` does.
        bytes_ = np.frombuffer(memory, np.uint8)
        return np.ndarray.__new__(np.ndarray, found.shape, found.dtype, bytes_, _array.DATA, order=found.order)

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self._slots())} slots set"
        return f"<indelible.AttachedView {self.name!r}, {about}>"
