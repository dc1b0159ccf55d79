"""psync beside other threads."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, not_tested, offers


def test_psync_releases_the_gil(open_pool: Open) -> None:
    """Another thread runs Python code while a psync that it ends waits... for nothing: it counts on."""
    pool = open_pool(256 * MIB)
    array = pool.array("w", 16 * MIB)
    counted, stop, ready = [0], threading.Event(), threading.Event()

    def count() -> None:
        ready.set()
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    ready.wait()
    during = 0
    for round in range(20):
        array[:] = round + 1
        before = counted[0]
        array.psync()  # one call of C: with the GIL in hand no other thread would count
        during += counted[0] > before
        if during:
            break
    stop.set()
    thread.join()
    assert during > 0


def test_a_cut_beside_storing_threads_is_never_torn(open_pool: Open) -> None:
    """A thread stores the same number to all of three arrays' elements, in order: a cut sees at most one step."""
    pool = open_pool()
    array = pool.array("w", 3 * 4096 // 8, "u8")
    places = array[:: 4096 // 8]
    stop = threading.Event()

    def store(places: np.ndarray[Any, Any]) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            for index in range(3):
                places[index] = number

    thread = threading.Thread(target=store, args=(places,))
    thread.start()
    try:
        for _ in range(100):
            array.psync(cut=True)
    finally:
        stop.set()
        thread.join()
    array.psync(cut=True)
    array[:] = 0
    del array, places, thread
    first, second, third = pool.array("w")[:: 4096 // 8]
    assert first == second == third > 0

    # While it runs: what a reader finds after a cut is one step of the thread's at most.
    for _ in range(5):
        array = pool.array("w")
        places = array[:: 4096 // 8]
        stop.clear()
        thread = threading.Thread(target=store, args=(places,))
        thread.start()
        for _ in range(20):
            array.psync(cut=True)
        stop.set()
        thread.join()
        del array, places, thread
        first, second, third = (int(value) for value in pool.array("w")[:: 4096 // 8])
        assert first >= second >= third >= first - 1


def test_reading_into_an_array_goes_on_beside_cuts(path: Path, tmp_path: Path) -> None:
    """A thread has the kernel store to an array all the time, by `readinto`: no call fails, and a cut finds each one begun, done, or half
    done, as far as it was at that moment."""
    if not offers("wp-async"):
        not_tested("readinto beside cuts: tracking by wp-async, which this kernel does not offer")
        pytest.skip("not offered")
    size = MIB
    pool = indelible.open(path, 256 * MIB, tracking="wp-async")
    array = pool.array("w", size, "u1")
    files = [tmp_path / f"{number}.bin" for number in range(3)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number + 1]) * size)
    stop, calls, errors = threading.Event(), [0], list[BaseException]()

    def read(array: np.ndarray[Any, Any]) -> None:
        try:
            while not stop.is_set():
                with open(files[calls[0] % 3], "rb", buffering=0) as file:
                    assert file.readinto(array) == size
                calls[0] += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=read, args=(array,))
    thread.start()
    try:
        for _ in range(40):
            array.psync(cut=True)
            pool.create_from("w", "seen")  # what the cut made durable
            seen = pool.array("seen", mode="r")
            changes = np.flatnonzero(np.diff(seen))
            assert len(changes) <= 1, changes
            if len(changes) == 1 and seen[-1] != 0:
                assert (int(seen[-1]) % 3) + 1 == seen[0]
            del seen
            pool.remove("seen")
            before = calls[0]
            while calls[0] == before and not errors:
                time.sleep(0)
    finally:
        stop.set()
        thread.join()
    assert errors == []


def test_threads_share_a_dict(open_pool: Open) -> None:
    pool = open_pool()
    values = pool.dict("run")
    threads = 4

    def work(number: int) -> None:
        for step in range(100):
            values[f"{number}.step"] = step
            values[f"{number}.{step % 7}"] = np.full(50, step)
            if step % 5 == 0:
                del values[f"{number}.{step % 7}"]
            if step % 10 == number:
                values.psync()

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    values.psync()
    before = {key: repr(value) for key, value in values.items()}
    values.close()
    values = pool.dict("run")
    assert {key: repr(value) for key, value in values.items()} == before
    assert all(values[f"{number}.step"] == 99 for number in range(threads))
    assert values._check() == []


def test_threads_psync_different_objects_and_all_of_them(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 64 * MIB)
    arrays = [pool.array(str(number), 1000) for number in range(3)]
    values = [pool.dict(f"d{number}") for number in range(2)]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(50):
                indelible.psync(*arrays[number:], *values[::-1], *arrays[:number])
                values[number % 2]["x"] = number
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert errors == []
