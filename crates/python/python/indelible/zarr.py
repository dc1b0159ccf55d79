"""A store of zarr (version 3) in a pool: `zarr.open_group(PoolStore(pool, "name"))`.

    store = PoolStore(pool, "climate")
    with store.group():                            # durable together, by one psync
        root = zarr.open_group(store)
        root.create_array("t", data=temperatures)

Each chunk and each document of metadata is a key of a dict, and is durable when it was written.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager
from typing import Any

from ._keys import keys

_store: Any = importlib.import_module("zarr.abc.store")
_buffer: Any = importlib.import_module("zarr.core.buffer")


class PoolStore(_store.Store):  # type: ignore[misc]
    """The dict `name` of a pool as a store of zarr. One process stores to it; others read what that
    has written. Pickled, it has the names of pool and dict.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, pool: Any, name: str, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._pool, self._name, self._keys = pool, name, keys(pool, name)

    def group(self) -> AbstractContextManager[None]:
        """A block whose writes become durable at its end, by one psync; on an exception none of them
        happens. They are those of the block and of the tasks it starts, by any store of the dict:
        other threads neither see them before, nor take part.
        """
        self._check_writable()
        return self._keys.group()

    def with_read_only(self, read_only: bool = False) -> PoolStore:
        return PoolStore(self._pool, self._name, read_only=read_only)

    def __reduce__(self) -> Any:
        return _again, (self._pool, self._name, self.read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PoolStore) and (
            (self._pool.id, self._name, self.read_only)
            == (other._pool.id, other._name, other.read_only)
        )

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"indelible://{self._pool.path}#{self._name}"

    def __repr__(self) -> str:
        return f"PoolStore('{self}')"

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """The bytes of a key as a buffer; None if there is none."""
        self._is_open = True
        value = self._keys.get(key)
        if value is None:
            return None
        kind = (prototype or _buffer.default_buffer_prototype()).buffer
        return kind.from_bytes(_part(value, byte_range))

    def set_sync(self, key: str, value: Any) -> None:
        """Sets a key, durably."""
        self._writes(value)
        self._keys.change({key: value.to_bytes()})

    def delete_sync(self, key: str) -> None:
        """Deletes a key, durably, if there is one."""
        self._writes()
        if key in self._keys:
            self._keys.change({}, [key])

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(
        self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]
    ) -> list[Any]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return key in self._keys

    async def set(self, key: str, value: Any) -> None:
        self._writes(value)
        await asyncio.to_thread(self._keys.change, {key: value.to_bytes()})

    async def set_if_not_exists(self, key: str, value: Any) -> None:
        self._writes(value)
        await asyncio.to_thread(self._keys.set_new, key, value.to_bytes())

    async def _set_many(self, values: Iterable[tuple[str, Any]]) -> None:
        items = dict(values)
        for value in items.values():
            self._writes(value)
        await asyncio.to_thread(
            self._keys.change, {key: value.to_bytes() for key, value in items.items()}
        )

    async def delete(self, key: str) -> None:
        self._writes()
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._writes()
        await asyncio.to_thread(self._delete_below, prefix)

    async def clear(self) -> None:
        await self.delete_dir("")

    async def list(self) -> AsyncIterator[str]:
        for key in self._keys.names():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self._keys.names():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        below = _below(prefix)
        names = self._keys.names()
        for name in dict.fromkeys(
            key[len(below) :].split("/")[0] for key in names if key.startswith(below)
        ):
            yield name

    def close(self) -> None:
        """Lets go of the dict, so that another process can store to it."""
        super().close()
        self._keys.close()

    def _writes(self, value: Any = None) -> None:
        self._check_writable()
        if value is not None and not isinstance(value, _buffer.Buffer):
            raise TypeError(f"a value is a buffer of zarr, not {type(value).__name__}")
        self._is_open = True

    def _delete_below(self, prefix: str) -> None:
        below = _below(prefix)
        self._keys.change({}, [key for key in self._keys.names() if key.startswith(below)])


def _again(pool: Any, name: str, read_only: bool) -> PoolStore:
    return PoolStore(pool, name, read_only=read_only)


def _below(prefix: str) -> str:
    return prefix.rstrip("/") + "/" if prefix.rstrip("/") else ""


def _part(value: bytes, of: Any) -> bytes:
    if of is None:
        return value
    if isinstance(of, _store.RangeByteRequest):
        return value[of.start : of.end]
    if isinstance(of, _store.OffsetByteRequest):
        return value[of.offset :]
    if isinstance(of, _store.SuffixByteRequest):
        return value[max(0, len(value) - of.suffix) :]
    raise ValueError(f"Unexpected byte_range, got {of}.")
