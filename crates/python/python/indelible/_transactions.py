"""Arrays that transactions alone read and change, and functions that are run as transactions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex, TypeVar

import numpy as np

from . import _notebook
from ._array import DATA, checked_layout
from ._errors import Closed
from ._indelible import (
    Pool,
    Transaction,
    TxAttachment,
    _run_transaction,
    _tx_pending,
    _tx_psync,
    _tx_read,
    _tx_sync,
    _tx_write,
)
from ._layout import MAX_HEADER, Layout, fill

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_R = TypeVar("_R")
_Part = SupportsIndex | slice | EllipsisType
Index = _Part | tuple[_Part, ...] | str
"""An index of elements in a transaction, or the name of a field."""

# Gives the addresses of elements; its memory is never accessed.
_Places = np.ndarray[tuple[int, ...], np.dtype[Any]]

_BOOLS = (bool, np.bool_)
_SCALARS = (int, float, np.integer, np.floating)
_PARTS = (int, np.integer, slice, EllipsisType)


class Pending(NamedTuple):
    """Commits on demand that a power cut would take: see `TxArray.pending`."""

    transactions: int
    """At most so many."""
    bytes: int
    """In lines of 64."""


class TxArray:
    """An array that transactions alone read and change: made by `Pool.transactional`.

    It is no numpy array: other code cannot access its memory. In a function that `transaction`
    runs, `tx[array]` has its elements.
    """

    __slots__ = (
        "__weakref__", "_attachment", "_layout", "_name", "_numbers", "_places", "_pool", "_size", "_with_on_demand",
    )  # fmt: skip

    def __init__(self, pool: Pool, name: str, size: int, key: bytes | None, with_on_demand: bool) -> None:
        self._pool, self._name, self._with_on_demand = pool, name, with_on_demand
        self._attachment = TxAttachment(pool, name, key, with_on_demand)
        address = self._open("open")
        try:
            self._layout: Layout = _read_layout(name, address, size)
        except BaseException:
            self.close()
            raise
        memory: Any = (ctypes.c_char * self._layout.nbytes).from_address(address + DATA)
        self._places: _Places = np.ndarray(self.shape, self.dtype, memory, order=self._layout.order)
        # So many numbers of such a size lie side by side: single ones have a short way.
        plain = len(self.shape) == 1 and self.dtype.kind in "iufc" and self.dtype.isnative
        self._numbers, self._size = self.shape[0] if plain else 0, self.dtype.itemsize

    @property
    def name(self) -> str:
        """Name of the object."""
        return self._name

    @property
    def pool(self) -> Pool:
        """The pool it was taken from."""
        return self._pool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._layout.dtype

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._attachment.address is None

    @property
    def pending(self) -> Pending:
        """Commits on demand that a power cut would take: those of all objects on demand of the pool, in this process."""
        return Pending(*_tx_pending(self._open("inspect")))

    def transaction(self, body: Callable[[Tx], _R]) -> _R:
        """Runs a function as a transaction on this array alone: see `indelible.transaction`."""
        return _run_transaction([self._open("begin a transaction on")], Tx(), body)

    def tx_sync(self) -> None:
        """Returns when all transactions of this thread on objects on demand of the pool are durable, and all that these read. Threads that wait at the same
        time share one durable write. After an error the next attach recovers them.
        """
        _tx_sync(self._open("psync"))

    def psync(self) -> None:
        """Returns when all past transactions of this process in the pool are durable."""
        _tx_psync(self._open("psync"))

    def close(self) -> None:
        """Detaches the object; what was committed is durable then. InTransaction, in the middle of a transaction, leaves the array open; after any other
        error it is closed, and the next attach recovers what was committed.
        """
        self._attachment.close()

    def __enter__(self) -> TxArray:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"cannot pickle or copy the array of transactions {self._name!r}: transactions alone read its memory"
            " (`tx[array][:]` is a copy of the elements; another process opens the array by its name)"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError("elements are read in a transaction: `tx[array]` has them")

    def __array__(self, *_arguments: object, **_options: object) -> NoReturn:
        raise TypeError("elements are read in a transaction: `tx[array][:]` is a copy of them")

    def __repr__(self) -> str:
        return f"<indelible.TxArray {self._name!r}: {'closed' if self.closed else self._layout}>"

    def _repr_html_(self) -> str | None:
        address = self._attachment.address
        if address is None:
            return None
        return _notebook.named(self._pool, self._name, address, f"transactional array: {self._layout}")

    def _open(self, operation: str) -> int:
        address = self._attachment.address
        if address is None:
            raise Closed(
                f"cannot {operation} object {self._name!r}: it is closed (open or attach it again)",
                operation=operation,
                pool=os.fspath(self._pool.path),
                object=self._name,
            )
        return address


class Tx(Transaction):
    """A running transaction: `indelible.transaction` passes it to its function. It ends when the
    function returns.
    """

    __slots__ = ()

    def __getitem__(self, array: TxArray) -> TxElements:
        """The elements of an array as the transaction sees them."""
        if not isinstance(array, TxArray):
            raise TypeError(f"a transaction has the elements of a TxArray, not of {type(array).__name__}")
        if array._attachment.address is None:
            array._open("use")
        return TxElements(self, array, array._places)


class TxElements:
    """Elements of an array in a transaction. Indices are numbers, slices, `...`, and names of fields; results are copies that cannot be changed, so that no change of
    one is lost: assign to the index instead. `elements[3] += 1` does that.
    """

    __slots__ = ("_array", "_places", "_tx")

    def __init__(self, tx: Tx, array: TxArray, places: _Places) -> None:
        self._tx, self._array, self._places = tx, array, places

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._places.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._places.dtype

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[...])

    def __getitem__(self, index: Index) -> Any:
        if type(index) is int and (address := self._number(index)):
            array = self._array
            return np.frombuffer(_tx_read(address, array._size), array._places.dtype)[0]
        places = self._at(index)
        if isinstance(index, str):
            return TxElements(self._tx, self._array, places)
        read = b"".join([_tx_read(address, len) for address, len in _runs(places)])
        if not read:
            return np.empty(places.shape, places.dtype)
        return np.frombuffer(read, places.dtype).reshape(places.shape)[()]

    def __setitem__(self, index: Index, value: Any) -> None:
        if type(index) is int and isinstance(value, _SCALARS) and (address := self._number(index)):
            number = np.empty(1, self._array._places.dtype)
            number[0] = value
            _tx_write(address, number.tobytes())
            return
        places = self._at(index)
        # Without what was there before in its padding.
        stored = np.zeros(places.shape, places.dtype)
        fill(stored, value)
        memory, at = stored.tobytes(), 0
        for address, len in _runs(places):
            _tx_write(address, memory[at : at + len])
            at += len

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self[...], dtype)

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise TypeError("cannot pickle or copy elements in a transaction: `elements[...]` is a copy of them")

    def __repr__(self) -> str:
        return f"<elements of {self._array.name!r} in a transaction: shape {self.shape}, dtype {self.dtype}>"

    def _number(self, index: int) -> int:
        """Address of an element, if it is a number among such in the whole array; 0: it may be anything."""
        array = self._array
        length, address = array._numbers, array._attachment.address
        if address is None or self._places is not array._places or not -length <= index < length:
            return 0
        self._tx._runs()
        return address + DATA + index % length * array._size

    def _at(self, index: Index) -> _Places:
        """The places of these elements: an array whose memory is never accessed. numpy would read it for other indices."""
        self._tx._runs()
        self._array._open("use")
        if isinstance(index, str):
            return self._places[index]
        each = index if isinstance(index, tuple) else (index,)
        for part in each:
            if isinstance(part, _BOOLS) or not isinstance(part, _PARTS):
                raise TypeError(
                    f"an index in a transaction is a number, a slice, `...` or the name of a field, not {part!r}"
                )
        # An index that ends with `...` is a view, also of a single element.
        return self._places[each if ... in each else (*each, ...)]


def transaction(objects: TxArray | list[TxArray] | tuple[TxArray, ...], body: Callable[[Tx], _R]) -> _R:
    """Runs `body(tx)` as a transaction on these arrays of one pool, and returns what it returns:
    all that it changed is durable then, or, of arrays on demand, outlives the process; or nothing
    of it is there.

    Threads run transactions side by side, and each sees all arrays as of one moment. After a
    conflict `body` runs again: its effects must be repeatable, and `Tx.on_commit` is for others. An
    exception undoes it, and is raised again; `AfterCommit` alone says that the transaction has
    committed.
    """
    arrays = (objects,) if isinstance(objects, TxArray) else tuple(objects)
    for array in arrays:
        if not isinstance(array, TxArray):
            raise TypeError(f"a transaction uses TxArrays (Pool.transactional), not {type(array).__name__}")
    return _run([array._open("begin a transaction on") for array in arrays], body)


def _run(addresses: list[int], body: Callable[[Tx], _R]) -> _R:
    """As `transaction`, on the objects at these addresses."""
    return _run_transaction(addresses, Tx(), body)


def write_header(pool: Pool, name: str, key: bytes | None, wanted: Layout) -> None:
    """Makes an object in which nothing was stored, and to which transactions alone store, an array, durably."""
    with TxAttachment(pool, name, key, False) as address:
        _run([address], lambda _: _tx_write(address, wanted.pack(DATA)))


def _runs(places: _Places) -> Iterator[tuple[int, int]]:
    """Address and bytes of the pieces in which these elements lie, in the order of the elements."""
    if places.size == 0:
        return
    if places.flags.c_contiguous:
        yield int(places.__array_interface__["data"][0]), places.nbytes
        return
    for each in range(len(places)):
        yield from _runs(places[each, ...])


def _read_layout(name: str, address: int, size: int) -> Layout:
    """The layout in the object's header, checked against its size."""
    header = _run([address], lambda _: _tx_read(address, min(MAX_HEADER, size)))
    return checked_layout(name, header, size)
