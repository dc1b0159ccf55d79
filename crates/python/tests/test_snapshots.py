"""Snapshots and copies: made at once, beside whoever writes, and of one moment."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open
from test_following import prepared, step_in, step_of, writing


def test_a_snapshot_keeps_what_the_last_psync_left(open_pool: Open) -> None:
    pool = open_pool()
    w = pool.array("w", 10_000)
    w[:] = 1
    w.psync()
    w[:] = 2
    pool.snapshot("w", "w@one")
    w.psync()
    pool.snapshot("w", "w@two")
    assert [(stat.name, stat.snapshot, stat.shares) for stat in pool.list()] == [
        ("w", False, True), ("w@one", True, False), ("w@two", True, True),
    ]  # fmt: skip
    one, two = pool.array("w@one", mode="r"), pool.array("w@two", mode="r")
    assert (one == 1).all() and (two == 2).all() and (w == 2).all() and one.refresh() is one
    assert (pool["w@one"] == 1).all() and not pool["w@one"].flags.writeable
    for attach in (pool.array, pool.attach):
        with pytest.raises(indelible.ReadOnly) as caught:
            attach("w@one")
        assert caught.value.kind == "ObjectReadOnly"
    del one, two
    pool.remove("w@one")
    pool.remove("w@two")
    del w
    pool.collect()
    assert not pool.stat("w").shares and (pool.array("w") == 2).all()


def test_snapshots_of_several_are_of_one_moment(open_pool: Open, path: Path, tracking: str) -> None:
    pool = prepared(open_pool)
    with writing(path, tracking) as writer:
        for number in range(8):
            at_least = writer.next()
            pool.snapshot({"a": f"a@{number}", "run": f"run@{number}"})
            a = pool.array(f"a@{number}", mode="r")
            with pool.dict(f"run@{number}", mode="r") as run:
                assert step_in(run) == step_of(a) >= at_least
        last = writer.kill()
    assert step_of(pool.array("a")) >= last
    del a
    gc.collect()
    for number in range(8):
        pool.remove(f"a@{number}")
        pool.remove(f"run@{number}")
    pool.collect()
    assert not pool.stat("a").shares


def test_a_copy_goes_its_own_way(open_pool: Open) -> None:
    pool = open_pool()
    w = pool.array("w", (100, 100))
    w[:] = 1
    w.psync()
    pool.create_from("w", "trial")
    pool.snapshot("w", "w@one")
    w[:50] = 2
    w.psync()
    del w
    trial = pool.array("trial")
    trial[50:] = 3
    trial.psync()
    del trial
    assert pool.array("w")[[0, 99], 0].tolist() == [2, 1]
    assert pool.array("trial")[[0, 99], 0].tolist() == [1, 3]
    pool.create_from("w@one", "back", key=None, new_key=b"own", read_only=True)
    with pytest.raises(indelible.WrongKey):
        pool.array("back", mode="r")
    assert (pool.array("back", mode="r", key=b"own") == 1).all()
    with pytest.raises(indelible.ReadOnly):
        pool.array("back", key=b"own")
    with pool.dict("run") as run:
        run["w"] = np.ones(1000)
    pool.create_from("run", "other")
    with pool.dict("other") as other:
        other["w"] *= 2
        assert other["w"].sum() == 2000
    with pool.dict("run") as run:
        assert run["w"].sum() == 1000
    pool.snapshot("run", "run@one")
    pool.create("raw", 4096)
    pool.snapshot("raw", "raw@one")
    kinds = {name: type(pool[name]) for name in ("run@one", "raw@one", "w@one")}
    assert kinds == {"run@one": indelible.Dict, "raw@one": indelible.Object, "w@one": indelible.Array}


def test_an_object_goes_back_to_a_snapshot(open_pool: Open) -> None:
    pool = open_pool()
    log = pool.array("log", (-1, 4), "f4").grow(3)
    log[:] = 1
    log.psync()
    with pool.dict("run") as run:
        run["step"] = 1
    pool.snapshot({"log": "log@1", "run": "run@1"})
    log = log.grow(100_000)
    log[:] = 2
    log.psync()
    with pool.dict("run") as run:
        run["step"], run["more"] = 2, np.ones(1000)
    reader = pool.array("log@1", mode="r")
    with pytest.raises(indelible.Held):
        pool.rollback("log", "log@1")
    del log
    following = pool.array("log", mode="r")
    for _ in range(2):
        pool.rollback("log", "log@1")
        pool.rollback("run", "run@1")
        log = pool.array("log")
        assert log.shape == (3, 4) and (log == 1).all()
        log[:] = 3
        log.psync()
        del log
        with pool.dict("run") as run:
            assert dict(run) == {"step": 1} and run._check() == []
            run["step"] = 3
    # Those who read are not disturbed, and a refresh shows where the object went.
    assert (reader == 1).all() and following.shape == (100_000, 4) and (following == 2).all()
    assert following.refresh().shape == (3, 4)
    pool.array("other", 3, key=b"secret").psync()
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: pool.rollback("log", "none"), indelible.NotFound),
        (lambda: pool.rollback("none", "log@1"), indelible.NotFound),
        (lambda: pool.rollback("log", "run@1"), indelible.NotFound),
        (lambda: pool.rollback("other", "log@1", key=b"wrong"), indelible.Error),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
    assert (pool.array("log") == 3).all()


def test_differences_are_told_by_pages(open_pool: Open) -> None:
    pool = open_pool()
    w = pool.array("w", (10, 4096), "u1")
    w.psync()
    pool.snapshot("w", "w@one")
    before = pool.stat("w").own
    w[2:4] = 1
    w[7, 5] = 1
    w[9, 5] = 1
    w.psync()
    w[9, 5] = 0
    w.psync()
    del w
    assert pool.stat("w").own == before + 4 * 4096 and pool.stat("w@one").own >= 11 * 4096
    # Elements begin at byte 4096.
    ranges = [(3 * 4096, 5 * 4096), (8 * 4096, 9 * 4096)]
    for _ in range(2):
        assert pool.diff("w@one", "w") == indelible.Difference(ranges, 11 * 4096, 11 * 4096)
        assert pool.diff("w", "w") == indelible.Difference([], 11 * 4096, 11 * 4096)
        w = pool.array("w")  # beside a writer, too
    del w
    for call in (lambda: pool.diff("w", "none"), lambda: pool.diff("none", "w")):
        with pytest.raises(indelible.NotFound) as caught:
            call()
        assert caught.value.object == "none"


def test_snapshots_are_thinned_by_a_policy(open_pool: Open) -> None:
    pool = open_pool()
    w = pool.array("w", 1000)
    for day in range(1, 29):
        w[:] = day
        w.psync()
        pool.snapshot("w", f"w@2020-02-{day:02}T03:00:00Z")
    pool.snapshot("w", "w@kept")
    for keep in ("24h", "1x:1h", "1h:1d", ""):
        with pytest.raises(ValueError, match="a policy is a list such as"):
            pool.thin("w", keep)
    with pytest.raises(indelible.NotFound):
        pool.thin("none", "24h:1h")
    assert len(pool.thin("w", "52w:1d,2000w:4w")) == 26
    assert pool.thin("w", "52w:1d,2000w:4w") == []
    left = [name for name in pool if "@" in name]
    assert left[-2:] == ["w@2020-02-28T03:00:00Z", "w@kept"] and len(left) == 3
    assert (pool.array(left[0], mode="r") == int(left[0][10:12])).all() and (w == 28).all()


def test_what_is_refused_leaves_everything_as_it_was(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("w", 10, key=b"secret").psync()
    pool.array("v", 10).psync()
    before = [stat.name for stat in pool.list()]
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: pool.snapshot("none", "x"), indelible.NotFound),
        (lambda: pool.snapshot("w", "x"), indelible.WrongKey),
        (lambda: pool.snapshot("w", "x", key=b"wrong"), indelible.WrongKey),
        (lambda: pool.snapshot("v", "w"), indelible.Exists),
        (lambda: pool.snapshot("v", ""), ValueError),
        (lambda: pool.snapshot({"v": "x", "none": "y"}), indelible.NotFound),
        (lambda: pool.snapshot({"v": "x", "w": "y"}), indelible.WrongKey),
        (lambda: pool.snapshot({"v": "x", "w": "x"}, key=b"secret"), indelible.Exists),
        (lambda: pool.create_from("none", "x"), indelible.NotFound),
        (lambda: pool.create_from("w", "x"), indelible.WrongKey),
        (lambda: pool.create_from("v", "w"), indelible.Exists),
        (lambda: pool.snapshot("v"), TypeError),  # type: ignore[call-overload]
        (lambda: pool.snapshot({"v": "x"}, "y"), TypeError),  # type: ignore[call-overload]
        (lambda: pool.snapshot({"v": 1}), TypeError),  # type: ignore[call-overload]
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
        assert [stat.name for stat in pool.list()] == before
    pool.snapshot({})
    pool.snapshot("w", "w@one", key=b"secret")
    pool.create_from("w", "copy", key=b"secret")
    for name in ("w@one", "copy"):
        with pytest.raises(indelible.WrongKey):
            pool.array(name, mode="r")
        assert pool.array(name, mode="r", key=b"secret").shape == (10,)
    pool.close()
    for call in (
        lambda: pool.snapshot("v", "x"),
        lambda: pool.create_from("v", "x"),
        lambda: pool.rollback("v", "x"),
        lambda: pool.diff("v", "v"),
        lambda: pool.thin("v", "1d:1h"),
        pool.collect,
    ):
        with pytest.raises(indelible.Closed):
            call()


def test_an_object_is_made_of_page_ranges(open_pool: Open) -> None:
    pool = open_pool()
    for name, byte in (("a", b"a"), ("b", b"b")):
        pool.create(name, MIB)
        with pool.attach(name) as source:
            with memoryview(source) as memory:
                memory[:] = byte * MIB
            source.psync()
    pool.create_from_ranges("n", MIB + 5000, [("a", 0, MIB - 8192, 0), ("b", 4096, 8192, MIB)])
    stat = pool.stat("n")
    assert stat.size == MIB + 5000 and stat.shares and pool.stat("a").shares and not pool.stat("b").shares
    with pool.attach("n", "r") as n, memoryview(n) as memory:
        found = bytes(memory)
    assert found == b"a" * (MIB - 8192) + bytes(8192) + b"b" * 4096 + bytes(904)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (("a", 1, 4097, 0), indelible.BadSize, "multiples of a page"),
        (("a", 0, 2 * MIB, 0), indelible.BadSize, "ends before"),
        (("none", 0, 4096, 0), indelible.NotFound, '"none"'),
    ]
    for of, error, text in wrong:
        with pytest.raises(error, match=text):
            pool.create_from_ranges("x", MIB, [of])
    with pytest.raises(OverflowError):
        pool.create_from_ranges("x", MIB, [("a", -1, 4096, 0)])
    assert "x" not in pool


def test_a_full_pool_makes_no_snapshot_and_loses_nothing(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 16 * MIB)
    w = pool.array("w", MIB)
    w[:] = 1
    w.psync()
    for make in (lambda: pool.snapshot("w", "w@one"), lambda: pool.create_from("w", "copy")):
        with pytest.raises(indelible.NoRoom):
            make()
        assert [stat.name for stat in pool.list()] == ["w"] and not pool.stat("w").shares
    w[:1000] += 1
    w.psync()
    del w
    assert pool.array("w").sum() == MIB + 1000


def test_rolling_snapshots_do_not_fill_the_pool(pool: indelible.Pool) -> None:
    w = pool.array("w", 300_000)
    w.psync()
    for number in range(60):
        w[:] = number
        w.psync()
        pool.snapshot("w", f"w@{number}")
        if number:
            pool.remove(f"w@{number - 1}")
    assert (pool.array("w@59", mode="r") == 59).all()
    # Other objects that need room get it, too.
    for number in range(60):
        w[:] = -number
        w.psync()
        pool.snapshot("w", "w@now")
        pool.remove("w@now")
        pool.array("other", 300_000).psync()
        pool.remove("other")


def test_a_copy_beside_its_original_says_how(pool: indelible.Pool) -> None:
    w, d = pool.array("w", 10), pool.dict("d")
    w[:], d["a"] = 1, 1
    indelible.psync(w, d)
    pool.create_from("w", "trial")
    pool.create_from("d", "d2")
    for open, name in [(pool.array, "trial"), (pool.dict, "d2")]:
        with pytest.raises(indelible.Error, match=r"object '[wd]', which this process has attached.*rebase=True") as raised:
            open(name)
        assert raised.value.kind == "AddressTaken"
    pool.remove("trial")
    pool.copy_to("w", pool, "trial", rebase=True)
    pool.copy_to("d", pool, "d3", rebase=True)
    trial = pool.array("trial")
    trial[:] = 2
    assert w.sum() == 10 and trial.sum() == 20 and pool.dict("d3")["a"] == 1
