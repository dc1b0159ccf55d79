"""Programs that `pmo run` starts in a view, and starts again after their death."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import indelible
import pytest
from conftest import python

PROGRAM = """
import os, signal, sys
import indelible

def work(view):
    assert view.name == "work" and view.contexts == ["all"]
    with view:
        for number in range(view[0][0], 5):
            view[0][0] = number + 1
            view.psync()
            if number in (1, 3):
                view[1][0] = 9                     # never psynced
                os.kill(os.getpid(), signal.SIGKILL)
        return view[0][0], view[1][0]

def begins(view):
    print("begins", flush=True)
    return work(view)

def goes_on(view, death):
    for left in death.objects:
        print(death.restarts, death.signal, left.slot, left.name, left.psyncs, left.in_use, left.gone, flush=True)
    assert death.process not in (None, os.getpid())
    return work(view)

print(*indelible.resume(begins, goes_on), flush=True)
"""


def test_a_program_that_dies_goes_on(pool: indelible.Pool, tmp_path: Path) -> None:
    for name in ("progress", "other"):
        pool.create(name, 4096)
    with pool.view("work", 2) as view:
        view.set(0, "progress")
        view.set(1, "other")
    with pool.context("all", 0) as context:
        context.set_default("rw")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = [sys.executable, "-m", "indelible", "-q", "run", str(pool.path), "--view", "work", "--context", "all", "--pause", "0"]
    done = subprocess.run([*run, sys.executable, "-W", "error", str(program)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["begins", "1 9 0 progress 2 True False", "1 9 1 other 0 True False", "2 9 0 progress 4 True False", "2 9 1 other 0 True False", "5 0"],
    ), done.stderr


def test_a_program_that_was_started_otherwise_is_told(pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_arguments: object) -> None:
        raise AssertionError

    for name in ("PMO_POOL", "PMO_VIEW"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(indelible.Error, match="start the program with `pmo run`") as refused:
        indelible.resume(never, never)
    assert refused.value.kind == "Unsuitable"
    done = subprocess.run(
        python("import indelible; indelible.resume(print, print)"),
        env={**os.environ, "PMO_POOL": str(pool.path), "PMO_VIEW": "none"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "indelible.NotFound" in done.stderr
