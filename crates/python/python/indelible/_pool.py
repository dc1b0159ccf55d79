"""A pool: objects by name, and what can be made of them."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import _array, _holders, _registry, _unfinished
from ._array import Array
from ._checkpoints import Checkpoints
from ._dict import Dict
from ._errors import Error, Exists, Gone, Held, NoRoom, NoSpace, NotAHeap, NotFound, ReadOnly, RootType
from ._framed import MAGIC as FRAME, FramedPool
from ._indelible import Object, SealKey, Shared, _adopt
from ._layout import MAGIC, Order, Shape
from ._listed import Listed
from ._named import reduce_pool
from ._transactions import TxArray

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Mode = Literal["r", "r+", "w+"]

_log = logging.getLogger("indelible")

# Bytes of an object for a dict, at least; what a heap begins with.
_LEAST = 64 << 10
HEAP = b"PMO-HEAP"

_A = TypeVar("_A", Object, Dict)
_PURPOSES: tuple[_registry.Purpose, ...] = ("store", "lock", "follow")


class Pool(FramedPool, Listed, Mapping[str, Any]):
    """A pool: one formatted file or device full of named objects. Made by `indelible.open`; a context
    manager, and a mapping of names to what the objects hold, which opens an object when it is asked
    for it.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the path: the process that loads it opens the pool there."""
        return reduce_pool(self)

    def __getitem__(self, name: str) -> Any:
        """The content of the object `name`: an array, also one for transactions, a dict, a data frame, memory
        that processes share, or its bytes if it is none of these; for storing, if it is no snapshot
        and not read-only. A frame is never stored to.
        """
        with _registry.attaching():
            shared = self._known(name, "store")
            if isinstance(shared, Dict):
                return shared
            if shared is not None:
                return self.array(name) if _begin(shared) == MAGIC else shared
            stat = self.stat(name)
            if stat.durability in ("transactional", "on-demand"):
                return self.transactional(name)
            if stat.durability == "shared":
                return self.shared(name)
            mode: Literal["r", "r+"] = "r" if stat.snapshot or stat.read_only else "r+"
            # A snapshot beside its object, which may have the addresses.
            if stat.snapshot:
                obj = self._attach_anywhere(name, None, None)
            else:
                try:
                    obj = super().attach(name, mode)
                except Held:
                    # A frame is read also while another process replaces it.
                    if _begin(self._attach_anywhere(name, None, None)) != FRAME:
                        raise
                    return self.frame(name)
            begin = _begin(obj)
            if begin == FRAME:
                obj.close()
                return self.frame(name)
            if begin == HEAP:
                obj.close()
                try:
                    return self.dict(name, mode)
                except (NotAHeap, RootType):
                    return self.attach(name, mode)
            if begin != MAGIC:
                purpose: _registry.Purpose = "store" if mode == "r+" else "lock"
                return obj if stat.snapshot else self._entered(name, purpose, obj)
            obj.close()
            return self.array(name, mode=mode)

    def __iter__(self) -> Iterator[str]:
        return (stat.name for stat in self.list())

    def __len__(self) -> int:
        return int(self.info()["objects"])

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and super().__contains__(name)

    def __bool__(self) -> bool:
        return True

    # Not by contents, as other mappings: that opens each object.
    __eq__ = object.__eq__

    def __hash__(self) -> int:
        return id(self)

    def __exit__(
        self,
        exception: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Psyncs everything that this handle opened, and closes it: arrays, dicts and bytes as one
        step, those without a variable included; then logs, views and contexts, and arrays of
        transactions. The logger `indelible` names those with changes. On an exception nothing is
        psynced.
        """
        if exception is None and not self.closed:
            changed = self.psync()
            if changed:
                names = ", ".join(changed)
                _log.info("psynced at the end of the block of pool %s: %s", os.fspath(self.path), names)
        super().__exit__(exception, value, traceback)

    def attach(
        self,
        name: str,
        mode: Literal["r", "r+"] = "r+",
        *,
        key: bytes | None = None,
        seal: SealKey | None = None,
    ) -> Object:
        """The bytes of an object, as a buffer: for reading ("r"), which keeps writers away, or for
        writing ("r+"); a sealed one by one of its seal keys. As long as this process has it so,
        another call returns the same.
        """
        with _registry.attaching():
            purpose: _registry.Purpose = "store" if mode == "r+" else "lock"
            shared = self._known(name, purpose)
            if isinstance(shared, Object) and key is None and seal is None:
                return shared
            found = super().attach(name, mode, key=key, seal=seal)
            return self._entered(name, purpose, found, key is not None)

    def array(
        self,
        name: str,
        shape: Shape | None = None,
        dtype: DTypeLike | None = None,
        mode: Mode | Literal["c"] = "r+",
        order: Order | None = None,
        *,
        offset: int = 0,
        key: bytes | None = None,
        sparse: bool = False,
        reach: int = 0,
        volatile: bool = False,
        lock: bool = False,
        seal: SealKey | None = None,
    ) -> Array:
        """The array in the object `name`: its elements are the object's bytes.

        A missing object is made, with `shape` (`dtype` float64 and `order` "C" unless given), all
        zero. An existing one must agree with the arguments (Mismatch). A length of -1 along the
        first axis agrees with any, and is 0 for a new array: one that grows. Modes are those of
        `numpy.memmap`: "r+" stores, "r" only reads, and "w+" begins anew, losing the contents.
        `sparse` claims space as elements are psynced; `reach` is the size to which it can grow, by
        default several times the pool's. A `volatile` one ends with the machine's boot, and is then
        made anew. `seal` opens a sealed object.

        With mode "r" the array keeps the state of the object's last psync, and writers need not
        wait. `Array.refresh` returns the state of the newest psync. It takes a free piece of the
        pool as large as the object; without one, or with `lock`, the object is locked instead: no
        process can store to it as long as the array exists. An object that this process stores to
        is read as it is.

        Mode "c" returns an ordinary array, a copy of the array of mode "r": stores to it change no
        object. The returned part begins at byte `offset` of the elements; it has `shape` (by
        default all that follows) and `dtype` of its own.
        """
        if mode == "c":
            read = self.array(name, shape, dtype, "r", order, offset=offset, key=key, lock=lock, seal=seal)
            return read.copy("K").view(Array)
        if offset:
            if mode == "w+":
                raise ValueError("a part of an array cannot begin anew (mode is 'r', 'r+' or 'c' with an offset)")
            whole = self.array(name, None, None, mode, key=key, lock=lock, seal=seal)
            return _array.part(whole, shape, dtype, order, offset)
        _check(mode, lock)
        with _registry.attaching():
            if mode == "r":
                return self._read_array(name, shape, dtype, order, key, lock, seal)
            shared = self._known(name, "store")
            if isinstance(shared, Dict) and mode == "r+":
                raise self._other(Exists, name, "a dict, not an array (use Pool.dict)")
            if isinstance(shared, Object) and mode == "r+":
                return self._open_array(shared, shape, dtype, mode, order)
            _registry.expect_no_transaction(self, name)
            _unfinished.clean(self, name, key)
            is_new = mode == "w+" or self._is_missing(name, volatile)
            if is_new:
                wanted = _array.wanted_layout(name, shape, dtype, order)
                size, anew = _array.size_for(wanted), mode == "w+"
                self._make(
                    name, size, anew, key=key, sparse=sparse, reach=reach, volatile=volatile, position_independent=True, seal=seal
                )  # fmt: skip
            obj = self.attach(name, key=key, seal=seal)
            try:
                if is_new or (obj.psyncs == 0 and _array.is_blank(obj)):
                    _array.write_new(obj, _array.wanted_layout(name, shape, dtype, order))
                array = self._open_array(obj, shape, dtype, mode, order)
            except BaseException as error:
                # A kept traceback would keep the object attached. Its views may be in that: it closes with the last of them.
                obj.__exit__(type(error), error, None)
                raise
            self._enter(name, obj, key is not None)
            return array

    def _read_array(
        self,
        name: str,
        shape: Shape | None,
        dtype: DTypeLike | None,
        order: Order | None,
        key: bytes | None,
        lock: bool,
        seal: SealKey | None,
    ) -> Array:
        """The array for reading."""
        shared = self._known(name, "store", "lock")
        if isinstance(shared, Object):
            return self._open_array(shared, shape, dtype, "r", order)
        known = _registry.find(self, name, "follow")

        def newest() -> Object:
            if not isinstance(known, Object):
                return self._attach_anywhere(name, key, seal)
            newer = known._newer()
            return known if newer is None else newer

        locked = lambda: self.attach(name, "r", key=key, seal=seal)  # noqa: E731
        obj = self._reading(name, lock, key is not None, newest, locked)
        try:
            if _array.is_blank(obj):
                raise NotFound(
                    f"there is no array {name!r} yet: nothing was psynced to the object (try again when its writer has)",
                    operation="open",
                    pool=os.fspath(self.path),
                    object=name,
                )
            return self._open_array(obj, shape, dtype, "r", order)
        except BaseException as error:
            if obj is not known:
                obj.__exit__(type(error), error, None)
            raise

    def dict(
        self,
        name: str,
        mode: Mode = "r+",
        *,
        size: int = 1 << 20,
        key: bytes | None = None,
        reach: int = 0,
        volatile: bool = False,
        lock: bool = False,
        seal: SealKey | None = None,
    ) -> Dict:
        """The dict in the object `name`: from str to values as `Dict` has them.

        Without an object of that name one of `size` bytes is made; it grows as needed. Modes, `reach`, `volatile`, `lock` and `seal` as for `array`, but
        a dict always has the object's addresses: a process that stores to it cannot have it for reading, too, and a second call
        with mode "r" returns the same dict, as its last `Dict.refresh` left it.
        """
        _check(mode, lock)
        if operator.index(size) <= 0:
            raise ValueError(f"a dict cannot be made in {size} bytes")
        with _registry.attaching():
            shared = self._shared_dict(name, mode, lock)
            if shared is not None:
                return shared
            if mode == "r":
                return self._reading(
                    name,
                    lock,
                    key is not None,
                    lambda: Dict(self, name, "r", key, seal),
                    lambda: Dict(self, name, "lock", key, seal),
                )
            _registry.expect_no_transaction(self, name)
            _unfinished.clean(self, name, key)
            if mode == "w+" or self._is_missing(name, volatile):
                self._make(name, max(size, _LEAST), mode == "w+", key=key, reach=reach, volatile=volatile, seal=seal)
            found = Dict(self, name, "r+", key, seal)
            self._enter(name, found, key is not None)
            return found

    def _known(self, name: str, *purposes: _registry.Purpose) -> Object | Dict | None:
        """What this process has of the object. Not what it has of one of that name that was deleted."""
        for purpose in purposes:
            found = _registry.find(self, name, purpose)
            if not isinstance(found, Object | Dict):
                continue
            try:
                if self.stat(name).address != found.address:
                    continue
            except NotFound:
                continue
            except Gone:
                # The pool's file is. Objects that are attached can be used still.
                pass
            _adopt(self, found)
            return found
        return None

    def _shared_dict(self, name: str, mode: Mode, lock: bool) -> Dict | None:
        """The dict that this process has already; Held if it has it in another mode, at addresses that only one can have."""
        for purpose in _PURPOSES:
            found = self._known(name, purpose)
            if isinstance(found, Object) and purpose == "store" and mode != "w+":
                raise self._other(NotAHeap, name, "no dict (use Pool.array, or Pool[name])")
            if not isinstance(found, Dict) or mode == "w+":
                continue
            if mode == "r" and (purpose == "lock" or (purpose == "follow" and not lock)):
                return found
            if mode == "r+" and purpose == "store":
                return found
            has = "stores to" if purpose == "store" else "reads"
            raise Held(
                f"cannot open the dict in object {name!r} with mode {mode!r}: this process {has} it already, at the same addresses"
                f" (use that dict, or close it first{_holders.of(name)})",
                operation="open",
                pool=os.fspath(self.path),
                object=name,
            )
        return None

    def _other(self, kind: type[Error], name: str, what: str) -> Error:
        """This process has something else in the object than asked for."""
        pool = os.fspath(self.path)
        return kind(f"object {name!r}, which this process has open, holds {what}", operation="open", pool=pool, object=name)

    def _reading(
        self, name: str, lock: bool, keyed: bool, beside: Callable[[], _A], locked: Callable[[], _A]
    ) -> _A:
        """Attaches beside a writer, or with a lock: if that is asked for, or nothing else is possible."""
        if not lock:
            try:
                return self._entered(name, "follow", beside(), keyed)
            except ReadOnly as error:
                # The pool was opened for reading: without locks.
                if error.kind != "ReadOnly":
                    raise
            except (NoRoom, NoSpace) as error:
                try:
                    found = locked()
                except Held:
                    raise error from None
                # As text: a log record that is kept would keep the object attached.
                _log.warning(
                    "object %r of pool %s is locked for reading, and no process can store to it meanwhile: %s",
                    name, os.fspath(self.path), str(error),
                )  # fmt: skip
                return self._entered(name, "lock", found, keyed)
        return self._entered(name, "lock", locked(), keyed)

    def _entered(self, name: str, purpose: _registry.Purpose, found: _A, keyed: bool = False) -> _A:
        _registry.enter(self, name, purpose, found, keyed)
        return found

    def checkpoints(
        self, name: str, *, last: int = 3, best: int = 1, mode: Literal["r", "r+"] = "r+"
    ) -> Checkpoints:
        """Named states of a training loop, of which the `last` and the `best` are kept: see `Checkpoints`. With mode "r" they are read beside
        the process that saves them, as for `array`.
        """
        return Checkpoints(self.dict(name, mode), last=last, best=best)

    def _enter(self, name: str, found: Object | Dict, keyed: bool) -> None:
        _registry.enter(self, name, "store", found, keyed)
        if found.recovered:
            _log.info(
                "recovered object %r of pool %s: its last writer died; %d bytes of its log were replayed",
                name, os.fspath(self.path), found.recovered,
            )  # fmt: skip

    def _is_missing(self, name: str, volatile: bool) -> bool:
        """Whether there is no such object; of a volatile one, also whether it is of an earlier boot."""
        return name not in self or (volatile and self.stat(name).gone)

    def _make(
        self,
        name: str,
        size: int,
        anew: bool,
        *,
        key: bytes | None,
        seal: SealKey | None,
        sparse: bool = False,
        reach: int = 0,
        volatile: bool = False,
        position_independent: bool = False,
    ) -> None:
        """Creates an object. With `anew`, in the place of one that there may be, which stays if that fails."""

        def create(called: str) -> None:
            self.create(
                called,
                size,
                key=key,
                sparse=sparse,
                reach=reach,
                volatile=volatile,
                position_independent=position_independent,
                seal=seal,
            )

        if not anew or name not in self:
            create(name)
            return
        with _unfinished.making(self, name, key) as made:
            try:
                create(made)
            except (NoRoom, NoSpace):
                # There may be room when the old one is gone.
                if size > self.stat(name).size:
                    raise
                self.remove(name, key=key)
                create(name)
                return
            try:
                self.remove(name, key=key)
            except BaseException:
                self.remove(made, key=key)
                raise
            self.rename(made, name, key=key, seal=seal)

    def _open_array(
        self,
        obj: Object,
        shape: Shape | None,
        dtype: DTypeLike | None,
        mode: Mode,
        order: Order | None,
    ) -> Array:
        found = _array.read_layout(obj)
        if _array.is_open(shape):
            shape = (found.shape[0] if found.shape else 0, *shape[1:])
        _array.expect_layout(
            found, shape, dtype, order, self, obj.name, "ask for what it has, or begin anew with mode 'w+'"
        )
        return _array.over(obj, found, writable=mode != "r")


def _begin(obj: Object) -> bytes:
    """What tells kinds of objects apart."""
    with memoryview(obj) as memory:
        return bytes(memory[:8])


def _check(mode: str, lock: bool) -> None:
    if mode not in ("r", "r+", "w+"):
        raise ValueError(f"mode is 'r', 'r+' or 'w+', not {mode!r}")
    if lock and mode != "r":
        raise ValueError(f"lock is for mode 'r': mode {mode!r} keeps others away in any case")
