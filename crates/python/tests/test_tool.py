"""The command `pmo` that the wheel has."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import indelible
import numpy as np
import pytest


def tool(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "indelible", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload, no-any-return]


def test_the_wheel_has_the_tool(tmp_path: Path) -> None:
    scripts = {script.name: script.value for script in entry_points(group="console_scripts")}
    assert (scripts["pmo"], scripts["mkpmo"]) == ("indelible._tool:pmo", "indelible._tool:mkpmo")
    path = tmp_path / "p.pmo"
    assert tool("format", path, "--size", "16M").returncode == 0
    pool = indelible.open(path)
    pool.array("w", 10)[:] = 1
    pool.array("w").psync()
    done = tool("ls", path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.splitlines()[1].split()[-1] == "w"
    done = tool("rm", path, "none")
    assert done.returncode == 5 and done.stderr.startswith("error: cannot destroy")
    done = tool("--version")
    assert (done.returncode, done.stdout) == (0, f"pmo {indelible.__version__}\n")


def test_arrays_and_dicts_get_other_addresses(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 64 << 20)
    w = pool.array("w", (1000, 100), "f8")
    w[:] = np.arange(100_000).reshape(1000, 100)
    run = pool.dict("run")
    values: dict[str, object] = {f"key {n}": n for n in range(500)}
    values |= {"text": "long enough for a block of its own", "tree": {"a": [1, (2, None)]}, "bytes": b"\0" * 100}
    run.update(values)
    run["array"] = np.arange(3000)
    for n in range(0, 500, 3):
        del run[f"key {n}"], values[f"key {n}"]
    indelible.psync(w, run)
    for name in ["w", "run"]:
        done = tool("cp", path, name, f"{name} beside", "--rebase")
        assert (done.returncode, done.stderr) == (0, "")
    w2, run2 = pool.array("w beside"), pool.dict("run beside")
    assert w2.ctypes.data != w.ctypes.data and np.array_equal(w2, w)
    for one in [run, run2]:
        assert {key: value for key, value in one.items() if key != "array"} == values
        assert np.array_equal(one["array"], np.arange(3000))
    run2.update({f"more {n}": "x" * 50 for n in range(2000)})
    run2["array"][:] = 1
    w2[:] = 0
    indelible.psync(w2, run2)
    assert len(run) == len(values) + 1 and run["array"][5] == 5 and w[9, 9] == 909


def test_the_tool_is_interrupted(tmp_path: Path) -> None:
    indelible.open(tmp_path / "p.pmo", 16 << 20).create("a", 4096)
    command = [sys.executable, "-m", "indelible", "attach-check", str(tmp_path / "p.pmo"), "a", "--hold"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None and held.stdout.readline().startswith(b"attached")
        held.send_signal(signal.SIGINT)
        assert held.wait(60) == -signal.SIGINT


def test_a_pool_that_the_tool_formatted_anew_is_gone_for_its_handle(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    idle = indelible.open(path, 16 << 20)
    idle.create("a", 4096)
    old = idle.id
    done = tool("format", path, "--size", "16M", "--force")
    assert (done.returncode, done.stderr) == (0, "")
    calls: list[Callable[[], object]] = [
        lambda: idle.create("b", 4096),
        lambda: idle.attach("a"),
        lambda: idle.array("w", 10),
        lambda: idle.dict("run"),
        lambda: idle.stat("a"),
    ]
    for call in calls:
        with pytest.raises(indelible.Gone, match="formatted anew while in use.*open the pool again"):
            call()
    again = indelible.open(path)
    assert again.id != old and "a" not in again
    array = again.array("w", 10)
    array[:] = 2
    array.psync()
    with pytest.raises(indelible.Gone):
        idle.array("w", 10)
    assert (again.array("w") == 2).all()
