"""States of a training loop, by name: an object for each, and a dict that says which there are."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _indelible, _progress, _pytree, _registry
from ._dict import Dict
from ._errors import ClassMismatch, Damaged, Error, NotFound, ReadOnly, Version

_INDEX = "index"
# The former layout had all states in the dict, and this key for their names.
_FORMER = "checkpoints"


class _Entry(NamedTuple):
    name: str
    score: float | None
    number: int


class _Index(NamedTuple):
    """The checkpoints, oldest first; the number of the next one; numbers of objects to delete."""

    kept: list[_Entry]
    next: int
    gone: list[int]


class Checkpoints:
    """Named states, of which some are kept: the `last` saved ones, and the `best` ones, those of
    the least `score`. Made by `Pool.checkpoints`.

        saved = pool.checkpoints("run", last=3, best=1)
        saved.save("step 1000", {"model": model.state_dict(), "optimizer": opt_state}, score=loss)
        model.load_state_dict(saved.load("step 1000")["model"])

    A state is any tree of dicts, lists, tuples, named tuples and dataclasses; of arrays of numpy,
    torch and jax; of data frames of pandas, polars and pyarrow; and of the values that a `Dict`
    has. It comes back with the same types and values, arrays on the CPU, or `save` refuses it.

    `save` is one step: after a crash or an interrupt a checkpoint is there as a whole, or not at
    all, and those before it are. Threads may save at once.
    """

    def __init__(self, kept: Dict, *, last: int = 3, best: int = 1) -> None:
        last, best = operator.index(last), operator.index(best)
        if last < 1 or best < 0:
            raise ValueError("at least one checkpoint is kept: last >= 1, best >= 0")
        self._dict, self._last, self._best = kept, last, best
        self._lock = _registry.saving(kept.pool, kept.name)
        # A reader beside the process that saves holds the states of its index.
        self._objects: dict[int, _indelible.Object] = {}
        if kept.readonly:
            self._follow()
        else:
            self._list()

    def __iter__(self) -> Iterator[str]:
        """Names, the oldest first."""
        return iter([entry.name for entry in self._list()])

    def __len__(self) -> int:
        return len(self._list())

    def __contains__(self, name: object) -> bool:
        return any(name == each for each in self)

    def scores(self) -> dict[str, float | None]:
        """The score of each checkpoint."""
        return {entry.name: entry.score for entry in self._list()}

    @property
    def latest(self) -> str | None:
        """Name of the checkpoint that was saved last."""
        return next(reversed(list(self)), None)

    @property
    def best(self) -> str | None:
        """Name of the checkpoint with the least score."""
        return next((entry.name for entry in _ranked(self._list())), None)

    def save(
        self,
        name: str,
        state: Any,
        *,
        score: float | None = None,
        progress: _progress.Progress = False,
    ) -> None:
        """Saves a state durably under a name, replacing one of that name, and drops states that are
        not to be kept. A score that is no number (NaN) is worse than any other. `progress` shows a
        bar, or is a function that is called with the bytes done so far and of all.
        """
        if not isinstance(name, str):
            raise TypeError(f"the name of a checkpoint is a str, not {type(name).__name__}")
        name, score = str.__str__(name), None if score is None else float(score)
        packed = _pytree.Packed(name, score, state)
        with self._lock:
            if self._dict.readonly:
                raise ReadOnly(
                    f"cannot save checkpoint {name!r}: the checkpoints in {self._dict.name!r} are"
                    " opened for reading",
                    operation="save",
                )
            index = self._index()
            if index.gone:
                # An index that could not be psynced is in memory alone: the durable one may name
                # these objects.
                self._dict.psync()
                self._delete(index.gone)
            made = _Entry(name, score, self._unused(index.next))
            with _indelible.Import(self._dict.pool, self._object(made.number), packed.size) as new:
                pieces = packed.pieces()
                what = f"checkpoint {name!r}"
                for piece in _progress.shown(pieces, progress, what, packed.size):
                    new.append(piece)
                new.publish()
            entries = [*(entry for entry in index.kept if entry.name != name), made]
            stay = {*entries[-self._last :], *_ranked(entries)[: self._best]}
            gone = [entry.number for entry in index.kept if entry not in stay]
            kept = [tuple(entry) for entry in entries if entry in stay]
            self._dict[_INDEX] = {"kept": kept, "next": made.number + 1, "gone": gone}
            self._dict.psync()
            self._delete(gone)

    def refresh(self) -> bool:
        """Goes to the newest states, when read beside the process that saves them; returns whether
        anything changed.
        """
        with self._lock:
            newer = self._dict.refresh()
            if self._dict.readonly:
                self._follow()
            return newer

    def load(self, name: str | None = None) -> Any:
        """The state that was saved under a name, or last: arrays are copies. KeyError if there is
        none.
        """
        with self._lock:
            entries = self._list()
            found = [entry for entry in entries if name is None or entry.name == name]
            if not found:
                one = f"there is no checkpoint {name!r}"
                raise KeyError("there are no checkpoints" if name is None else one)
            entry = found[-1]
            obj = self._objects.get(entry.number) or self._attach(entry.number)
        what = f"checkpoint {entry.name!r} in object {obj.name!r}"
        try:
            saved, _, state = _pytree.load(np.frombuffer(memoryview(obj), np.uint8), what)
        finally:
            if not self._dict.readonly:
                # With the last view of it: a traceback may have some.
                obj.__exit__(GeneratorExit, None, None)
        if saved != entry.name:
            raise Damaged(f"{what} says that it is {saved!r}")
        return state

    def __repr__(self) -> str:
        about = "closed" if self._dict.closed else f"{len(self)} kept"
        return f"<indelible.Checkpoints {self._dict.name!r}, {about}>"

    def _list(self) -> list[_Entry]:
        return self._index().kept

    def _index(self) -> _Index:
        found = self._dict.get(_INDEX)
        if found is None and _FORMER in self._dict:
            name = self._dict.name
            raise Version(
                f"the checkpoints in object {name!r} have the layout of an earlier release:"
                f" pool.dict({name!r}) has their values, under the name of the checkpoint, a slash"
                " and the key (load them from there, or with that release, and save them under"
                " another name)",
                operation="open",
                object=name,
            )
        if found is None:
            return _Index([], 0, [])
        try:
            kept = [
                _Entry(str(name), None if score is None else float(score), int(number))
                for name, score, number in found["kept"]
            ]
            return _Index(kept, int(found["next"]), [int(number) for number in found["gone"]])
        except (LookupError, TypeError, ValueError) as error:
            raise Damaged(
                f"the dict in object {self._dict.name!r} holds no list of checkpoints: {error}"
            ) from None

    def _object(self, number: int) -> str:
        return f"{self._dict.name}~{number}"

    def _delete(self, numbers: list[int]) -> None:
        """Deletes the objects that exist."""
        for number in numbers:
            try:
                if not self._is_others(number):
                    self._dict.pool.delete(self._object(number))
            except NotFound:
                pass

    def _unused(self, number: int) -> int:
        """The first number from this one on whose object is nobody else's. A save that was
        interrupted has left one.
        """
        while self._object(number) in self._dict.pool:
            try:
                is_left = self._is_state(number)
            except Error:
                is_left = False
            if is_left:
                self._delete([number])
            else:
                number += 1
        return number

    def _is_state(self, number: int) -> bool:
        with self._attach(number) as obj:
            return bytes(memoryview(obj)[: len(_pytree.MAGIC)]) == _pytree.MAGIC

    def _is_others(self, number: int) -> bool:
        """Whether the object is known to be no state."""
        try:
            return not self._is_state(number)
        except ClassMismatch:
            return True
        except NotFound:
            raise
        except Error:
            return False

    def _attach(self, number: int) -> _indelible.Object:
        return self._dict.pool._attach_anywhere(self._object(number), None, None)

    def _follow(self) -> None:
        """Attaches the objects that the index names, so that they stay."""
        while True:
            try:
                self._objects = {
                    entry.number: self._objects.get(entry.number) or self._attach(entry.number)
                    for entry in self._list()
                }
                return
            except NotFound:
                # It was dropped since the index was read.
                if not self._dict.refresh():
                    raise


def _ranked(entries: list[_Entry]) -> list[_Entry]:
    """Those with a score, the best first."""
    scored = [entry for entry in entries if entry.score is not None and not math.isnan(entry.score)]
    return sorted(scored, key=lambda entry: entry.score or 0.0)
