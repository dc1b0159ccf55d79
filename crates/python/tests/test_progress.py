"""Progress of long calls: told to functions, bars and lines."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, not_tested, python


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


# Copies in a fresh process; a progress function raises at a piece, and the process is killed: at once, or by the
# handler of the exception.
KILLED = """
import os, signal, sys
import indelible
path, to, how, at, late = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
pool, other = indelible.open(path), indelible.open(to)
calls = 0
def tell(done, total):
    global calls
    calls += 1
    if calls == at:
        if not late:
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt
try:
    match how:
        case "copy": pool.copy_to("w", other, "c", progress=tell)
        case "rebase": pool.copy_to("w", other, "c", rebase=True, progress=tell)
        case "move": pool.move_to("w", other, progress=tell)
        case "save": other.checkpoints("c").save("one", {"w": pool.array("w", mode="r")}, progress=tell)
except KeyboardInterrupt:
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["copy", "rebase", "move", "save"])
def test_killed_after_an_interrupt_nothing_is_torn(pool: indelible.Pool, tmp_path: Path, how: str) -> None:
    with pool:
        pool.array("w", 1 << 20)[:] = 7
    other = tmp_path / "other.pmo"
    indelible.open(other, 64 * MIB)
    free = indelible.open(other).info()["free"]
    # The last ones come after the end: nothing is interrupted then.
    for at in (1, 4, 1000):
        for late in (0, 1):
            died = subprocess.run(python(KILLED, pool.path, other, how, at, late), timeout=300)
            assert died.returncode == -signal.SIGKILL
            for path in (pool.path, other):
                checked = subprocess.run([sys.executable, "-m", "indelible", "check", path], capture_output=True, text=True)
                assert checked.returncode == 0, checked.stdout + checked.stderr
            source, target = indelible.open(pool.path), indelible.open(other)
            whole = at == 1000
            if how == "move":
                # In one of the two, never in both.
                assert ("w" in source) != ("w" in target) == whole
                if whole:
                    target.move_to("w", source)
            else:
                assert list(source) == ["w"]
            assert (source.array("w", mode="r") == 7).all()
            if how == "save":
                saved = target.checkpoints("c", mode="r")
                saved.refresh()
                assert list(saved) == ["one"] * whole and (not whole or (saved.load()["w"] == 7).all())
            elif whole and how != "move":
                assert (target.array("c", mode="r") == 7).all()
                gc.collect()
                target.remove("c")
            elif not whole:
                assert list(target) == []
                target.collect()
                assert target.info()["free"] == free


def test_backups_and_restores_tell_progress_and_end_by_an_exception(
    pool: indelible.Pool, tmp_path: Path
) -> None:
    with pool:
        pool.array("w", 3 << 19)[:] = 7
        pool.dict("run")["step"] = 1
    pool = indelible.open(pool.path)
    told: list[tuple[int, int]] = []
    file, folder, new = tmp_path / "w.pmobackup", tmp_path / "backups", tmp_path / "new.pmo"
    folder.mkdir()
    made = pool.backup(file, progress=lambda *at: told.append(at))
    assert (made.path, made.objects, made.base) == (file, 2, None) and made.size == file.stat().st_size
    assert len(told) > 5 and told == sorted(told) and told[-1][0] == told[-1][1] > 12 << 20
    with pytest.raises(indelible.PoolExists, match=r"choose another path, or `replace=True`"):
        pool.backup(file)
    assert pool.backup(file, objects=["run"], replace=True).objects == 1

    def enough(done: int, _total: int) -> None:
        if done > 4 << 20:
            raise TimeoutError("it takes too long")

    for path in (file, folder):
        with pytest.raises(TimeoutError, match="it takes too long"):
            pool.backup(path, replace=path == file, progress=enough)
    assert {path.name for path in tmp_path.iterdir()} == {"w.pmobackup", "backups"}
    assert not list(folder.glob("*.pmobackup"))
    first = pool.backup(folder)
    w = pool.array("w")
    w[:9] = 8
    w.psync()
    del w
    second = pool.backup(folder)
    # The part that the interrupted one has left.
    assert first.base is not None and first.base.suffix == ".pmopart" and second.base == first.path
    with pytest.raises(TimeoutError, match="it takes too long"):
        indelible.restore(folder, new, progress=enough)
    assert not new.exists()
    told.clear()
    assert sorted(indelible.restore(folder, new, rebase=True, progress=lambda *at: told.append(at))) == ["run", "w"]
    assert told == sorted(told) and told[-1][0] == told[-1][1] > 0
    restored = indelible.open(new)
    assert (restored.array("w")[:10] == [8] * 9 + [7]).all() and restored.dict("run")["step"] == 1
    with pytest.raises(indelible.PoolExists, match="replace=True"):
        indelible.restore(file, new)
    with pytest.raises(indelible.Error, match="w.pmobackup.no"):
        indelible.restore(tmp_path / "w.pmobackup.no", new)
    with pytest.raises(ValueError, match="replace is for a file"):
        pool.backup(folder, replace=True)
