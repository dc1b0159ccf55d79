"""Arrays larger than the memory that a program gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import indelible

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Open

MIB = 1 << 20
LIMIT = 2 * MIB
SIZE = 24 * MIB
PIECE = MIB


def own(array: indelible.Array) -> int:
    """Bytes of the array that are the process's own, which the kernel cannot reclaim."""
    start, found, within = array.ctypes.data, 0, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if not words[0].endswith(":"):
                first, end = (int(word, 16) for word in words[0].split("-"))
                within = first < start + array.nbytes and start < end
            elif within and words[0] == "Anonymous:":
                found += int(words[1]) << 10
    return found


def anonymous() -> int:
    """Bytes of the process that no file backs."""
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10


def test_an_array_filled_in_pieces_stays_within_its_memory(open_pool: Open) -> None:
    pool = open_pool(memory_limit=LIMIT)
    array = pool.array("a", SIZE // 8, "u8")
    before = anonymous()
    for first in range(0, len(array), PIECE // 8):
        array[first : first + PIECE // 8] = np.arange(first, min(first + PIECE // 8, len(array)))
        array.psync()
        assert own(array) <= LIMIT, f"after {first}"
    assert anonymous() - before < SIZE // 2
    assert (array == np.arange(len(array))).all()
    array[5::512] = 7
    array.psync(cut=True)
    array.psync()
    assert own(array) <= LIMIT
    assert (array[5::512] == 7).all()
    assert (array[6::512] == np.arange(6, len(array), 512)).all()
    del array
    array = pool.array("a")
    assert (array[5::512] == 7).all()
    assert (array[6::512] == np.arange(6, len(array), 512)).all()


def test_without_a_limit_little_memory_stays(open_pool: Open) -> None:
    array = open_pool().array("a", LIMIT, "u8")
    array[:] = 3
    array.psync()
    assert own(array) > LIMIT


def test_a_limit_that_is_too_low_is_refused(path: Path) -> None:
    with pytest.raises(indelible.Error, match="at least 1048576 bytes of memory: the limit of 1 is too low"):
        indelible.open(path, 8 * MIB, memory_limit=1)
