"""Pointers from object to object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from . import _indelible

if TYPE_CHECKING:
    from typing_extensions import Buffer

_OFFSET = (1 << 40) - 1


class Far(int):
    """A pointer to bytes in the same object, or in another one: a number of 64 bits, as it lies in an object ("u8" of numpy). 0 leads nowhere.

    It leads nowhere by itself: `Space.read` and `Space.follow` follow it, as part of the object that it was read from. The same number in another object means something else.
    """

    @property
    def index(self) -> int:
        """Number of the entry that names the target's object; 0: the object that has the pointer."""
        return self >> 40

    @property
    def offset(self) -> int:
        """Bytes from the start of the target's object."""
        return self & _OFFSET

    def __repr__(self) -> str:
        return f"Far({self.index}:{self.offset:#x})"


class Found(NamedTuple):
    """A pointer's target."""

    object: str
    """The object that it lies in, by its ID."""
    pointer: Far
    """Its place there, as a pointer within that object."""


class Space(_indelible.Space):
    """Objects that pointers lead through, of any pools: a context manager, which psyncs all that was stored, and detaches them.

    An object is known by its ID, "id:" and 32 hexadecimal digits, which `attach` returns. Those that pointers lead to are attached for reading by themselves, from the pools that the space was made with. Safe stores go to
    objects that were created `position_independent`: what lies in them means the same wherever they lie.
    """

    def root(self, home: str, name: str) -> Far:
        """The pointer that an object has as its root `name`: where a program begins."""
        return Far(self._root(home, name))

    def set_root(self, home: str, name: str, pointer: int) -> None:
        """Stores a pointer as the root `name` of an object, which is made if it has none."""
        self._set_root(home, name, pointer)

    def create(self, home: str, data: Buffer) -> Far:
        """A new block in an object, with these bytes: a pointer to it for the same object. Nothing else leads to it: store the pointer."""
        return Far(self._create(home, data))

    def free(self, home: str, pointer: int) -> None:
        """Frees the block that a pointer leads to which lies in the object `home`. Pointers to it dangle from then on."""
        self._free(home, pointer)

    def read(self, home: str, pointer: int, size: int) -> bytes:
        """So many bytes that a pointer leads to which lies in the object `home`: a copy."""
        return self._read(home, pointer, size)

    def write(self, home: str, pointer: int, data: Buffer) -> None:
        """Stores bytes where a pointer leads to which lies in the object `home`; all of them are in one block, and the pointer asks for stores."""
        self._write(home, pointer, data)

    def follow(self, home: str, pointer: int) -> Found:
        """The object that a pointer leads to which lies in the object `home`, and the place there."""
        target, place = self._follow(home, pointer)
        return Found(target, Far(place))

    def far(self, home: str, target: str, pointer: int, rights: Literal["r", "rw"] = "r") -> Far:
        """A pointer for the object `home` to what `pointer` leads to in the object `target`, with which loads ("r") are asked for, or stores as well ("rw"). The next psync of `home` makes what it needs durable with it."""
        return Far(self._far(home, target, pointer, rights))

    def far_by_name(
        self, home: str, name: str, pointer: int, rights: Literal["r", "rw"] = "r", *, resolver: str = "name"
    ) -> Far:
        """As `far`, to an object by its name, which is looked up when the pointer is followed: by the resolver "name" in the pools of the space, by "pool" ("POOL:NAME"), or by "latest" (the newest whose name begins so)."""
        return Far(self._far_by_name(home, (resolver, name), pointer, rights))

    def set_contexts(self, pool: _indelible.Pool, contexts: Iterable[str]) -> None:
        """Has pointers from one object to another be followed for what security contexts of a pool allow (Denied otherwise); without any, for what their entries ask for."""
        if isinstance(contexts, str):
            raise TypeError("contexts are several names, not a str")
        super().set_contexts(pool, list(contexts))

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self.objects)} objects"
        return f"<indelible.Space, {about}>"
