"""One change made durable, in arrays and dicts of several sizes, and in a transaction.

    python crates/python/bench/changes.py [--folder /dev/shm] [--sizes 1,64,512,2048] [--rounds 300]

Every round changes one element of each array, one value of each dict, and one number in a
transaction, in turn: a busy machine is busy for all. All pages of the arrays are in memory. On a
disk, an array of numpy.memmap of the same size is beside each, with its flush (an msync of all of
it).
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np

MIB = 1 << 20


def arrays(pool: indelible.Pool, sizes: list[int]) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Changes of arrays: each changes something, and returns the call to measure."""
    works: dict[str, Callable[[], Callable[[], Any]]] = {}
    for size in sizes:
        array = pool.array(f"{size} MiB", size * MIB, "u1")
        array[::4096] = 1
        array.psync()

        def change(array: indelible.Array = array) -> Callable[[], Any]:
            array[random.randrange(len(array))] += 1
            return array.psync

        works[f"array of {size:,} MiB: psync"] = change
    return works


def maps(folder: Path, sizes: list[int]) -> dict[str, Callable[[], Callable[[], Any]]]:
    """The same in files that numpy maps."""
    works: dict[str, Callable[[], Callable[[], Any]]] = {}
    for size in sizes:
        array = np.memmap(folder / f"{size}.bin", np.uint8, "w+", shape=(size * MIB,))
        array[::4096] = 1
        array.flush()

        def change(array: np.memmap[Any, Any] = array) -> Callable[[], Any]:
            array[random.randrange(len(array))] += 1
            return array.flush

        works[f"numpy.memmap of {size:,} MiB: flush"] = change
    return works


def dicts(pool: indelible.Pool, counts: list[int]) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Changes of a value in dicts."""
    works: dict[str, Callable[[], Callable[[], Any]]] = {}
    for count in counts:
        values = pool.dict(f"{count} keys")
        values.update((f"key {number:08}", number) for number in range(count))
        values.psync()

        def change(values: indelible.Dict = values, count: int = count) -> Callable[[], Any]:
            values[f"key {random.randrange(count):08}"] = random.randrange(1 << 40)
            return values.psync

        works[f"dict of {count:,} keys: psync"] = change
    return works


def transactions(pool: indelible.Pool) -> dict[str, Callable[[], Callable[[], Any]]]:
    """A durable transaction that adds to a number, and the least one."""
    bank = pool.transactional("bank", 1000, "i8")

    def add(tx: indelible.Tx) -> None:
        tx[bank][7] += 1

    def store(tx: indelible.Tx) -> None:
        tx[bank][7] = 1

    return {
        "transaction: a number is read and stored": lambda: lambda: bank.transaction(add),
        "transaction: a number is stored": lambda: lambda: bank.transaction(store),
        "transaction: nothing": lambda: lambda: bank.transaction(lambda tx: None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", default=None, help="where the pool is made: a disk, or memory")
    parser.add_argument(
        "--sizes", default="1,64,512,2048", help="of the arrays, in MiB, with commas between"
    )
    parser.add_argument("--keys", default="1000,10000,100000,1000000", help="of the dicts")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    random.seed(1)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        pool = indelible.open(folder / "pool.pmo", (sum(sizes) + 1024) * MIB + 64 * MIB)
        works = (
            arrays(pool, sizes)
            | dicts(pool, [int(count) for count in options.keys.split(",")])
            | transactions(pool)
        )
        if pool.medium == "file":
            works |= maps(folder, sizes)
        times: dict[str, list[float]] = {work: [] for work in works}
        for number in range(options.rounds + 20):
            for work, prepare in works.items():
                call = prepare()
                begun = time.perf_counter()
                call()
                if number >= 20:
                    times[work].append((time.perf_counter() - begun) * 1e6)
        print(
            f"medium {pool.medium}, {options.rounds} rounds; {os.cpu_count()} cores; Python"
            f" {platform.python_version()}, indelible {indelible.__version__}, numpy {np.__version__}\n"
        )
    print("| one change of | median, µs | 90 % below |\n|---|---|---|")
    for work, spent in times.items():
        print(
            f"| {work} | {statistics.median(spent):,.1f} | {statistics.quantiles(spent, n=10)[-1]:,.1f} |"
        )


if __name__ == "__main__":
    main()
