"""psync beside other threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import indelible
import numpy as np
from conftest import MIB, Open


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
        array.psync()  # one call of C: with the GIL in hand nobody else would count
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
