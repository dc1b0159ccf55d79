"""States of a training loop, by name, in a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._dict import Dict

_LIST = "checkpoints"


class Checkpoints:
    """Named states, of which some are kept: the `last` saved ones, and the `best` ones, those of the least `score`. Made by
    `Pool.checkpoints`.

        saved = pool.checkpoints("run", last=3, best=1)
        saved.save("step 1000", model.state_dict(), score=loss)
        model.load_state_dict(saved.load("step 1000"))

    `save` is one psync: after a crash a checkpoint is there as a whole, or the ones before are. States are mappings like
    torch's: from names to arrays, tensors on the CPU, numbers, text, and mappings and lists of these.
    """

    def __init__(self, kept: Dict, *, last: int = 3, best: int = 1) -> None:
        if last < 1 or best < 0:
            raise ValueError("at least one checkpoint is kept: last >= 1, best >= 0")
        self._dict, self._last, self._best = kept, last, best

    def __iter__(self) -> Iterator[str]:
        """Names, the oldest first."""
        return (name for name, _ in self._list())

    def __len__(self) -> int:
        return len(self._list())

    def __contains__(self, name: object) -> bool:
        return any(name == each for each in self)

    def scores(self) -> dict[str, float | None]:
        """The score of each checkpoint."""
        return dict(self._list())

    @property
    def latest(self) -> str | None:
        """Name of the checkpoint that was saved last."""
        return next(reversed(list(self)), None)

    @property
    def best(self) -> str | None:
        """Name of the checkpoint with the least score."""
        scored = [(score, name) for name, score in self._list() if score is not None]
        return min(scored, default=(None, None))[1]

    def save(self, name: str, state: Mapping[str, Any], *, score: float | None = None) -> None:
        """Saves a state under a name, durably, in the place of one of that name, and drops those that are not kept."""
        entries = [each for each in self._list() if each[0] != name]
        entries.append((name, None if score is None else float(score)))
        keep = {each for each, _ in entries[-self._last :]}
        scored = sorted((value, each) for each, value in entries if value is not None)
        keep.update(each for _, each in scored[: self._best])
        prefix = f"{name}/"
        flat = dict(_flatten(prefix, state))
        gone = [each for each, _ in entries if each not in keep]
        self._dict.update({**flat, _LIST: [each for each in entries if each[0] in keep]})
        for key in list(self._dict):
            old = key.startswith(prefix) and key not in flat
            if old or any(key.startswith(f"{each}/") for each in gone):
                del self._dict[key]
        self._dict.psync()

    def refresh(self) -> bool:
        """Goes to the states that are there now, if they are read beside the process that saves them; returns whether something changed."""
        return self._dict.refresh()

    def load(self, name: str | None = None) -> dict[str, Any]:
        """The state that was saved under a name, or last: arrays are copies. KeyError if there is none."""
        found = self.latest if name is None else name
        if found is None or found not in self:
            raise KeyError(f"there is no checkpoint {found!r}" if found else "there are no checkpoints")
        prefix = f"{found}/"
        return {
            key[len(prefix) :]: _thaw(value) for key, value in self._dict.items() if key.startswith(prefix)
        }

    def _list(self) -> list[tuple[str, float | None]]:
        return [(str(name), score) for name, score in self._dict.get(_LIST, ())]


def _flatten(prefix: str, state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"names in a state are str, not {type(key).__name__}")
        yield prefix + key, _plain(value)


def _plain(value: Any) -> Any:
    """Tensors as arrays, at any depth."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    return value


def _thaw(value: Any) -> Any:
    """A value that may be changed."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if isinstance(value, dict):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_thaw(item) for item in value]
    return tuple(_thaw(item) for item in value) if isinstance(value, tuple) else value
