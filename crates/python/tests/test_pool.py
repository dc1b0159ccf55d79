"""Pools and objects as a whole."""

from __future__ import annotations

import errno
import gc
import pickle
import re
import shutil
import signal
import subprocess
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, python


def test_a_pool_is_made_once_and_opened_then(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    with pytest.raises(indelible.NoPool) as caught:
        indelible.open(path)
    assert isinstance(caught.value, FileNotFoundError) and caught.value.kind == "NoPool"
    assert str(path) in str(caught.value)
    with indelible.open(path, 4 * MIB) as pool:
        pool.create("a", 5000)
        assert pool.info()["length"] == 4 * MIB and pool.info()["objects"] == 1
    with indelible.open(path) as pool:
        assert [stat.name for stat in pool.list()] == ["a"]
        assert "a" in pool and "b" not in pool
        assert pool.stat("a").size == 5000 and pool.stat("a").state == "D"
    assert pool.closed
    with pytest.raises(indelible.Closed):
        pool.list()


def test_objects_are_listed_renamed_removed(open_pool: Open) -> None:
    pool = open_pool()
    for name in ("one", "two", "three"):
        pool.create(name, 4096)
    assert [stat.name for stat in pool.list()] == ["one", "three", "two"]
    pool.rename("two", "zwei")
    pool.remove("one")
    assert [stat.name for stat in pool.list()] == ["three", "zwei"]
    with pytest.raises(indelible.Exists) as exists:
        pool.create("zwei", 1)
    assert isinstance(exists.value, ValueError)
    with pytest.raises(indelible.NotFound) as missing:
        pool.stat("two")
    assert isinstance(missing.value, KeyError)
    assert missing.value.object == "two" and missing.value.operation == "inspect"
    assert str(missing.value).startswith('cannot inspect object "two" of pool')


def test_bytes_are_as_the_last_psync_left_them(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("bytes", 10_000)
    obj = pool.attach("bytes")
    assert len(obj) == 10_000 and not obj.readonly
    memory = memoryview(obj)
    memory[:5] = b"hello"
    obj.psync()
    memory[5:9] = b"lost"
    memory.release()
    obj.close()
    with pool.attach("bytes", "r") as obj:
        assert bytes(obj)[:10] == b"hello\0\0\0\0\0"
        with memoryview(obj) as memory, pytest.raises(TypeError):
            memory[0] = 1
        obj.psync()  # ignored


def test_several_objects_are_one_step(open_pool: Open) -> None:
    pool = open_pool()
    for name in "abc":
        pool.create(name, 4096)
    objects = [pool.attach(name) for name in "abc"]
    for obj in objects:
        memoryview(obj)[:1] = b"x"
    indelible.psync(*objects, objects[0], memoryview(objects[1])[10:])
    for obj in objects:
        obj.close()
    assert [bytes(pool.attach(name, "r"))[:1] for name in "abc"] == [b"x"] * 3


def test_objects_of_different_pools_are_refused(tmp_path: Path) -> None:
    arrays = [indelible.open(tmp_path / name, 8 * MIB).array("w", 10) for name in ("a", "b")]
    with pytest.raises(indelible.Error):
        indelible.psync(*arrays)


def test_prefaulting_brings_bytes_into_memory(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("object", 3 * 4096)
    with pool.attach("object") as obj:
        memoryview(obj)[5000] = 7
        assert (obj.prefault(), obj.prefault(100), obj.prefault(100, 9)) == (12288, 12188, 9)
        assert obj.prefault(12288) == 0
        assert memoryview(obj)[5000] == 7
    with pytest.raises(indelible.Error):
        obj.prefault()


def test_growth_keeps_views_and_address(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("grows", 4096, reach=16 * MIB)
    pool.create("in the way", 4096)
    obj = pool.attach("grows")
    old, address = memoryview(obj), obj.address
    old[4095] = 7
    obj.grow(1 * MIB)  # has to move
    new = memoryview(obj)
    assert obj.address == address and len(old) == 4096 and len(new) == MIB
    old[0] = 1
    assert new[0] == 1 and new[4095] == 7 and new[4096] == 0
    with pytest.raises(indelible.Error) as caught:
        obj.grow(1)
    assert caught.value.kind == "BadSize"
    with pytest.raises(indelible.NoRoom):  # of addresses
        obj.grow(1 << 40)
    assert new[4095] == 7  # as it was
    obj.psync()


def test_what_is_held_or_locked_is_refused(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("a", 4096, key=b"secret")
    with pytest.raises(indelible.WrongKey) as wrong:
        pool.attach("a")
    assert isinstance(wrong.value, PermissionError)
    with pool.attach("a", key=b"secret"), pytest.raises(indelible.Held) as held:
        pool.attach("a", "r", key=b"secret")
    assert isinstance(held.value, BlockingIOError) and "close it here first" in str(held.value)
    with pool.attach("a", "r", key=b"secret"), pool.attach("a", "r", key=b"secret"):
        pass


def test_a_pool_for_reading(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("w", 3)[:] = 5
    with open_pool(None, read_only=True) as reader:
        with pytest.raises(indelible.Error):
            reader.create("x", 4096)
        assert [stat.name for stat in reader.list()] == ["w"]


@pytest.mark.parametrize(
    "options",
    [{"tracking": "explicit"}, {"tracking": "nonsense"}, {"medium": "disk"}],
    ids=lambda options: str(options),
)
def test_words_that_are_none_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is one of"):
        indelible.open(tmp_path / "p.pmo", 4 * MIB, **options)


def test_a_file_that_is_no_pool(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"x" * 4096)
    with pytest.raises(indelible.Error) as caught:
        indelible.open(path, 4 * MIB)
    assert caught.value.kind == "NotAPool"
    assert path.read_bytes() == b"x" * 4096


def test_a_full_pool_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 4 * MIB)
    array = pool.array("w", 1000)
    array[:] = 3
    array.psync()
    with pytest.raises(indelible.NoRoom) as caught:
        pool.array("big", 1 << 20)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(indelible.NoRoom):
        array.grow(1 << 20)
    assert (array == 3).all()
    array.psync()
    values = pool.dict("run")
    values["a"] = 1
    with pytest.raises(indelible.NoRoom):
        values["b"] = bytes(8 * MIB)
    assert dict(values) == {"a": 1}
    values["c"] = 2
    values.psync()
    assert values._check() == []


def test_a_copy_beside_its_original_is_refused(tmp_path: Path) -> None:
    """Both have the same ID: the copy's objects would be taken for the original's."""
    original, copy = tmp_path / "a.pmo", tmp_path / "b.pmo"
    with indelible.open(original, 16 * MIB) as pool:
        pool.array("w", 10)[:] = 1
        with pool.dict("run") as values:
            values["x"] = "original"
        del values
        pool.array("w")[:] = 1
        array = pool.array("w")
        array[:] = 1
        array.psync()
        shutil.copy(original, copy)
        with pytest.raises(indelible.Error, match="a copy of pool") as caught:
            indelible.open(copy)
        assert str(original) in str(caught.value) and "one of them at a time" in str(caught.value)
        del array
    del pool
    gc.collect()
    with indelible.open(copy) as pool:
        array = pool.array("w")
        array[:] = 2
        array.psync()
        assert pool.dict("run")["x"] == "original"
        del array
    del pool
    gc.collect()
    assert (indelible.open(original).array("w") == 1).all()


def test_beginning_anew_with_wrong_arguments_loses_nothing(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 16 * MIB)
    with pool:
        pool.array("w", 10)[:] = 7
        kept = pool.array("w")
        kept[:] = 7
        values = pool.dict("run")
        values["a"] = 1
    pool = indelible.open(tmp_path / "p.pmo")
    del kept, values
    wrong: list[Any] = [
        lambda: pool.array("w", mode="w+"), lambda: pool.array("w", -5, mode="w+"),
        lambda: pool.array("w", 5, "nonsense", mode="w+"), lambda: pool.array("w", 5, object, mode="w+"),
        lambda: pool.array("w", 5, order="X", mode="w+"), lambda: pool.array("w", 1 << 40, mode="w+"),
        lambda: pool.dict("run", "w+", size=1 << 50), lambda: pool.dict("run", "w+", size=-1),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises((indelible.Error, ValueError, TypeError)):
            call()
    assert (pool.array("w") == 7).all() and dict(pool.dict("run")) == {"a": 1}
    assert list(pool) == ["run", "w"]
    # As large as the pool: there is room when the old one is gone.
    big = pool.array("big", 12 * MIB, "u1")
    del big
    assert pool.array("big", 12 * MIB, "u1", mode="w+").sum() == 0


def test_a_pool_is_a_mapping_of_what_it_holds(pool: indelible.Pool) -> None:
    with pool.dict("run") as values:
        values["a"] = 1
    array = pool.array("w", 3)
    pool.create("raw", 4096)
    assert list(pool) == ["raw", "run", "w"] and len(pool) == 3 and pool
    assert pool["w"] is not None and np.shares_memory(pool["w"], array)
    assert dict(pool["run"]) == {"a": 1}
    raw = pool["raw"]
    assert isinstance(raw, indelible.Object) and len(raw) == 4096 and pool.stat("raw").size == 4096
    with pytest.raises(KeyError):
        pool["none"]
    assert array.name == "w" and array.pool is pool and array[1:].name == "w" and pool["run"].pool is pool
    assert raw.pool is pool
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", indelible.__version__)


def test_the_end_of_a_pools_block_psyncs_what_was_taken_from_it(open_pool: Open) -> None:
    with open_pool() as pool:
        array, values = pool.array("w", 10), pool.dict("run")
        array[:] = 1
        values["a"] = 1
    array[:] = 2
    del array, values
    assert (open_pool().array("w") == 1).all() and dict(open_pool().dict("run")) == {"a": 1}
    with pytest.raises(ZeroDivisionError), open_pool() as pool:
        array = pool.array("w")
        array[:] = 3
        1 / 0  # noqa: B018
    del array
    assert (open_pool().array("w") == 1).all()


def test_errors_of_the_system_have_errno_and_filename(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    with pytest.raises(FileNotFoundError) as missing:
        indelible.open(path)
    assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, str(path))
    pool = indelible.open(path, 16 * MIB)
    pool.create("a", 4096, key=b"secret")
    with pytest.raises(PermissionError) as wrong:
        pool.attach("a")
    assert wrong.value.errno == errno.EACCES and wrong.value.filename == str(path) and wrong.value.strerror
    again = pickle.loads(pickle.dumps(wrong.value))
    assert type(again) is indelible.WrongKey and (again.kind, again.object) == ("WrongKey", "a")


def test_a_pool_that_is_smaller_than_asked_for_says_so(tmp_path: Path) -> None:
    indelible.open(tmp_path / "p.pmo", 4 * MIB)
    with pytest.warns(UserWarning, match="has 4194304 bytes, less than the 8388608 asked for"):
        indelible.open(tmp_path / "p.pmo", 8 * MIB)
    indelible.open(tmp_path / "p.pmo", 2 * MIB)


def test_a_pool_becomes_longer_beside_what_is_taken_from_it(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 8 * MIB)
    weights = pool.array("w", (1000,), "f8")
    with pytest.raises(indelible.NoRoom):
        pool.array("large", (3 * MIB,), "f8")
    assert pool.grow(64 * MIB) == 64 * MIB
    large = pool.array("large", (3 * MIB,), "f8")
    weights[:] = 1.0
    large[-1] = 2.0
    indelible.psync(weights, large)
    assert pool.info()["length"] == 64 * MIB
    with pytest.raises(ValueError, match="becomes longer, not shorter"):
        pool.grow(8 * MIB)


DIES = """
import indelible, os, signal, sys
pool = indelible.open(sys.argv[1], 16 << 20)
values = pool.dict("run")
for step in range(20):
    values["step"] = step
    values.psync()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_recovery_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "p.pmo"
    assert subprocess.run(python(DIES, path), timeout=120).returncode == -signal.SIGKILL
    caplog.set_level("INFO", "indelible")
    assert indelible.open(path).dict("run")["step"] == 19
    (record,) = caplog.records
    assert record.name == "indelible" and record.getMessage().startswith("recovered object 'run' of pool ")


def test_the_best_and_the_last_checkpoints_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"

    with indelible.open(path, 64 * MIB) as pool:
        saved = pool.checkpoints("run", last=2, best=1)
        for step, score in enumerate([5.0, 1.0, 4.0, 3.0, 2.0]):
            state = {
                "layer.weight": np.full((10, 10), step, "f4"),
                "optimizer": {"lr": 0.1, "moments": [np.ones(3), None]},
                "step": step,
            }
            saved.save(f"step {step}", state, score=score)
    del pool, saved
    gc.collect()
    saved = indelible.open(path).checkpoints("run", last=2, best=1)
    assert list(saved) == ["step 1", "step 3", "step 4"] and saved.latest == "step 4" and saved.best == "step 1"
    state = saved.load()
    assert (state["layer.weight"] == 4).all() and state["layer.weight"].flags.owndata and state["step"] == 4
    state["optimizer"]["moments"][0][0] = 5
    assert saved.load("step 1")["step"] == 1 and "step 0" not in saved and len(saved) == 3
    with pytest.raises(KeyError, match="step 0"):
        saved.load("step 0")
    saved.save("step 4", {"step": 44})
    assert saved.load() == {"step": 44}


def test_a_checkpoint_is_loaded_as_the_state_of_a_model(tmp_path: Path) -> None:
    """A model that takes its state as torch's do: strictly by its keys, and by copies into parameters that it keeps."""

    class Model:
        def __init__(self, seed: int) -> None:
            random = np.random.default_rng(seed)
            self.parameters = OrderedDict(
                (f"layers.{n}.{part}", random.random(shape, "f4"))
                for n in range(3)
                for part, shape in [("weight", (20, 10)), ("bias", (20,))]
            )
            self.parameters["steps"] = np.array(seed)

        def state_dict(self) -> OrderedDict[str, Any]:
            return OrderedDict(self.parameters)

        def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
            assert not strict or set(state) == set(self.parameters)
            for name, parameter in self.parameters.items():
                given = state[name]
                assert (given.shape, given.dtype) == (parameter.shape, parameter.dtype), name
                parameter[...] = given

    path = tmp_path / "p.pmo"
    trained, other = Model(1), Model(2)
    with indelible.open(path, 64 * MIB) as pool:
        saved = pool.checkpoints("run", last=2)
        saved.save("step 1", trained.state_dict())
        saved.save("step 2", {"model": other.state_dict(), "epoch": 2})
        trained.parameters["layers.0.bias"][:] = 0
    del pool, saved
    gc.collect()
    saved = indelible.open(path).checkpoints("run", last=2)
    fresh, nested = Model(3), Model(4)
    fresh.load_state_dict(saved.load("step 1"))
    nested.load_state_dict(saved.load("step 2")["model"])
    for loaded, original in [(fresh, Model(1)), (nested, Model(2))]:
        for name, parameter in original.parameters.items():
            assert np.array_equal(loaded.parameters[name], parameter), name
    # The loaded state is the model's own: a step of training does not change the checkpoint.
    fresh.parameters["layers.0.weight"] += 1
    assert np.array_equal(saved.load("step 1")["layers.0.weight"], Model(1).parameters["layers.0.weight"])


def test_objects_get_other_addresses(tmp_path: Path) -> None:
    """Arrays and dicts, and bytes that their maker declares free of addresses."""
    pool, other = (indelible.open(tmp_path / name, 32 * MIB) for name in ["one.pmo", "other.pmo"])
    w, run = pool.array("w", 1000), pool.dict("run")
    w[:], run["a"] = np.arange(1000), 1
    pool.create("told", 4096, position_independent=True)
    pool.create("untold", 4096)
    indelible.psync(w, run)
    said = [pool.stat(name).position_independent for name in ["w", "run", "told", "untold"]]
    assert said == [True, False, True, False]
    for name in ["told", "untold"]:
        with pool.attach(name) as held:
            with memoryview(held) as memory:
                memory[:8] = pool.stat("told").address.to_bytes(8, "little")
            indelible.psync(held)
    pool.copy_to("w", pool, "w beside", rebase=True)
    pool.copy_to("run", other, "run", rebase=True)
    assert np.array_equal(pool.array("w beside"), np.arange(1000)) and w[5] == 5
    assert dict(other.dict("run")) == {"a": 1}
    pool.copy_to("told", pool, "told beside", rebase=True)
    with pytest.raises(indelible.Error, match="position-independent") as refused:
        pool.move_to("untold", other, rebase=True)
    assert refused.value.kind == "Unsuitable"
    pool.set_position_independent("untold", True)
    pool.move_to("untold", other, rebase=True)
    assert "untold" not in pool and other.stat("untold").position_independent
    assert other.stat("untold").address != 0
    pool.set_position_independent("told", False)
    assert not pool.stat("told").position_independent
    with pytest.raises(indelible.Exists):
        pool.copy_to("w", pool, "told")
