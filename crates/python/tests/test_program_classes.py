"""Values of classes of the program in dicts and checkpoints: sets, enums, named tuples, dataclasses come
back as they were, or are refused when they are set.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import os
import pickle
import subprocess
import sys
from collections import namedtuple
from typing import Any, NamedTuple

import indelible
import numpy as np
import pytest
from indelible import _classes, _tree


class Color(enum.IntEnum):
    RED = 1
    ROUGE = 1


class Kind(enum.StrEnum):
    A = "a"


class Plain(enum.Enum):
    PAIR = (1, 2)


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


Point = namedtuple("Point", "x y")


class Named(NamedTuple):
    name: str
    at: Any = None


@dataclasses.dataclass
class Config:
    rate: float = 0.1
    sizes: list[int] = dataclasses.field(default_factory=list)

    def twice(self) -> float:
        return 2 * self.rate


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    a: int
    b: tuple[int, ...] = ()


@dataclasses.dataclass(slots=True)
class Slotted:
    a: Any


VALUES: list[Any] = [
    {1, "a", (2, 3)}, frozenset({1, frozenset({2})}), set(), Color.RED, Color.ROUGE, Kind.A, Plain.PAIR, Access.READ,
    Access.READ | Access.WRITE, Access(0), Point(1, [2]), Named("n", Point(1, None)), Config(0.5, [1, 2]), Fixed(1, (2,)),
    Slotted({"in": Kind.A}), [Config(), {"k": {Kind.A: Color.RED}}],
]  # fmt: skip


def expect_same(found: Any, value: Any) -> None:
    assert found == value and value == found
    if dataclasses.is_dataclass(value):
        assert repr(found) == repr(value)
    if isinstance(value, enum.Enum | frozenset) or type(value) in (Point, Named, Fixed):
        assert type(found) is type(value)
    if isinstance(value, enum.Enum):
        assert found is value
    assert isinstance(found, type(value))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_of_a_class_comes_back(pool: indelible.Pool, value: Any) -> None:
    with pool.dict("run") as run:
        run["v"] = value
        expect_same(run["v"], value)
    expect_same(pool.dict("run", "r")["v"], value)
    for again in (copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))):
        mine = again(pool.dict("run", "r")["v"])
        assert type(mine) is (list if type(value) is list else type(value)) or again is copy.copy
        assert mine == value
    saved = pool.checkpoints("saved")
    saved.save("one", {"v": value})
    found = saved.load()["v"]
    assert type(found) is type(value) and found == value


def test_a_copy_of_a_dataclass_or_set_refuses_changes(pool: indelible.Pool) -> None:
    run = pool.dict("run")
    run.update(config=Config(0.5, [1]), slotted=Slotted(1), names={"a"}, fixed=Fixed(1))
    config, slotted, names = run["config"], run["slotted"], run["names"]
    changes: list[Any] = [
        lambda: setattr(config, "rate", 1), lambda: delattr(config, "rate"), lambda: setattr(config, "new", 1),
        lambda: config.sizes.append(2), lambda: setattr(slotted, "a", 2), lambda: names.add("b"), names.clear,
        lambda: names.__ior__({"b"}),
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(TypeError, match="would not be stored"):
            change()
    assert config.twice() == 1 and dataclasses.asdict(config) == {"rate": 0.5, "sizes": [1]}
    changed = dataclasses.replace(config, rate=1.0)
    assert type(changed) is Config
    changed.rate = 2.0
    run["config"] = changed
    assert run["config"].rate == 2.0
    # A copy is a value again.
    run["again"], run["more"] = run["config"], {*run["names"], "b"}
    assert run["again"] == run["config"] and run["more"] == {"a", "b"}


@dataclasses.dataclass
class Counted:
    """Each subclass is counted: a copy that refuses changes would be one."""

    a: int = 0

    def __init_subclass__(cls) -> None:
        raise AssertionError


class OwnSet(set[int]):
    pass


def test_what_would_come_back_as_something_else_is_refused(pool: indelible.Pool) -> None:
    @dataclasses.dataclass
    class Local:
        a: int = 1

    more = Config()
    more.beside = 2  # type: ignore[attr-defined]
    run = pool.dict("run")
    run["v"] = 1
    for value, why in [(Local(), "define it at the top"), (more, "beside"), (Counted(), "frozen=True"), (OwnSet({1}), "subclass")]:
        for each in (value, [value], {"a": (value,)}):
            with pytest.raises(TypeError, match=why):
                run["v"] = each
    with pytest.raises(TypeError, match="cannot be kept"):
        run["v"] = {object()}
    assert run["v"] == 1


def test_a_program_with_another_class_is_told(pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pool.dict("run") as run:
        run.update(point=Point(1, 2), kind=Kind.A, config=Config(), flags=Access.READ | Access.WRITE, n=1)
    run = pool.dict("run", "r")
    module = sys.modules[__name__]
    for name, other, keys in [
        ("Point", namedtuple("Point", "x z"), ["point"]),
        ("Kind", enum.StrEnum("Kind", {"B": "b"}), ["kind"]),
        ("Config", dataclasses.make_dataclass("Config", ["rate"]), ["config"]),
        ("Access", enum.Enum("Access", {"X": 9}), ["flags"]),
        ("Point", Config, ["point"]),
        ("Config", 3, ["config"]),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, other)
            for key in keys:
                with pytest.raises(indelible.Mismatch, match="this program"):
                    run[key]
    code = "import sys, indelible; run = indelible.open(sys.argv[1]).dict('run', 'r'); assert run['n'] == 1; run['point']"
    done = subprocess.run([sys.executable, "-c", code, os.fspath(pool.path)], capture_output=True, text=True)
    assert done.returncode == 1 and f"import {__name__} before" in done.stderr
    assert run["point"] == Point(1, 2)


def test_bytes_that_name_a_class_import_and_run_nothing() -> None:
    def encoded(*parts: Any) -> bytes:
        return b"".join(_tree.encode(part) for part in parts)

    for data in (
        b"n" + encoded("os", "system", ("a",), "true"), b"C" + encoded("subprocess", "Popen", ("args",), "true"),
        b"x" + encoded("builtins", "eval", "1"), b"n" + encoded("antigravity", "x", ()), b"C" + encoded("enum", "Enum", ()),
        b"x" + encoded(__name__, "Config", 1), b"n" + encoded(__name__, "Config.rate", ()),
    ):  # fmt: skip
        with pytest.raises(indelible.Mismatch):
            _tree.decode(data, "it")
    for data in (b"h" + (2).to_bytes(8, "little") + b"N", b"h" + (1).to_bytes(8, "little") + _tree.encode([1]), b"n" + encoded(1), b"x"):
        with pytest.raises(indelible.Damaged):
            _tree.decode(data, "it")
    assert "antigravity" not in sys.modules and _classes.parts(np.ones(2)) is None
