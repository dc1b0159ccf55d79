"""The dict beside lmdb, sqlite3 and diskcache: one run, one table.

    python crates/python/bench/dicts.py [--keys 1000000] [--folder /dev/shm] [--rounds 3]

Each store maps text of 12 characters to an int. Every figure is the median of the rounds, in
nanoseconds per key; opening is in milliseconds, the median of nine, and includes the first look-up.
Inserting is one transaction with its durable commit. Each store returns the values that it got;
lmdb returns bytes, which is to its advantage. diskcache takes minutes, and one round.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import indelible


class Ours:
    """`indelible.Dict`."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.pool = indelible.open(folder / "pool.pmo", max(64 << 20, keys * 1024))
        self.open()

    def open(self) -> None:
        self.dict = self.pool.dict("run")

    def insert(self, keys: list[str]) -> None:
        values = self.dict
        for number, key in enumerate(keys):
            values[key] = number
        values.psync()

    def get(self, keys: list[str]) -> None:
        values = self.dict
        for key in keys:
            values[key]

    def iterate(self) -> None:
        deque(self.dict.items(), 0)

    def close(self) -> None:
        self.dict.close()


class Lmdb:
    """lmdb: a write transaction, then one for reading."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.path = str(folder / "lmdb")
        self.size = max(64 << 20, keys * 1024)
        self.open()

    def open(self) -> None:
        self.environment = lmdb.open(self.path, map_size=self.size)
        self.reading = self.environment.begin()

    def insert(self, keys: list[str]) -> None:
        self.reading.abort()
        with self.environment.begin(write=True) as writing:
            for number, key in enumerate(keys):
                writing.put(key.encode(), number.to_bytes(8, "little"))
        self.reading = self.environment.begin()

    def get(self, keys: list[str]) -> None:
        reading = self.reading
        for key in keys:
            int.from_bytes(reading.get(key.encode()) or b"", "little")

    def iterate(self) -> None:
        deque(self.reading.cursor(), 0)

    def close(self) -> None:
        self.reading.abort()
        self.environment.close()


class Sqlite:
    """sqlite3: WAL, synchronous=FULL, a table with the key as primary key, one statement per key."""

    def __init__(self, folder: Path, _keys: int) -> None:
        self.path = folder / "sqlite"
        self.open()
        self.base.execute("create table if not exists run (key text primary key, value integer) without rowid")

    def open(self) -> None:
        self.base = sqlite3.connect(self.path)
        self.base.execute("pragma journal_mode=wal")
        self.base.execute("pragma synchronous=full")

    def insert(self, keys: list[str]) -> None:
        for number, key in enumerate(keys):
            self.base.execute("insert or replace into run values (?, ?)", (key, number))
        self.base.commit()

    def get(self, keys: list[str]) -> None:
        for key in keys:
            self.base.execute("select value from run where key = ?", (key,)).fetchone()

    def iterate(self) -> None:
        deque(self.base.execute("select key, value from run"), 0)

    def close(self) -> None:
        self.base.close()


class Diskcache:
    """diskcache: an SQLite table beside files; durable as sqlite3 here, nothing evicted."""

    def __init__(self, folder: Path, _keys: int) -> None:
        self.path = str(folder / "diskcache")
        self.open()

    def open(self) -> None:
        options = {"size_limit": 1 << 40, "eviction_policy": "none", "sqlite_synchronous": 2}
        self.cache = diskcache.Cache(self.path, **options)

    def insert(self, keys: list[str]) -> None:
        with self.cache.transact():
            for number, key in enumerate(keys):
                self.cache[key] = number

    def get(self, keys: list[str]) -> None:
        cache = self.cache
        for key in keys:
            cache[key]

    def iterate(self) -> None:
        """It has no items: keys, and the value of each."""
        cache = self.cache
        deque(((key, cache[key]) for key in cache), 0)

    def close(self) -> None:
        self.cache.close()


def module(name: str) -> Any:
    """None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


lmdb, diskcache = module("lmdb"), module("diskcache")
STORES: dict[str, Callable[[Path, int], Any]] = {
    "indelible": Ours, "lmdb": Lmdb, "sqlite3": Sqlite, "diskcache": Diskcache,
}  # fmt: skip
COLUMNS = ["insert", "get in order", "get at random", "iterate items", "open, ms"]


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def one_round(store: Callable[[Path, int], Any], folder: Path, keys: list[str], looked: list[str]) -> Iterator[float]:
    """The columns."""
    tested = store(folder, len(keys))
    each = 1e9 / len(keys)
    yield timed(lambda: tested.insert(keys)) * each
    yield timed(lambda: tested.get(keys)) * each
    yield timed(lambda: tested.get(looked)) * 1e9 / len(looked)
    yield timed(tested.iterate) * each
    tested.close()

    def again() -> None:
        tested.open()
        tested.get(keys[:1])

    opened = []
    for _ in range(9):
        opened.append(timed(again) * 1e3)
        tested.close()
    yield statistics.median(opened)


def goals(medians: dict[str, list[float]]) -> Iterator[str]:
    ours = medians["indelible"]
    if "lmdb" in medians:
        for column in (1, 2, 3):
            ratio = ours[column] / medians["lmdb"][column]
            yield f"{COLUMNS[column]}: {ratio:.2f} of lmdb's (goal: at most 2)"
    yield f"insert: {ours[0] / medians['sqlite3'][0]:.2f} of sqlite3's (goal: at most 2)"
    yield f"open: {ours[4]:.2f} ms (goal: at most 1)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=None, help="where the stores are made: a disk, or memory")
    parser.add_argument("--stores", default=",".join(STORES), help="which, with commas between")
    options = parser.parse_args()
    keys = [f"key {number:08}" for number in range(options.keys)]
    looked = random.Random(1).sample(keys, min(len(keys), 200_000))
    absent = {name for name, found in (("lmdb", lmdb), ("diskcache", diskcache)) if found is None}
    chosen = [name for name in options.stores.split(",") if name not in absent]
    figures: dict[str, list[list[float]]] = {name: [] for name in chosen}
    for round in range(options.rounds):
        # Round by round, so that a busy machine is busy for all.
        for name in chosen:
            if name == "diskcache" and round > 0:
                continue
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                figures[name].append(list(one_round(STORES[name], Path(folder), keys, looked)))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    medians = {name: [statistics.median(column) for column in zip(*all_, strict=True)] for name, all_ in figures.items()}
    versions = [f"Python {platform.python_version()}", f"indelible {indelible.__version__}"]
    versions += [f"lmdb {'.'.join(map(str, lmdb.version()))}"] if "lmdb" in chosen else []
    versions += [f"SQLite {sqlite3.sqlite_version}"]
    versions += [f"diskcache {diskcache.__version__}"] if "diskcache" in chosen else []
    print(f"{options.keys} keys, median of {options.rounds} rounds, ns per key; {os.cpu_count()} cores; {', '.join(versions)}\n")
    print("| | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (len(COLUMNS) + 1))
    for name, row in medians.items():
        print(f"| {name} | " + " | ".join(f"{value:,.0f}" for value in row[:-1]) + f" | {row[-1]:.2f} |")
    print()
    if {"indelible", "sqlite3"} <= medians.keys():
        print("\n".join(f"- {line}" for line in goals(medians)))


if __name__ == "__main__":
    main()
