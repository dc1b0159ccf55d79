"""The commands `pmo` and `mkpmo` of the package."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from . import _indelible


def _run(name: str, tool: Callable[[list[str]], int]) -> NoReturn:
    # Python would note the signal, and the tool go on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(tool([name, *sys.argv[1:]]))


def pmo() -> NoReturn:
    """Runs `pmo`: pools on the command line."""
    _run("pmo", _indelible.pmo)


def mkpmo() -> NoReturn:
    """Runs `mkpmo`: `pmo format` under a name like mkfs."""
    _run("mkpmo", _indelible.mkpmo)
