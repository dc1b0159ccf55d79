"""The programs of examples/python: killed again and again, they go on, and end as one that was
never killed. The pages of the cookbook print passages of them.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import indelible
import pytest
from conftest import not_tested
from test_shared import said

PROJECT = Path(__file__).parents[3]
PROGRAMS = PROJECT / "examples" / "python"
SEED = int(os.environ.get("INDELIBLE_SEED", "5"))

# The cells of a notebook, in the shell that runs them there.
CELLS = """
import sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "indelible")
for _ in range(int(sys.argv[2])):
    for cell in Path(sys.argv[1]).read_text().split("# %%"):
        if not cell.startswith(" [markdown]"):
            shell.run_cell(cell, store_history=True).raise_error()
"""


def command(name: str, *arguments: object) -> list[str]:
    strict = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning"]
    program = ["-c", CELLS, PROGRAMS / name] if name == "notebook.py" else [PROGRAMS / name]
    return [*strict, *map(str, [*program, *arguments])]


def start(folder: Path, name: str, *arguments: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command(name, *arguments), cwd=folder, stdin=pipe, stdout=pipe, text=True, bufsize=1
    )


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def finish(folder: Path, name: str, *arguments: object) -> list[str]:
    process = start(folder, name, *arguments)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return out.splitlines()


# Each with the lines that it prints, between two of which it is killed.
RUNS: dict[str, tuple[object, ...]] = {
    "training.py": ("run.pmo", "--epochs", 60),
    "simulation.py": ("galaxy.pmo", "--bodies", 20, "--steps", 400, "--save-every", 7),
    "cache.py": ("tiles.pmo", "--zoom", 3),
    "notebook.py": (1,),
}


@pytest.mark.parametrize("name", RUNS)
def test_killed_at_any_moment_a_program_goes_on(
    name: str, ground: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name == "notebook.py":
        for library in ("IPython", "pandas", "pyarrow"):
            try:
                __import__(library)
            except ImportError:
                not_tested(f"the notebook of the cookbook: {library} is not installed")
                pytest.skip(f"no {library}")
    print(f"INDELIBLE_SEED={SEED}")
    random_, folder = random.Random(SEED), ground / name
    folder.mkdir()
    whole = finish(tmp_path_factory.mktemp("whole"), name, *RUNS[name])
    kills = 0
    for _ in range(6):
        running = start(folder, name, *RUNS[name])
        for _ in range(random_.randrange(1, 5)):
            said(running)
        for _ in range(random_.randrange(1_000_000)):
            pass
        running.kill()
        running.communicate()
        assert running.returncode in (0, -signal.SIGKILL)
        kills += running.returncode != 0
    assert kills > 0
    ended = finish(folder, name, *RUNS[name])
    if name == "cache.py":
        # The last line has the number of hits: each row was drawn from whole tiles.
        assert ended[:-1] == whole[:-1]
        assert finish(folder, name, *RUNS[name])[-1] == "64 tiles of the cache, 0 computed"
    else:
        # But for the pool's path, which IPython shows.
        last = [[line for line in lines if "Out[" not in line][-1] for lines in (ended, whole)]
        assert last[0] == last[1]


def test_a_simulation_goes_on_from_its_last_psync(path: Path) -> None:
    size = ("--bodies", 20, "--steps", 400, "--save-every", 7)
    saved = 0
    for step in (100, 61, 20, 6, 90):
        died = start(path.parent, "simulation.py", path, *size, "--kill-after", step)
        out, _ = died.communicate(timeout=300)
        assert died.returncode == -signal.SIGKILL
        assert out.splitlines() == [f"goes on at step {saved}" if saved else "begins"]
        # A multiple of 7 is saved.
        saved = (saved + step) // 7 * 7
    assert finish(path.parent, "simulation.py", path, *size)[0] == f"goes on at step {saved}"


def test_a_training_shows_its_checkpoints_beside_itself(tmp_path: Path) -> None:
    # More epochs than the pipe has room for: it is not done when it is killed.
    running = start(tmp_path, "training.py", "run.pmo", "--epochs", 1_000_000)
    assert said(running) == "begins" and said(running).startswith("epoch 1:")
    (line,) = finish(tmp_path, "training.py", "run.pmo", "--show")
    assert "best: epoch" in line and line.endswith("steps")
    kill(running)
    assert finish(tmp_path, "training.py", "run.pmo")[0].startswith("goes on after epoch")


def test_a_cache_keeps_its_size(tmp_path: Path) -> None:
    assert finish(tmp_path, "cache.py", "tiles.pmo", "--most", 20)[-1] == "0 tiles of the cache, 64 computed"
    with indelible.open(tmp_path / "tiles.pmo") as pool:
        assert len(pool.dict("tile values", "r")) == len(pool.dict("tile used", "r")) == 20


def test_cells_run_again_in_one_kernel(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert finish(tmp_path, "notebook.py", 2).count("30 days, 30 checked") == 2


@contextmanager
def serving(folder: Path) -> Iterator[subprocess.Popen[str]]:
    server = start(folder, "jobs.py", "jobs.pmo", "serve", "--workers", 1)
    assert said(server) == "serving"
    yield server
    kill(server)


def workers(server: subprocess.Popen[str]) -> list[int]:
    """Processes whose parent is the server, but for the one that has no program of its own."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            line = folder.joinpath("cmdline").read_text()
        except OSError:
            continue
        if int(parent) == server.pid and "spawn_main" in line:
            found.append(int(folder.name))
    return found


def results(folder: Path) -> list[str]:
    return finish(folder, "jobs.py", "jobs.pmo", "results")


def test_jobs_are_done_though_servers_and_submitters_and_workers_are_killed(tmp_path: Path) -> None:
    numbers = range(1_000_000_007, 1_000_000_019)
    with serving(tmp_path):
        submitter = start(tmp_path, "jobs.py", "jobs.pmo", "submit")
        assert submitter.stdin is not None
        for number in numbers[:5]:
            submitter.stdin.write(f"{number}\n")
            # It says the job once that is durable.
            assert said(submitter) == str(number)
        kill(submitter)
    assert [line.split(" = ")[0] for line in results(tmp_path)] == [str(number) for number in numbers[:5]]
    with serving(tmp_path) as server:
        while not workers(server):
            os.sched_yield()
        for worker in workers(server):
            os.kill(worker, signal.SIGKILL)
        submitter = start(tmp_path, "jobs.py", "jobs.pmo", "submit")
        submitter.communicate("".join(f"{number}\n" for number in numbers[5:]) + "no number\n")
        assert said(server) == "a worker died"
        while any("..." in line for line in results(tmp_path)):
            os.sched_yield()
    lines = results(tmp_path)
    assert lines.pop().startswith("no number = failed: invalid literal")
    assert len(lines) == len(numbers)
    for number, line in zip(numbers, lines, strict=True):
        job, *rest = line.split(" = ")
        product = 1
        for factor in rest[0].split(" * "):
            product *= int(factor)
        assert int(job) == product == number


def test_the_server_ends_by_a_signal(tmp_path: Path) -> None:
    server = start(tmp_path, "jobs.py", "jobs.pmo", "serve")
    assert said(server) == "serving"
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=60)
    assert server.returncode == 130


@pytest.mark.parametrize("name", ["training", "simulation", "jobs", "cache", "notebook"])
def test_its_page_prints_passages_of_a_program_as_they_are(name: str) -> None:
    page = (PROJECT / "docs" / "cookbook" / f"python-{name}.md").read_text()
    program = (PROGRAMS / name).with_suffix(".py").read_text()
    passages = re.findall(r"^```py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert passages
    assert [passage for passage in passages if passage not in program] == []
