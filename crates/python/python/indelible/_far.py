"""Pointers from object to object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from . import _indelible

if TYPE_CHECKING:
    from typing_extensions import Buffer

_OFFSET = (1 << 40) - 1


class Far(int):
    """A pointer to bytes in the same object or another one: 64 bits, as stored in an object ("u8"
    of numpy). 0 is null.

    `Space.read` and `Space.follow` follow it relative to the object that it was read from: the same
    number in another object means something else.
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
    """Objects of any pools, in which pointers are followed: a context manager that psyncs all
    stores and detaches the objects.

    An object is named by its ID, "id:" and 32 hexadecimal digits, which `attach` returns. Targets
    of pointers are attached for reading on first use, from the pools given to the space. Safe
    stores go to objects created `position_independent`, whose contents mean the same at any
    address.
    """

    def root(self, home: str, name: str) -> Far:
        """The pointer stored as root `name` of an object."""
        return Far(self._root(home, name))

    def set_root(self, home: str, name: str, pointer: int) -> None:
        """Stores a pointer as root `name` of an object; makes a missing root."""
        self._set_root(home, name, pointer)

    def create(self, home: str, data: Buffer) -> Far:
        """Makes a block with these bytes in an object; returns a pointer to it for the same object.
        Nothing else leads to the block: store the pointer.
        """
        return Far(self._create(home, data))

    def free(self, home: str, pointer: int) -> None:
        """Frees the target of a pointer of the object `home`. Other pointers to it dangle from then
        on.
        """
        self._free(home, pointer)

    def read(self, home: str, pointer: int, size: int) -> bytes:
        """A copy of `size` bytes at the target of a pointer of the object `home`."""
        return self._read(home, pointer, size)

    def write(self, home: str, pointer: int, data: Buffer) -> None:
        """Stores bytes at the target of a pointer of the object `home`. They lie in one block, and
        the pointer must ask for stores.
        """
        self._write(home, pointer, data)

    def follow(self, home: str, pointer: int) -> Found:
        """The object and the place that a pointer of the object `home` leads to."""
        target, place = self._follow(home, pointer)
        return Found(target, Far(place))

    def far(self, home: str, target: str, pointer: int, rights: Literal["r", "rw"] = "r") -> Far:
        """A pointer for the object `home` to the target of `pointer` in the object `target`. It
        asks for loads ("r"), or for stores as well ("rw"). The next psync of `home` also makes its
        entry durable.
        """
        return Far(self._far(home, target, pointer, rights))

    def far_by_name(
        self, home: str, name: str, pointer: int, rights: Literal["r", "rw"] = "r", *, resolver: str = "name"
    ) -> Far:
        """As `far`, to an object by its name, which is looked up when the pointer is followed: by
        the resolver "name" in the pools of the space, by "pool" ("POOL:NAME"), or by "latest" (the
        newest name with that prefix).
        """
        return Far(self._far_by_name(home, (resolver, name), pointer, rights))

    def set_contexts(self, pool: _indelible.Pool, contexts: Iterable[str]) -> None:
        """Limits following to the rights that these security contexts of a pool grant (`Denied`
        otherwise); without contexts, to the rights that entries ask for.
        """
        if isinstance(contexts, str):
            raise TypeError("contexts are several names, not a str")
        super().set_contexts(pool, list(contexts))

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self.objects)} objects"
        return f"<indelible.Space, {about}>"
