"""examples/python/simulation.py, killed in the middle, ends with the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "examples" / "python" / "simulation.py"
SIZE = ("--bodies", "20", "--steps", "400", "--save-every", "7", "--digest")
SEED = int(os.environ.get("INDELIBLE_SEED", "3"))


def start(pool: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(PROGRAM), str(pool), *SIZE, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(pool: Path) -> tuple[str, str]:
    """The first line, and the last: the digest."""
    out, err = start(pool).communicate(timeout=300)
    assert err == ""
    lines = out.splitlines()
    return lines[0], lines[-1]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> str:
    return finish(tmp_path_factory.mktemp("whole") / "p.pmo")[1]


def test_it_goes_on_from_the_last_psync(path: Path, uninterrupted: str) -> None:
    steps = [100, 61, 20, 6, 90]
    saved = 0
    for step in steps:
        died = start(path, "--kill-after", step)
        out, err = died.communicate(timeout=300)
        assert died.returncode == -signal.SIGKILL and err == ""
        assert out.splitlines() == [f"goes on at step {saved}" if saved else "begins"]
        # A multiple of 7 is saved.
        saved = (saved + step) // 7 * 7
    assert finish(path) == (f"goes on at step {saved}", uninterrupted)


def test_killed_at_any_moment_it_ends_with_the_same_bits(path: Path, uninterrupted: str) -> None:
    print(f"INDELIBLE_SEED={SEED}")
    random_ = random.Random(SEED)
    kills = 0
    for _ in range(8):
        running = start(path)
        assert running.stdout is not None
        running.stdout.readline()
        for _ in range(random_.randrange(2_000_000)):
            pass
        running.kill()
        running.communicate()
        kills += running.returncode == -signal.SIGKILL
    assert kills > 0
    assert finish(path)[1] == uninterrupted
