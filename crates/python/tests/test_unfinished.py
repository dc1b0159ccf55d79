"""Objects that are made under another name: makers that die leave nothing for long, and objects of
users and of makers that live stay.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import indelible
import pytest
from conftest import interrupted_at, python

MAKES: dict[str, Callable[[indelible.Pool], object]] = {
    "transactional": lambda pool: pool.transactional("t", (10,), "f8"),
    "array": lambda pool: pool.array("t", (10,), "f8", "w+"),
    "dict": lambda pool: pool.dict("t", mode="w+"),
}

# Does something at the n-th call of a step that makes an object.
MAKER = """
import os, signal, sys, indelible
from indelible import _transactional
path, how, at, what = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
calls = 0
def stepped(step):
    def before(*given, **options):
        global calls
        calls += 1
        if calls == at:
            if what == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            print("here", flush=True)
            sys.stdin.readline()
        return step(*given, **options)
    return before
pool = indelible.open(path)
for name in ("rename", "remove"):
    setattr(indelible.Pool, name, stepped(getattr(indelible.Pool, name)))
_transactional.write_header = stepped(_transactional.write_header)
{
    "transactional": lambda: pool.transactional("t", (10,), "f8"),
    "array": lambda: pool.array("t", (10,), "f8", "w+"),
    "dict": lambda: pool.dict("t", mode="w+"),
}[how]()
print("made", flush=True)
"""


def left(pool: indelible.Pool) -> list[str]:
    return [name for name in pool if name.startswith("t~new")]


def first(pool: indelible.Pool, how: str) -> None:
    """Makes the object, if it is one that is replaced."""
    if how != "transactional":
        MAKES[how](pool)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("how", MAKES)
def test_what_a_dead_maker_left_goes_with_the_next_use_of_the_name(
    pool: indelible.Pool, how: str, at: int
) -> None:
    first(pool, how)
    died = subprocess.run(python(MAKER, pool.path, how, at, "die"), capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert len(left(pool)) == 1
    if how == "array":
        pool.array("t", (10,), "f8")
    else:
        MAKES[how](pool)
    assert left(pool) == [] and "t" in pool


@pytest.mark.parametrize("at", [1, 2])
def test_what_a_living_maker_makes_stays(pool: indelible.Pool, at: int) -> None:
    with subprocess.Popen(
        python(MAKER, pool.path, "transactional", at, "wait"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as maker:
        assert maker.stdin is not None and maker.stdout is not None and maker.stderr is not None
        assert maker.stdout.readline() == "here\n"
        others = left(pool)
        assert len(others) == 1
        pool.transactional("t", (20,), "f8")
        assert left(pool) == others
        maker.stdin.write("\n")
        maker.stdin.close()
        assert "Exists" in maker.stderr.read()
    assert left(pool) == [] and pool.transactional("t").shape == (20,)


def test_objects_with_names_like_those_stay(pool: indelible.Pool) -> None:
    made = ["t~new", "t~new1", "t~new 0", "t~new 0 0123456789abcdef", "t~new 1"]
    for name in made:
        array = pool.array(name, (10,), "f8")
        array[:] = 7
        array.psync()
        del array
    for how, make in MAKES.items():
        first(pool, how)
        del_of = make(pool)
        del del_of
        pool.remove("t")
    assert sorted(left(pool)) == sorted(made)
    assert all((pool.array(name, mode="r") == 7).all() for name in made)


def test_long_names_are_made_too(pool: indelible.Pool) -> None:
    name = "ü" * 255
    pool.transactional(name, (10,), "f8").close()
    assert list(pool) == [name]


@pytest.mark.parametrize("how", MAKES)
def test_where_files_have_no_locks_objects_are_made(
    pool: indelible.Pool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: Any, _how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    first(pool, how)
    monkeypatch.setattr(sys.modules["indelible._unfinished"].fcntl, "flock", refuse)
    MAKES[how](pool)
    assert left(pool) == []


def test_an_interrupted_maker_holds_no_lock(pool: indelible.Pool) -> None:
    pool.array("t", (10,), "f8")
    for at in itertools.count():
        reached = interrupted_at(["_unfinished"], at, lambda: pool.array("t", (10,), "f8", "w+"))
        with open(pool.path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pool.array("t", (10,), "f8", "w+")
        assert left(pool) == [], f"line {at}"
        if not reached:
            assert at > 10
            break
