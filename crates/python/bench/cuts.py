"""A consistent cut beside a psync, by the size of the array: one run, one table.

    python crates/python/bench/cuts.py [--folder /dev/shm] [--sizes 64,256,1024]

All pages of the array are in memory, and two of them change before each psync. Figures are medians of thirty, in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import indelible

MIB = 1 << 20


def measure(folder: str, size: int) -> tuple[float, float]:
    """Median times of a psync and of a cut."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        pool = indelible.open(Path(place) / "pool.pmo", size + 64 * MIB)
        array = pool.array("w", size, "u1")
        array[::4096] = 1
        array.psync()

        def median(cut: bool) -> float:
            times = []
            for step in range(30):
                array[step * 7919 * 4096 % size] ^= 1
                array[5000] ^= 1
                begun = time.perf_counter()
                array.psync(cut=cut)
                times.append(time.perf_counter() - begun)
            return statistics.median(times) * 1e3

        return median(False), median(True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=None, help="where the pool is made: a disk, or memory")
    parser.add_argument("--sizes", default="64,256,1024", help="of the array, in MiB, with commas between")
    options = parser.parse_args()
    print("| MiB | psync, ms | cut, ms | cut / psync |\n|---|---|---|---|")
    for size in map(int, options.sizes.split(",")):
        psync, cut = measure(options.folder, size * MIB)
        print(f"| {size} | {psync:.3f} | {cut:.3f} | {cut / psync:.1f} |")


if __name__ == "__main__":
    main()
