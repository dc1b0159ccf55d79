"""Progress of long calls: a bar of tqdm, a line on stderr without it, or a function of the caller.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._notebook import size

Tell = Callable[[int, int], object]
Progress = bool | Tell
"""Whether to show progress; or a function, which is called with the bytes done so far and of all.
"""

_INTERVAL = 0.2


def shown(
    pieces: Iterable[memoryview], progress: Progress, what: str, total: int
) -> Iterator[memoryview]:
    """The pieces, each counted once it was used. An exception of the caller's function ends it."""
    with told(progress, what) as tell:
        if tell is None:
            yield from pieces
            return
        done = 0
        tell(0, total)
        for piece in pieces:
            yield piece
            done += len(piece)
            tell(done, total)


@contextlib.contextmanager
def told(progress: Progress, what: str, unit: str = "B") -> Iterator[Tell | None]:
    """A function to tell progress to, if any is wanted: in bytes, or in another unit."""
    if progress is False or callable(progress):
        yield progress or None
        return
    tell, end = _bar(what, unit)
    try:
        yield tell
    finally:
        end()


def _bar(what: str, unit: str) -> tuple[Tell, Callable[[], object]]:
    try:
        tqdm: Any = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _line(what, unit), lambda: None
    scale = {"unit_scale": True, "unit_divisor": 1024} if unit == "B" else {}
    bar = tqdm(desc=what, unit=unit, **scale)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tell, bar.close


def _line(what: str, unit: str) -> Tell:
    last, terminal = time.monotonic(), sys.stderr.isatty()

    def amount(count: int) -> str:
        return size(count) if unit == "B" else str(count)

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or (terminal and now - last >= _INTERVAL):
            last = now
            print(
                f"{what}: {amount(done)} of {amount(total)}{'' if unit == 'B' else unit}",
                end="\r" if terminal and done < total else "\n",
                file=sys.stderr,
                flush=True,
            )

    return tell
