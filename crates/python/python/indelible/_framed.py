"""A pool, as far as data frames are concerned, each in an object of its own, and psyncs of all that
its handle has opened.

A frame is written as a whole: into a new object, or over the former frame, whose readers keep what
the psync before had left.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _frames, _pytree, _registry
from ._array import grow_to
from ._asyncio import Ticket
from ._errors import Exists, NotFound
from ._indelible import Object, _psync_kept
from ._psync import Psynced, psync

MAGIC = b"PMO-FRAM"


def _is_frame(obj: Object) -> bool:
    """Whether it holds a frame, or nothing: a process died before its first psync."""
    with memoryview(obj) as memory:
        return bytes(memory[:8]) == MAGIC or (obj.psyncs == 0 and not any(memory[:64]))


class FramedPool:
    """The part of `Pool` that has frames and psyncs."""

    def __setitem__(self: Any, name: str, frame: Any) -> None:
        """Keeps a data frame of pandas or polars, or a table of pyarrow, in the object `name`,
        durably and as one step: a new object, or one that has a frame, which is replaced. It comes
        back with the same types, values, index and attributes, or is refused.
        """
        if not _frames.is_frame(frame):
            raise TypeError(
                f"a pool keeps data frames of pandas and polars and tables of pyarrow by"
                " `pool[name] = frame`,"
                f" not {type(frame).__name__} (use Pool.array or Pool.dict)"
            )
        packed = _pytree.Packed(name, None, frame, MAGIC)
        with _registry.attaching():
            _registry.expect_no_transaction(self, name)
            made = name not in self
            if made:
                self.create(name, packed.size, position_independent=True)
            shared = self._known(name, "store")
            obj = self.attach(name) if shared is None else shared
            try:
                self._replace_frame(name, obj, packed)
            except BaseException:
                if made:
                    obj.close()
                    self.remove(name)
                raise
            finally:
                if shared is None:
                    obj.close()

    def _replace_frame(self: Any, name: str, obj: Any, packed: _pytree.Packed) -> None:
        if not isinstance(obj, Object) or not _is_frame(obj):
            raise Exists(
                f"object {name!r} holds no data frame, and is not replaced by one (remove it"
                " first)",
                operation="keep a frame in",
                pool=os.fspath(self.path),
                object=name,
            )
        try:
            if obj.size < packed.size:
                grow_to(obj, packed.size)
            with memoryview(obj) as memory:
                at = 0
                for piece in packed.pieces():
                    memory[at : at + len(piece)] = piece
                    at += len(piece)
            obj.psync()
        except BaseException:
            obj.revert()
            raise

    def frame(self: Any, name: str) -> Any:
        """The data frame in the object `name`, as the newest psync left it, beside present and
        later writers. Its columns are the object's memory where the library takes them without a copy:
        those of pyarrow; of polars with pyarrow installed; of pandas numbers and times without
        nulls.
        """
        with _registry.attaching():
            known = _registry.find(self, name, "follow")

            def newest() -> Object:
                newer = known._newer() if isinstance(known, Object) else None
                if newer is None and isinstance(known, Object):
                    return known
                return newer or self._attach_anywhere(name, None, None)

            obj = self._reading(name, False, False, newest, lambda: self.attach(name, "r"))
            what = f"the frame in object {name!r}"
            try:
                memory = np.frombuffer(memoryview(obj), np.uint8)
                if not memory[:8].any():
                    raise NotFound(
                        f"there is no frame {name!r} yet: nothing was psynced to the object (try"
                        " again after its writer's psync)",
                        operation="open",
                        pool=os.fspath(self.path),
                        object=name,
                    )
                return _pytree.load(memory, what, MAGIC, copies=False)[2]
            except BaseException as error:
                if obj is not known:
                    obj.__exit__(type(error), error, None)
                raise

    def psync(self: Any) -> list[str]:
        """Makes everything durable that this handle opened: arrays, dicts and bytes as one step,
        then logs, views and arrays of transactions. Returns the objects that had changes.
        """
        changed = _psync_kept(self)
        for other in list(self._others()):
            if not other.closed:
                other.psync()
        return sorted(changed)

    def psync_async(self, *objects: Psynced, cut: bool = False) -> Ticket:
        """As `indelible.psync` of the objects, or `Pool.psync` without any, in another thread: a
        ticket that a task awaits, or a thread waits for. No thread or task stores to them until
        then, unless `cut` asks for a consistent cut of a single one.
        """
        if objects:
            return Ticket(lambda: psync(*objects, cut=cut))
        return Ticket(self.psync)
