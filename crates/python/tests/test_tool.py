"""The command `pmo` that the wheel has."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import indelible


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


def test_the_tool_is_interrupted(tmp_path: Path) -> None:
    indelible.open(tmp_path / "p.pmo", 16 << 20).create("a", 4096)
    command = [sys.executable, "-m", "indelible", "attach-check", str(tmp_path / "p.pmo"), "a", "--hold"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None and held.stdout.readline().startswith(b"attached")
        held.send_signal(signal.SIGINT)
        assert held.wait(60) == -signal.SIGINT
