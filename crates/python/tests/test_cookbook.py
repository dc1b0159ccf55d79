"""The pages that people read, run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import indelible
import pytest
from conftest import python

PROJECT = Path(__file__).parents[3]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("docs/cookbook/python.md", 4),
        ("docs/cookbook/python-training.md", 3),
        ("docs/cookbook/python-simulation.md", 7),
        ("docs/cookbook/python-jobs.md", 8),
        ("docs/cookbook/python-cache.md", 4),
        ("docs/cookbook/python-notebook.md", 3),
        ("docs/cookbook/far.md", 1),
        ("docs/cookbook/sealed.md", 2),
        ("README.md", 1),
        ("crates/python/README.md", 1),
    ],
)
def test_every_block_of_a_page_runs(tmp_path: Path, page: str, least: int) -> None:
    found = blocks(PROJECT / page, "python")
    assert len(found) >= least
    # A line of its own for each, so that an error names the block.
    program = "\n".join(f"# block {number}\n{block}" for number, block in enumerate(found))
    done = subprocess.run(python(program), cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    again = subprocess.run(python(found[0]), cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr


def test_what_is_installed_is_typed_and_for_every_version() -> None:
    folder = Path(indelible.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_indelible.pyi").exists()
    assert [file.name for file in folder.glob("*.so")] == ["_indelible.abi3.so"]


WRONG = """from collections.abc import Mapping
import indelible
import numpy
pool = indelible.open("p.pmo", 1 << 20, tracking="wp_async")  # wrong
pool.array("w", 10, mode="rw")  # wrong
pool.dict("run", "a")  # wrong
pool.attach("raw", "w+")  # wrong
pool.attach("raw", "r")
state = pool.stat("raw").state
if state == "X":  # wrong
    pass
if pool.medium == "tape":  # wrong
    pass
pool.info()["size"]  # wrong
pool.array("w", 2.5)  # wrong
pool.array("w", (3, "4"))  # wrong
pool.array("w", 3, 4.5)  # wrong
pool.array("w", (numpy.int64(3), 4), numpy.float32, "c", offset=8)
pool.transactional("t", "ten")  # wrong
indelible.psync(pool.dict("d"), 3)  # wrong
pool.psync_async("w")  # wrong
indelible.audit("w")  # wrong
pool.array("w").copy("Z")  # wrong
pool.dict("d").update(3)  # wrong
pool.dict("d").update({"a": 1}, b=2)
pool.dict("d") | [("a", 1)]  # wrong
total: str = pool.transactional("t").transaction(lambda tx: 3)  # wrong
names: Mapping[str, object] = pool
pool.copy_to("w", pool, "c", progress="yes")  # wrong
pool.collect(progress=1.5)  # wrong
size: int = pool.info()["length"]
"""


def test_wrong_words_are_found_by_a_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    command = [*python("")[:1], "-m", "mypy", "--strict", "--cache-dir=/dev/null", "--no-error-summary", program.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [number for number, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line], done.stdout
