"""Arrays that transactions alone read and change: as one step, beside other threads, durable or on demand."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from random import Random
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import Open, python


def balances(pool: indelible.Pool, name: str = "bank", length: int = 100, **options: Any) -> indelible.TxArray:
    return pool.transactional(name, length, "i8", **options)


def elements(array: indelible.TxArray) -> Any:
    return array.transaction(lambda tx: tx[array][...])


def test_a_transaction_is_durable_or_has_done_nothing(open_pool: Open) -> None:
    with open_pool() as pool:
        bank = balances(pool)
        assert (pool.stat("bank").durability, bank.shape, bank.dtype, len(bank)) == ("transactional", (100,), "i8", 100)

        def move(tx: indelible.Tx) -> int:
            accounts = tx[bank]
            accounts[1] -= 30
            accounts[2] += 30
            assert (accounts[1], accounts[2]) == (-30, 30)
            return int(accounts[2])

        assert bank.transaction(move) == 30

        def fails(tx: indelible.Tx) -> None:
            tx[bank][:] = 7
            raise KeyError("why not")

        with pytest.raises(KeyError, match="why not"):
            bank.transaction(fails)
        bank.close()
        assert bank.closed
    with open_pool() as pool:
        bank = pool["bank"]
        assert isinstance(bank, indelible.TxArray)
        expected = np.zeros(100, "i8")
        expected[1:3] = -30, 30
        assert np.array_equal(elements(bank), expected)


def test_every_index_that_needs_no_memory_is_one(pool: indelible.Pool) -> None:
    """Beside the same of an array in memory; results cannot be changed, so that no change of one is lost."""
    dtype = np.dtype([("id", "u4"), ("at", "f8", (2,)), ("name", "S5")], align=True)
    for shape, kind, order in [((4, 5, 6), np.dtype("i4"), "C"), ((4, 5, 6), np.dtype("i4"), "F"), ((7,), dtype, "C"), ((), dtype, "C")]:
        name = f"{shape} {kind.names} {order}"
        array = pool.transactional(name, shape, kind, order)
        model = np.zeros(shape, kind, order)
        random = Random(7)
        for step in range(60):
            index: Any = tuple(
                random.choice([random.randrange(-length, length), slice(None, None, random.choice([1, -1, 2])), slice(1, 3)])
                for length in shape[: random.randrange(len(shape) + 1)]
            )
            if random.randrange(4) == 0:
                index = (..., *index) if len(index) == len(shape) else (*index, ...)
            value: Any = step if kind.names is None else (step, (step, -step), b"n" * (step % 6))

            def change(tx: indelible.Tx, index: Any = index, value: Any = value) -> Any:
                tx[array][index] = value
                return tx[array][index]

            model[index] = value
            read = array.transaction(change)
            assert np.array_equal(read, model[index]), (name, index)
            assert np.array_equal(elements(array), model), (name, index)
            if isinstance(read, np.ndarray) and read.size:
                with pytest.raises(ValueError, match="read-only"):
                    read[...] = value
        if kind.names is not None:
            record = array.transaction(lambda tx: tx[array][(0,) * len(shape)])
            with pytest.raises(ValueError, match="read-only|not writeable"):
                record["id"] = 5
            for field in kind.names:

                def fields(tx: indelible.Tx, field: str = field) -> Any:
                    tx[array][field] = np.ones(1, kind)[field][0]
                    if shape:
                        tx[array][field][3] = np.zeros(1, kind)[field][0]
                    return tx[array][field][...]

                model[field] = np.ones(1, kind)[field][0]
                if shape:
                    model[field][3] = np.zeros(1, kind)[field][0]
                assert np.array_equal(array.transaction(fields), model[field])
        for wrong in [[0], True, None, np.array([0]), (0.5,), "absent", np.zeros(shape, bool)]:
            with pytest.raises((TypeError, ValueError, IndexError)):
                array.transaction(lambda tx, wrong=wrong: tx[array][wrong][...])
        for wrong in [100, (0,) * 9]:
            with pytest.raises(IndexError):
                array.transaction(lambda tx, wrong=wrong: tx[array][wrong])


def test_single_numbers_are_stored_and_read_as_numpy_does(pool: indelible.Pool) -> None:
    """Values are refused as numpy refuses them; the others have its bits and types."""
    values: list[Any] = [
        1, -1, 300, 2.5, 1e300, float("nan"), True, 1j, "x", "7", None, [1], np.ones(1), np.ones(2), np.float64(3.5),
        np.int8(-4), np.uint64(1 << 63), np.bool_(True), np.complex64(2j), np.array(9), np.datetime64(5, "s"),
    ]  # fmt: skip
    for number, kind in enumerate(["i8", "u1", "f4", "f8", "c16", "?", ">i4", ">f8", "S3", "M8[s]"]):
        array, model = pool.transactional(f"array {number}", 5, kind), np.zeros(5, kind)
        for index in (0, 4, -5, -1, np.int64(2)):
            for value in values:

                def change(tx: indelible.Tx, index: Any = index, value: Any = value) -> Any:
                    tx[array][index] = value
                    return tx[array][index]

                stored = np.zeros((), kind)
                try:
                    stored[...] = value
                except Exception as error:
                    with pytest.raises(type(error)):
                        array.transaction(change)
                    continue
                model[index] = stored[()]
                read = array.transaction(change)
                assert type(read) is type(model[index]) and read.tobytes() == model[index].tobytes(), (kind, index, value)
        assert elements(array).tobytes() == model.tobytes()
        for wrong in (5, -6):
            with pytest.raises(IndexError):
                array.transaction(lambda tx, wrong=wrong: tx[array][wrong])
        kept: list[Any] = []
        array.transaction(lambda tx: kept.append(tx[array]))
        for use in (lambda: kept[0][0], lambda: kept[0].__setitem__(0, 1)):
            with pytest.raises(indelible.Closed, match="it is over"):
                use()
        array.close()


def test_threads_see_all_of_a_transaction_or_nothing(pool: indelible.Pool) -> None:
    bank, branch, started = balances(pool), balances(pool, "branch"), threading.Barrier(5)
    failed: list[BaseException] = []
    runs = [0] * 4
    committed = [0] * 4

    def work(me: int) -> None:
        random = Random(me)

        def move(tx: indelible.Tx) -> None:
            runs[me] += 1
            from_, to = random.randrange(4), random.randrange(4)
            tx[bank][from_] -= 1
            tx[branch][to] += 1
            tx.on_commit(count)

        def count() -> None:
            committed[me] += 1

        started.wait()
        for _ in range(300):
            indelible.transaction([bank, branch], move)

    def look() -> None:
        started.wait()
        for _ in range(200):
            both = indelible.transaction([bank, branch], lambda tx: tx[bank][:].sum() + tx[branch][:].sum())
            assert both == 0

    def kept(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=kept, args=(work, me)) for me in range(4)] + [threading.Thread(target=kept, args=(look,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert elements(branch).sum() == 1200 and committed == [300] * 4 and all(n >= 300 for n in runs)


def test_a_function_that_has_met_another_is_run_again_whatever_it_makes_of_that(pool: indelible.Pool) -> None:
    bank = balances(pool)
    seen: list[str] = []

    def other(value: int) -> None:
        thread = threading.Thread(target=bank.transaction, args=(lambda tx: tx[bank].__setitem__(slice(0, 2), value),))
        thread.start()
        thread.join()

    def swallows(tx: indelible.Tx) -> int:
        first = int(tx[bank][0])
        if not seen:
            tx.on_abort(lambda: seen.append("undone"))
            tx.on_commit(lambda: seen.append("never"))
            other(5)
        try:
            second = int(tx[bank][1])
        except indelible.Conflict:
            seen.append("conflict")
            second = -1
        tx[bank][2] = first + second
        return first + second

    # The conflict is found at the second read, or at the commit.
    assert bank.transaction(swallows) == 10
    assert seen in (["conflict", "undone"], ["undone"]) and elements(bank)[2] == 10
    seen.clear()

    def raises(tx: indelible.Tx) -> int:
        first = int(tx[bank][0])
        if not seen:
            seen.append("other")
            other(6)
        if int(tx[bank][1]) != first:
            raise AssertionError("two moments")
        return first

    assert bank.transaction(raises) == 6


def test_commits_on_demand_are_durable_when_they_are_asked_for(open_pool: Open) -> None:
    with open_pool() as pool:
        pool.set_epochs(None, 16 << 20)
        later = balances(pool, "later", durability="on-demand")
        now = balances(pool, "now")
        now.close()
        now = pool.transactional("now", with_on_demand=True)

        def durable(name: str, at: int) -> int:
            pool.snapshot(name, "look")
            try:
                return int(np.frombuffer(memoryview(pool._attach_anywhere("look", None, None))[4096:], "i8")[at])
            finally:
                pool.remove("look")

        def put(tx: indelible.Tx, at: int, value: int) -> None:
            tx[later][at] = value

        later.transaction(lambda tx: put(tx, 0, 7))
        later.transaction(lambda tx: put(tx, 50, 8))
        assert later.pending == indelible.Pending(2, 128) and durable("later", 0) == 0
        later.tx_sync()
        assert later.pending == (0, 0) and (durable("later", 0), durable("later", 50)) == (7, 8)
        later.transaction(lambda tx: put(tx, 0, 9))
        later.psync()
        assert durable("later", 0) == 9
        later.transaction(lambda tx: put(tx, 0, 10))

        def both(tx: indelible.Tx) -> None:
            tx[now][0] = tx[later][0]

        indelible.transaction((now, later), both)
        assert (durable("now", 0), durable("later", 0)) == (10, 10)
        with pytest.raises(indelible.ClassMismatch):
            later.transaction(lambda tx: tx.alone())
        later.transaction(lambda tx: put(tx, 0, 11))
        later.close()
        assert durable("later", 0) == 11
        strict = balances(pool, "strict")
        later = pool.transactional("later")
        with pytest.raises(indelible.ClassMismatch, match="with_on_demand"):
            indelible.transaction([strict, later], lambda tx: None)


KILLED = """
import sys, indelible
pool = indelible.open(sys.argv[1])
pool.set_epochs(None, 16 << 20)
a, b = pool.transactional("a"), pool.transactional("b")
def step(tx):
    n = int(tx[a][0]) + 1
    tx[a][0] = n
    tx[b][n % 100] = n
    return n
while True:
    print(indelible.transaction([a, b], step), flush=True)
"""


@pytest.mark.parametrize("durability", ["transactional", "on-demand"])
def test_killed_at_any_moment_nothing_that_was_committed_is_lost(ground: Path, tmp_path: Path, durability: Any) -> None:
    random = Random(1)
    path = ground / f"killed {durability}.pmo"
    with indelible.open(path, 64 << 20) as pool:
        for name in "ab":
            balances(pool, name, durability=durability).close()
    before = 0
    for _ in range(6):
        with subprocess.Popen(python(KILLED, path), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            last = 0
            for _ in range(random.randrange(1, 60)):
                last = int(child.stdout.readline())
            child.kill()
            rest = [int(line) for line in child.stdout.read().split("\n") if line]
        last = ([last, *rest])[-1]
        with indelible.open(path) as pool:
            a, b = pool.transactional("a"), pool.transactional("b")
            count, places = indelible.transaction([a, b], lambda tx: (int(tx[a][0]), tx[b][...]))
            assert count in (last, last + 1) and last > before
            assert all(places[n % 100] == n for n in range(max(1, count - 99), count + 1))
            before = count
            a.close()
            b.close()
    path.unlink()


@pytest.mark.parametrize("durability", ["transactional", "on-demand"])
def test_damaged_words_are_repaired_or_an_error(tmp_path: Path, durability: Any) -> None:
    path = tmp_path / "checked.pmo"
    with indelible.open(path, 16 << 20) as pool:
        table = pool.transactional("table", 1000, "u8", durability=durability, ecc=True)
        table.transaction(lambda tx: tx[table].__setitem__(slice(None), np.arange(1000, dtype="u8")))
        table.close()
        stat = pool.stat("table")
        assert stat.ecc and stat.durability == durability
        assert pool.scrub("table") == indelible.Scrubbed(stat.size // 8, 0, [])
    flips = {100: b"\x01\x80", 500: b"\xff" * 5}
    memory = bytearray(path.read_bytes())
    for value, bits in flips.items():
        # A word, and its check word behind it. The elements begin at a page; those in the log do not.
        pair = value.to_bytes(8, "little") + _check_word(value)
        at = memory.index(pair)
        while (at - 16 * value) % 4096:
            at = memory.index(pair, at + 1)
        for nth, flipped in enumerate(bits):
            memory[at + 3 * nth] ^= flipped
    path.write_bytes(memory)
    with indelible.open(path) as pool:
        table = pool.transactional("table")
        assert table.transaction(lambda tx: int(tx[table][100])) == 100
        with pytest.raises(indelible.Damaged):
            table.transaction(lambda tx: tx[table][500])
        table.close()
        found = pool.scrub("table")
        assert (found.repaired, len(found.lost)) == (0, 1)
        table = pool.transactional("table")
        table.transaction(lambda tx: tx[table].__setitem__(500, 7))
        values = table.transaction(lambda tx: tx[table][...])
        assert values[500] == 7 and np.delete(values, 500).tolist() == [n for n in range(1000) if n != 500]
        table.close()
        pool.transactional("plain", 3, "i8").close()
        with pytest.raises(indelible.ClassMismatch):
            pool.scrub("plain")


def _check_word(word: int) -> bytes:
    """CRC-32C of a word from a register of zero, without a final inversion, and its halves mixed with it."""
    crc = 0
    for byte in word.to_bytes(8, "little"):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    upper, lower = word >> 32, word & 0xFFFFFFFF
    return (crc | (upper ^ lower ^ crc) << 32).to_bytes(8, "little")


def test_mistakes_are_errors(pool: indelible.Pool, tmp_path: Path) -> None:
    bank = balances(pool)
    with pytest.raises(indelible.NotFound, match="no shape was given"):
        pool.transactional("absent")
    with pytest.raises(ValueError, match="durability is"):
        pool.transactional("absent", 3, durability="psync")  # type: ignore[arg-type]
    with pytest.raises(indelible.Mismatch, match="asked for was"):
        bank.close()
        pool.transactional("bank", 101)
    bank = balances(pool)
    assert pool.transactional("bank") is bank
    pool.array("plain", 3, "i8").psync()
    with pytest.raises(indelible.ClassMismatch):
        pool.transactional("plain")
    with pytest.raises(indelible.ClassMismatch):
        pool.array("bank")
    with pytest.raises(indelible.Held):
        pool.set_durability("bank", "psync")
    with pytest.raises(TypeError, match="TxArrays"):
        indelible.transaction([pool.array("plain")], lambda tx: None)  # type: ignore[list-item]
    with pytest.raises(indelible.Error, match="needs an object"):
        indelible.transaction([], lambda tx: None)
    with pytest.raises(TypeError, match="in a transaction"):
        np.asarray(bank)
    with pytest.raises(TypeError, match="in a transaction"):
        list(bank)

    kept: list[indelible.Tx] = []
    other = balances(pool, "other")

    def mistakes(tx: indelible.Tx) -> None:
        kept.append(tx)
        with pytest.raises(indelible.InTransaction):
            other.transaction(lambda tx: None)
        with pytest.raises(indelible.InTransaction):
            bank.psync()
        with pytest.raises(indelible.InTransaction):
            bank.tx_sync()
        with pytest.raises(indelible.InTransaction):
            bank.close()
        with pytest.raises(indelible.InTransaction):
            pool.transactional("plain")
        with pytest.raises(indelible.Error, match="no object of the transaction"):
            tx[other][0] = 1
        with pytest.raises(TypeError, match="TxArray"):
            tx[5]  # type: ignore[index]
        with pytest.raises(OverflowError):
            tx[bank][0] = 1 << 70
        foreign: list[BaseException] = []

        def elsewhere() -> None:
            try:
                tx[bank][0]
            except indelible.Error as error:
                foreign.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(foreign) == 1
        tx[bank][0] = 3

    bank.transaction(mistakes)
    assert elements(bank)[0] == 3
    for use in [lambda tx: tx[bank][0], lambda tx: tx[bank].__setitem__(0, 1), lambda tx: tx.alone(), lambda tx: tx.on_commit(print)]:
        with pytest.raises(indelible.Closed, match="it is over"):
            use(kept[0])

    async def coroutine(tx: indelible.Tx) -> None:
        tx[bank][0] = 4

    with pytest.raises(TypeError, match="coroutine"):
        bank.transaction(coroutine)
    assert elements(bank)[0] == 3
    runs = 0

    def alone(tx: indelible.Tx) -> None:
        nonlocal runs
        tx.alone()
        runs += 1

    bank.transaction(alone)
    assert runs == 1
    other.close()
    with pytest.raises(indelible.Closed, match="closed"):
        indelible.transaction([bank, other], lambda tx: None)
    second = indelible.open(tmp_path / "second.pmo", 8 << 20)
    with pytest.raises(indelible.DifferentPools):
        indelible.transaction([bank, balances(second)], lambda tx: None)
    # It is an array again.
    bank.close()
    pool.set_durability("bank", "psync")
    assert pool.array("bank")[0] == 3


def test_an_array_whose_detach_failed_is_closed_and_opens_again(pool: indelible.Pool) -> None:
    bank = balances(pool)
    bank.transaction(lambda tx: tx[bank].__setitem__(0, 5))
    attached = bank._attachment

    class Fails:
        address = attached.address

        def close(self) -> None:
            if self.address is not None:
                self.address = None
                attached.close()
                raise indelible.Io("the medium failed")

    bank._attachment = Fails()
    with pytest.raises(indelible.Io):
        bank.close()
    assert bank.closed
    bank.close()
    with pytest.raises(indelible.Closed):
        bank.transaction(lambda tx: None)
    assert elements(balances(pool))[0] == 5


def test_a_fork_of_the_process_has_no_transactions(pool: indelible.Pool) -> None:
    bank = balances(pool)
    child = os.fork()
    if child == 0:
        try:
            bank.transaction(lambda tx: tx[bank][0])
        except indelible.Forked:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert elements(bank).sum() == 0
