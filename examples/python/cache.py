"""A cache of computed values, of limited size, that outlives programs: tiles of the Mandelbrot set.
A second run finds the tiles of the first one, also if that was killed.

    python examples/python/cache.py tiles.pmo --zoom 4
    python examples/python/cache.py tiles.pmo --zoom 4 --most 100     # keeps a hundred tiles
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import indelible
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SIDE = 64


class Cache:
    """Values of a function by its arguments. The least recently used go when there are too many."""

    def __init__(self, pool: indelible.Pool, function: Callable[..., Array], most: int) -> None:
        self.function, self.most = function, most
        self.values = pool.dict(f"{function.__name__} values")
        self.used = pool.dict(f"{function.__name__} used")
        self.hits = self.misses = 0
        self.clock: int = max(self.used.values(), default=0)

    def __call__(self, *arguments: int) -> Array:
        key = repr(arguments)
        self.clock += 1
        if key in self.values:
            self.hits += 1
        else:
            self.misses += 1
            self.values[key] = self.function(*arguments)
        self.used[key] = self.clock
        self.shrink()
        # A copy: the value in the cache may be replaced while the caller has this one.
        value: Array = self.values[key].copy()
        if self.clock % 16 == 0:
            self.save()
        return value

    def shrink(self) -> None:
        while len(self.values) > self.most:
            key = min(self.used, key=self.used.__getitem__)
            del self.values[key], self.used[key]

    def save(self) -> None:
        """Both dicts, as one step. A value that a crash takes is computed again."""
        indelible.psync(self.values, self.used)


def tile(zoom: int, row: int, column: int) -> Array:
    """Steps to escape, of 64 times 64 points."""
    width = 3.0 / 2**zoom
    x = -2.25 + width * (column + np.arange(SIDE) / SIDE)
    y = -1.5 + width * (row + np.arange(SIDE) / SIDE)
    c = x[None, :] + 1j * y[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, "u1")
    for _ in range(100):
        near = np.abs(z) < 2
        steps[near] += 1
        z[near] = z[near] ** 2 + c[near]
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the Mandelbrot set from cached tiles.")
    parser.add_argument("pool", help="file of the pool; made if absent")
    parser.add_argument("--zoom", type=int, default=3, help="2**ZOOM rows of as many tiles")
    parser.add_argument("--most", type=int, default=4096, help="tiles to keep")
    options = parser.parse_args()
    with indelible.open(options.pool, 1 << 30) as pool:
        tiles = Cache(pool, tile, options.most)
        for row in range(2**options.zoom):
            drawn = [tiles(options.zoom, row, column) for column in range(2**options.zoom)]
            print("".join(" .:-=+*#%@"[min(9, int(each.mean() / 10))] for each in drawn), flush=True)
        tiles.save()
        print(f"{tiles.hits} tiles of the cache, {tiles.misses} computed")


if __name__ == "__main__":
    main()
