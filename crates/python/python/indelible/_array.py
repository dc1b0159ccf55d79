"""Arrays that are the memory of an object: the header of `_layout` in its first page, the elements behind."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from . import _notebook
from ._errors import Damaged, Error, Mismatch, NoRoom, NoSpace, NotFound, ReadOnly
from ._indelible import Object, Pool
from ._layout import MAX_HEADER, Layout, Order, Shape, layout, unpack
from ._named import ByName, reduce_array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import TypeIs

_LENDERS = (np.ndarray, memoryview)

# Elements begin on a page, aligned for whatever they are.
DATA = 4096


class Array(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array whose elements are the bytes of an object; made by `Pool.array`.

    Slices of it are views of the object, too. Results of arithmetic and `copy` are ordinary arrays; so
    are results of indexing by lists, whatever their type says.

    Beside numpy's methods it has `name`, `pool`, `psync`, `flush`, `revert`, `grow`, `refresh` and
    `by_name`; its `copy` is an ordinary array.

    A pickle has the name of the object, and no elements: a process that loads it has the array for
    reading, as the newest psync left it. With changes that were not psynced, or with a key, it has
    the elements, and is loaded as an ordinary array.
    """

    @property
    def name(self) -> str:
        """Name of the object."""
        return owner(self).name

    @property
    def pool(self) -> Pool:
        """The pool it was taken from."""
        return owner(self).pool

    def psync(self, *, cut: bool = False) -> None:
        """Makes everything stored to the object since its last psync durable, as one step.

        Other threads run meanwhile. They must not store to the object, unless `cut` asks for a consistent
        cut: then such stores wait, or belong to the next psync.
        """
        owner(self).psync(cut=cut)

    def flush(self) -> None:
        """As `psync`, by the name that `numpy.memmap` gives it."""
        self.psync()

    def revert(self) -> Array:
        """Undoes all stores to the object since its last psync. Returns this array or, if it has
        grown since, one of the former length. Views stay valid. No thread may store to the object
        meanwhile.
        """
        return reverted(self)

    def grow(self, length: int) -> Array:
        """Returns the array with `length` elements along its first axis, the new ones zero. This
        array and its views keep their shape and stay valid. No other thread may use the object
        meanwhile. The next psync makes the new shape durable.
        """
        return grown(self, length)

    def refresh(self) -> Array:
        """Returns the array as of the newest psync of the object: this array if it has that state,
        or if it is not read beside a writer. This array and its views keep their state as long as
        they exist.
        """
        return refreshed(self)

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> np.ndarray[Any, Any]:  # type: ignore[override]
        """The elements in memory of their own, as an ordinary array."""
        return np.array(self, order=order, subok=False)

    def __copy__(self) -> np.ndarray[Any, Any]:  # type: ignore[override]
        return self.copy("K")

    def __deepcopy__(self, memo: dict[int, Any] | None) -> np.ndarray[Any, Any]:  # type: ignore[override]
        return self.copy("K")

    def by_name(self, mode: Literal["r", "r+"] = "r+") -> ByName:
        """This array for a pickle that is loaded with the given mode. With "r+", this process closes
        the object before the pickle is loaded: an object has one writer.
        """
        return ByName(reduce_array(self, owner(self), mode))

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        try:
            return reduce_array(self, owner(self))
        except Error:
            return np.asarray(self).__reduce_ex__(protocol)

    def _repr_html_(self) -> str | None:
        found = _root(self)
        if not isinstance(found, Object):
            return None
        above = _notebook.attached(found, f"array of {self.dtype}, shape {self.shape}")
        return None if above is None else above + _notebook.text(repr(self))

    def __array_wrap__(
        self, array: np.ndarray[Any, Any], context: Any = None, return_scalar: bool | None = None
    ) -> Any:
        # Results are not in the object: no reason to look as if.
        if array is self or type(self) is not Array:
            return array
        # numpy 1 does not say whether a scalar is expected: where it has no axes.
        is_scalar = array.ndim == 0 if return_scalar is None else return_scalar
        return array[()] if is_scalar else array.view(np.ndarray)


def _root(value: object) -> object:
    """The owner of an array's or memoryview's memory."""
    while isinstance(value, _LENDERS):
        value = value.base if isinstance(value, np.ndarray) else value.obj
    return value


def owner(value: object) -> Object:
    """The object in whose memory an array or memoryview lies."""
    found = _root(value)
    if not isinstance(found, Object):
        raise Error(
            f"this {type(value).__name__} does not lie in the memory of an attached object (it is a copy, a"
            " result, or a value of a dict: use what it was taken from)",
            kind="NotAttached",
        )
    return found


def over(obj: Object, layout: Layout, at: int = DATA, *, writable: bool = True) -> Array:
    """The elements at offset `at`, as an array."""
    # An array made of a buffer directly would not hold it; `frombuffer` does.
    memory = np.frombuffer(memoryview(obj), np.uint8)
    array = np.ndarray.__new__(Array, layout.shape, layout.dtype, memory, at, order=layout.order)
    if not writable:
        array.flags.writeable = False
    return array


def part(
    whole: Array, shape: Shape | None, dtype: DTypeLike | None, order: Order | None, offset: int
) -> Array:
    """The elements from a byte of an object's array on, with a shape and type of their own."""
    obj = owner(whole)
    found = read_layout(obj)
    left = found.nbytes - operator.index(offset)
    kind = found.dtype if dtype is None else np.dtype(dtype)
    rest = max(left, 0) // kind.itemsize if kind.itemsize else 0
    wanted = layout(rest if shape is None else shape, kind, order or "C")
    fits = wanted.nbytes == left if shape is None else wanted.nbytes <= left
    if not fits or left > found.nbytes:
        raise ValueError(
            f"{wanted} at byte {offset} does not fit the {found.nbytes} bytes of the array in object"
            f" {obj.name!r}"
        )
    return over(obj, wanted, DATA + offset, writable=whole.flags.writeable)


def read_layout(obj: Object) -> Layout:
    """The layout in the object's header, checked against its size."""
    with memoryview(obj) as memory:
        return checked_layout(obj.name, bytes(memory[:MAX_HEADER]), len(memory))


def checked_layout(name: str, header: bytes, size: int) -> Layout:
    """The layout in the first bytes of an object of this size."""
    what = f"object {name!r}"
    found, at = unpack(header, what)
    if at != DATA or at + found.nbytes > size:
        raise Damaged(f"{what}: its array of {found} does not lie in {size} bytes")
    return found


def expect_layout(
    found: Layout,
    shape: Shape | None,
    dtype: DTypeLike | None,
    order: Order | None,
    pool: Pool,
    name: str,
    remedy: str,
) -> None:
    """Mismatch unless the array has what was asked for; None agrees with anything."""
    wanted = layout(
        found.shape if shape is None else shape,
        found.dtype if dtype is None else dtype,
        found.order if order is None else order,
    )
    if wanted != found:
        raise Mismatch(
            f"the array in object {name!r} has {found}, and asked for was {wanted} ({remedy})",
            operation="open",
            pool=os.fspath(pool.path),
            object=name,
        )


def write_layout(obj: Object, layout: Layout) -> None:
    """Stores the header."""
    with memoryview(obj) as memory:
        memory[:DATA] = layout.pack(DATA)


def wanted_layout(
    name: str, shape: Shape | None, dtype: DTypeLike | None, order: Order | None
) -> Layout:
    """The layout of a new array, as a caller asked for it."""
    if shape is None:
        raise NotFound(
            f"there is no array {name!r}, and no shape was given to make one", operation="open", object=name
        )
    if is_open(shape):
        shape = (0, *shape[1:])
    return layout(shape, "f8" if dtype is None else dtype, order or "C")


def is_open(shape: Shape | None) -> TypeIs[tuple[SupportsIndex, ...]]:
    """Whether the first axis may have any length."""
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == -1


def size_for(layout: Layout) -> int:
    """Bytes of an object for the array."""
    return DATA + max(layout.nbytes, DATA)


def is_blank(obj: Object) -> bool:
    """Whether nothing was stored yet: a process died between creating the object and its first psync."""
    with memoryview(obj) as memory:
        return not any(memory[:DATA])


def write_new(obj: Object, wanted: Layout) -> None:
    """Makes an object in which nothing was stored an array, durably."""
    if obj.size < size_for(wanted):
        obj.grow(size_for(wanted))
    write_layout(obj, wanted)
    obj.psync()


def grown(array: Array, length: int) -> Array:
    """See `Array.grow`."""
    obj = owner(array)
    old = read_layout(obj)
    if not _is_whole(array, over(obj, old)):
        raise ValueError("only a whole array grows, and this is a view of a part of it")
    if old.order != "C" and len(old.shape) > 1:
        raise ValueError("an array of order 'F' cannot grow along its first axis: its elements would move")
    if not old.shape or length < old.shape[0]:
        raise ValueError(f"an array of shape {old.shape} cannot grow to {length}")
    if obj.readonly:
        raise ReadOnly(f"cannot grow object {obj.name!r}: it is attached for reading", operation="grow")
    new = layout((length, *old.shape[1:]), old.dtype, old.order)
    needed = size_for(new)
    if needed > obj.size:
        grow_to(obj, needed)
    write_layout(obj, new)
    return over(obj, new)


def grow_to(obj: Object, needed: int) -> None:
    """Grows to `needed` bytes: by a quarter at least, so that what grows piece by piece is moved seldom,
    unless there is room for no more than what is needed.
    """
    try:
        obj.grow(max(needed, obj.size + obj.size // 4))
    except (NoRoom, NoSpace):
        obj.grow(needed)


def reverted(array: Array) -> Array:
    """See `Array.revert`."""
    obj = owner(array)
    obj.revert()
    whole = over(obj, read_layout(obj), writable=array.flags.writeable)
    grown_since = _is_whole(array, whole) and array.shape != whole.shape
    return whole if grown_since else array


def refreshed(array: Array) -> Array:
    """See `Array.refresh`."""
    obj = owner(array)
    if not _is_whole(array, over(obj, read_layout(obj))):
        raise ValueError("only a whole array is refreshed, and this is a view of a part of it")
    newer = obj._newer()
    if newer is None:
        return array
    try:
        return over(newer, read_layout(newer))
    except BaseException:
        newer.close()
        raise


def _is_whole(array: Array, whole: Array) -> bool:
    """Whether it is the array of its object, of whatever length."""
    same = array.dtype == whole.dtype and array.shape[1:] == whole.shape[1:]
    return same and _address(array) == _address(whole)


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
