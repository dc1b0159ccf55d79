"""Progress of long calls: a bar of tqdm, a line on stderr without it, or a function of the caller.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._notebook import size

Progress = bool | Callable[[int, int], object]
"""Whether to show progress; or a function, which is called with the bytes done so far and of all.
"""

_INTERVAL = 0.2


def shown(
    pieces: Iterable[memoryview], progress: Progress, what: str, total: int
) -> Iterator[memoryview]:
    """The pieces, each counted once it was used. An exception of the caller's function ends it."""
    if progress is False:
        yield from pieces
        return
    tell, end = (progress, None) if callable(progress) else _bar(what, total)
    done = 0
    try:
        tell(0, total)
        for piece in pieces:
            yield piece
            done += len(piece)
            tell(done, total)
    finally:
        if end is not None:
            end()


def _bar(what: str, total: int) -> tuple[Callable[[int, int], object], Callable[[], object]]:
    try:
        bar: Any = importlib.import_module("tqdm.auto").tqdm(
            total=total, desc=what, unit="B", unit_scale=True, unit_divisor=1024
        )
    except ImportError:
        return _line(what)
    return lambda done, _total: bar.update(done - bar.n), bar.close


def _line(what: str) -> tuple[Callable[[int, int], object], Callable[[], object]]:
    last, terminal = [time.monotonic()], sys.stderr.isatty()

    def tell(done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or (terminal and now - last[0] >= _INTERVAL):
            last[0] = now
            print(
                f"{what}: {size(done)} of {size(total)}",
                end="\r" if terminal and done < total else "\n",
                file=sys.stderr,
                flush=True,
            )

    return tell, lambda: None
