"""The end of the interpreter: changes that it loses are named, a pool that asks for it is psynced;
modules of the package, what a notebook's extension shows, builds that are refused.
"""

from __future__ import annotations

import os
import pydoc
import re
import subprocess
import sys
from typing import Any

import indelible
import pytest
from indelible import _extension

OPEN = "import os, sys, indelible\npool = indelible.open(sys.argv[1]{0})\n"


def run(pool: indelible.Pool, code: str, options: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", OPEN.format(options) + code, os.fspath(pool.path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_changes_that_the_end_of_a_program_loses_are_named(pool: indelible.Pool) -> None:
    pool.dict("run").psync()
    pool.array("w", 3).psync()
    done = run(pool, "run, w = pool.dict('run'), pool.array('w')\nrun['a'] = 1\nw[0] = 1\nx = pool.array('x', 2)\n")
    assert done.returncode == 0
    for name in ("run", "w"):
        assert done.stderr.count(f'UnsyncedWarning: object "{name}" is detached with changes') == 1, done.stderr
    assert '"x"' not in done.stderr and "<string>:3:" in done.stderr
    assert dict(pool.dict("run")) == {} and pool.array("w")[0] == 0
    # At the latest moment that a program has, nothing is lost yet.
    done = run(pool, "import atexit\nrun = pool.dict('run')\nrun['a'] = 1\natexit.register(run.psync)\n")
    assert (done.returncode, done.stderr, pool.dict("run")["a"]) == (0, "", 1)


def test_a_pool_is_psynced_at_exit_if_it_asks_for_it(pool: indelible.Pool) -> None:
    auto = ", autosync='exit'"
    code = """
run = pool.dict("run")
run["step"] = 7
def fill():
    pool.array("w", 3)[:] = 5
fill()
pool.log("log").append(b"x")
"""
    done = run(pool, code, auto)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert pool.dict("run")["step"] == 7 and pool.array("w").sum() == 15 and len(pool.log("log", "r")) == 1
    assert run(pool, code.replace("7", "8") + "sys.exit(3)", auto).returncode == 3
    assert pool.dict("run")["step"] == 8
    # An exception may have left half of something.
    done = run(pool, code.replace("7", "9") + "raise ValueError('half')", auto)
    assert done.returncode == 1 and 'object "run"' in done.stderr and pool.dict("run")["step"] == 8
    # A child that ends leaves the parent's changes alone.
    done = run(pool, "run = pool.dict('run')\nrun['step'] = 10\nif (child := os.fork()) == 0:\n    sys.exit()\nos.waitpid(child, 0)\n", auto)
    assert (done.returncode, done.stderr) == (0, "") and pool.dict("run")["step"] == 10
    with pytest.raises(ValueError, match="autosync"):
        indelible.open(pool.path, autosync="always")  # type: ignore[arg-type]


def test_names_are_in_modules_as_well() -> None:
    for module in (indelible.tx, indelible.ipc, indelible.views):
        assert all(getattr(module, name) is getattr(indelible, name) for name in module.__all__)


def test_help_of_an_array_has_its_own_methods_before_those_of_numpy() -> None:
    own = {name for name in vars(indelible.Array) if not name.startswith("_")}
    about = indelible.Array.__doc__ or ""
    assert own == {name for name in re.findall(r"`(\w+)`", about.split("Beside numpy's")[1].split(".")[0])}
    text = pydoc.plain(pydoc.render_doc(indelible.Array))
    inherited = text.index("inherited from numpy.ndarray")
    assert all(text.index(f" {name}") < inherited for name in own)


def test_the_extension_shows_what_a_cell_left_unsynced(pool: indelible.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    class Shell:
        """The events of IPython."""

        def __init__(self) -> None:
            self.called: list[Any] = []
            self.events = self

        def register(self, event: str, call: Any) -> None:
            assert event == "post_run_cell"
            self.called.append(call)

        def unregister(self, _event: str, call: Any) -> None:
            self.called.remove(call)

    shell = Shell()
    indelible.load_ipython_extension(shell)
    run = pool.dict("run")
    for change in (lambda: None, lambda: run.update(a=1), lambda: None, run.psync, lambda: run.update(a=2)):
        change()
        shell.called[0](None)
    assert capsys.readouterr().out == "not psynced yet: run\n" * 2
    run.psync()
    _extension.after_cell()
    indelible.unload_ipython_extension(shell)
    assert shell.called == []


def test_a_free_threaded_build_is_refused_with_the_reason() -> None:
    code = "import sysconfig\nreal = sysconfig.get_config_var\nsysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else real(name)\nimport indelible"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "ImportError: indelible does not run in free-threaded builds" in done.stderr
