"""Errors: their classes, by the names that programs use, and advice in the words of Python."""

from __future__ import annotations

import inspect
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import indelible
import pytest
from conftest import MIB, Open, python
from indelible import _errors


def test_all_classes_are_there_under_the_name_of_the_package() -> None:
    kinds = [kind for kind in vars(_errors).values() if inspect.isclass(kind) and issubclass(kind, indelible.Error)]
    assert len(kinds) > 30
    for kind in kinds:
        assert getattr(indelible, kind.__name__) is kind and kind.__name__ in indelible.__all__
        again = pickle.loads(pickle.dumps(kind("text", operation="attach", object="w")))
        assert type(again) is kind and str(again) == "text" and again.object == "w"
    for name in indelible.__all__:
        found = getattr(indelible, name)
        assert not inspect.isclass(found) or found.__module__ == "indelible", name
    run = subprocess.run(python("import indelible; indelible.open('/none/p')"), capture_output=True, text=True, timeout=120)
    assert run.stderr.splitlines()[-1].startswith("indelible.NoPool: cannot open /none/p: No such file")


def test_advice_is_in_the_words_of_python(open_pool: Open, path: Path) -> None:
    said = {}

    def says(kind: str, what: str, call: object) -> None:
        with pytest.raises(indelible.Error, match=what) as caught:
            call()  # type: ignore[operator]
        assert caught.value.kind == kind
        said[kind] = str(caught.value)

    says("NoPool", r"\(give `indelible.open` a size, and it makes one\)$", lambda: indelible.open(path))
    says("BadSize", "between 1 MiB and 32 TiB", lambda: indelible.open(path, 100))
    pool = open_pool(16 * MIB)
    says("NotFound", r"`Pool.list` lists", lambda: pool.stat("none"))
    says("NoRoom", r"remove objects, or make the pool longer \(`Pool.grow`\)", lambda: pool.create("large", 1 << 40))
    w = pool.array("w", 10)
    says("Held", r"close it here first: `close\(\)` of a dict or object, `del` of all arrays of it", lambda: pool.remove("w"))
    pool.snapshot("w", "w@1")
    says("ObjectReadOnly", 'use mode "r"', lambda: pool.attach("w@1"))
    held = "import sys, indelible; w = indelible.open(sys.argv[1]).array('v', 3); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(python(held, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        says("Held", r"`Pool.stat` says who it is", lambda: pool.array("v"))
        assert str(holder.pid) in said["Held"]
        holder.communicate()
    assert not [text for text in said.values() if "pmo " in text or "::" in text], said
    del w


def test_advice_on_views_rights_and_pointers_is_in_the_words_of_python(pool: indelible.Pool) -> None:
    pool.create("plain", MIB)
    pool.create("home", MIB, position_independent=True)
    said = []

    def says(what: str, call: Callable[[], object]) -> None:
        with pytest.raises(indelible.Error, match=what) as caught:
            call()
        said.append(str(caught.value))

    says("`Pool.view` makes views", lambda: pool.view_slots("plain"))
    says("`Pool.context` makes them", lambda: pool.context_rules("plain"))
    with indelible.Space() as space:
        says("`Space.attach`", lambda: space.psync("id:" + "0" * 32))
        home = space.attach(pool, "home")
        says("compare it with 0 first", lambda: space.follow(home, 0))
        place = space.create(home, b"hello")
        says(r"that has it \(`Space.add`\)", lambda: space.follow(home, space.far_by_name(home, "none", place)))
        says("`position_independent`", lambda: space.create(space.attach(pool, "plain"), b"hello"))
    assert not [text for text in said if "pmo " in text or "::" in text], said


def test_an_array_is_no_dict_and_a_dict_no_array(pool: indelible.Pool) -> None:
    w, run = pool.array("w", 10), pool.dict("run")
    with pytest.raises(indelible.NotAHeap, match=r"object 'w', which this process has open, holds no dict \(use Pool.array"):
        pool.dict("w")
    with pytest.raises(indelible.Exists, match=r"holds a dict, not an array \(use Pool.dict\)"):
        pool.array("run", 10)
    assert w.sum() == 0 and len(run) == 0


def test_sizes_that_cannot_be_are_wrong_values(tmp_path: Path) -> None:
    for size, error in [(-1, ValueError), (0, ValueError), (1.5e6, TypeError), ("1M", TypeError)]:
        with pytest.raises(error):
            indelible.open(tmp_path / "p.pmo", size)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
