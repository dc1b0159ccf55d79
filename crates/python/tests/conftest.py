"""Pools for the tests: on disk and in memory, with each way of noticing stores."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import indelible
import pytest
from hypothesis import settings

# The same programs in every run; a failure prints how to repeat it.
settings.register_profile("indelible", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("indelible")

# A shell that runs the tests in the background has them ignore Ctrl-C, and the programs that they start would as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MIB = 1 << 20
Open = Callable[..., indelible.Pool]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs coroutine tests, as zarr has for every store."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def not_tested(what: str) -> None:
    """Says on the terminal that a test could not do its work here, past pytest, which keeps output."""
    os.write(2, f"\nNOT TESTED: {what}\n".encode())


def offers(tracking: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            indelible.open(Path(folder) / "p.pmo", 4 * MIB, tracking=tracking)
        except indelible.Error as error:
            assert error.kind == "Unsupported"
            return False
    return True


@pytest.fixture(params=["disk", "memory"], scope="session")
def ground(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder on a disk, or in memory."""
    parent = None if request.param == "disk" else "/dev/shm"
    if parent is not None and not os.access(parent, os.W_OK):
        not_tested("pools in memory: /dev/shm cannot be written")
        pytest.skip("no /dev/shm")
    # Under /tmp, memory may be: /var/tmp is a disk where there is one.
    with tempfile.TemporaryDirectory(dir=parent or "/var/tmp", prefix="indelible-python-") as folder:
        yield Path(folder)


@pytest.fixture(params=["wp-async", "mprotect"], scope="session")
def tracking(request: pytest.FixtureRequest) -> str:
    if not offers(request.param):
        not_tested(f"tracking by {request.param}, which this kernel does not offer")
        pytest.skip("not offered")
    return str(request.param)


@pytest.fixture
def path(ground: Path) -> Iterator[Path]:
    """Path for a pool."""
    with tempfile.TemporaryDirectory(dir=ground) as folder:
        yield Path(folder) / "pool.pmo"


@pytest.fixture
def open_pool(path: Path, tracking: str) -> Open:
    """Opens the test's pool, on every ground and with every way of noticing stores."""

    def opened(size: int | None = 64 * MIB, **options: object) -> indelible.Pool:
        return indelible.open(path, size, tracking=tracking, **options)

    return opened


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[indelible.Pool]:
    """A pool, where it does not matter of which kind: in memory where that can be had, as that is quick."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory, prefix="indelible-python-") as folder:
        yield indelible.open(Path(folder) / "pool.pmo", 64 * MIB)


def interrupted_at(modules: list[str], at: int, call: Callable[[], object]) -> bool:
    """Runs the call with a KeyboardInterrupt at the line of these modules that is executed as number `at`; whether there is one."""
    files = {sys.modules[f"indelible.{name}"].__file__ for name in modules}
    seen = 0

    def interrupt(frame: FrameType, event: str, _of: object) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen += 1
            if seen == at + 1:
                raise KeyboardInterrupt
        return interrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return seen > at


def python(code: str, *arguments: object) -> list[str]:
    """The command that runs `code`: warnings are errors there, too."""
    return [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-X", "faulthandler", "-c", code, *map(str, arguments)]
