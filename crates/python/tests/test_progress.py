"""Progress of long calls: told to functions, bars and lines."""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, not_tested


def test_a_function_is_told_of_progress_and_may_end_the_call(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("run")
    state = {"w": np.ones(1 << 20)}
    told: list[tuple[int, int]] = []
    saved.save("one", state, progress=lambda done, total: told.append((done, total)))
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] > 8 << 20 and len(told) > 5
    assert [done for done, _ in told] == sorted({done for done, _ in told})

    def enough(done: int, _total: int) -> None:
        if done > 1 << 20:
            raise TimeoutError("it takes too long")

    with pytest.raises(TimeoutError):
        saved.save("two", state, progress=enough)
    assert list(saved) == ["one"]
    saved.save("two", state)
    assert list(saved) == ["one", "two"] and (saved.load()["w"] == 1).all()


def test_a_line_is_shown_without_tqdm_and_a_bar_with_it(
    pool: indelible.Pool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = pool.checkpoints("run")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    saved.save("one", {"w": np.ones(1000)}, progress=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("checkpoint 'one': ") and line.split(": ")[1].split(" of ")[0] == line.split(" of ")[1]
    monkeypatch.undo()
    try:
        import tqdm.auto  # noqa: F401
    except ImportError:
        not_tested("a bar of tqdm, which is not installed")
        return
    saved.save("two", {"w": np.ones(1000)}, progress=True)
    assert "checkpoint 'two'" in capsys.readouterr().err
    saved.save("three", {"w": np.ones(1000)})
    assert capsys.readouterr().err == ""


def test_copies_moves_and_collections_tell_progress_and_end_by_an_exception(
    pool: indelible.Pool, tmp_path: Path
) -> None:
    with pool:
        pool.array("w", 3 << 19)[:] = 7
    pool = indelible.open(pool.path)
    other = indelible.open(tmp_path / "other.pmo", 64 * MIB)
    told: list[tuple[int, int]] = []
    pool.copy_to("w", other, "c", progress=lambda *at: told.append(at))
    assert len(told) > 5 and told == sorted(set(told)) and told[-1][0] == told[-1][1] > 12 << 20
    free = other.info()["free"]

    def enough(done: int, _total: int) -> None:
        if done > 4 << 20:
            raise TimeoutError("it takes too long")

    for end in (
        lambda: pool.copy_to("w", other, "d", progress=enough),
        lambda: pool.copy_to("w", other, "d", rebase=True, progress=enough),
        lambda: pool.move_to("w", other, progress=enough),
    ):
        with pytest.raises(TimeoutError, match="it takes too long"):
            end()
        assert list(pool) == ["w"] and list(other) == ["c"]
    other.collect()
    assert other.info()["free"] == free
    pool.snapshot("w", "s")
    assert pool.array("w")[0] == 7
    gc.collect()
    pool.create_from("s", "again")
    pool.remove("s")
    told.clear()
    with pytest.raises(ZeroDivisionError):
        pool.collect(progress=lambda done, _total: done // 0)
    pool.collect(progress=lambda *at: told.append(at))
    assert told and told[-1][0] == told[-1][1] == len(told)
    pool.move_to("w", other, progress=lambda *at: told.append(at))
    assert "w" not in pool and (other.array("w") == 7).all() and told[-1][1] > 12 << 20


def test_ctrl_c_ends_a_copy(pool: indelible.Pool, tmp_path: Path) -> None:
    with pool:
        pool.array("w", 1 << 20)[:] = 7
    pool = indelible.open(pool.path)
    other = indelible.open(tmp_path / "other.pmo", 64 * MIB)
    calls: list[int] = []

    def interrupt(done: int, _total: int) -> None:
        calls.append(done)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        pool.copy_to("w", other, "c", progress=interrupt)
    assert len(calls) == 1 and list(other) == []


def test_lines_of_copies_and_collections(
    pool: indelible.Pool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pool:
        pool.array("w", 1 << 10)[:] = 7
    pool = indelible.open(pool.path)
    other = indelible.open(tmp_path / "other.pmo", 64 * MIB)
    pool.create_from("w", "again")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    pool.copy_to("w", other, "c", progress=True)
    pool.collect(progress=True)
    copied, collected = capsys.readouterr().err.splitlines()
    assert copied == "copy of 'w': 12.0 KiB of 12.0 KiB"
    assert collected.startswith("collect: ") and collected.endswith(" objects")
