"""Progress of long calls: told to functions, bars and lines."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import not_tested


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
