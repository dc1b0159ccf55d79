"""Checkpoints: each is one state, whole and as it was given, whatever its name, whoever saves at
once, and however a save ends.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import gc
import importlib
import signal
import subprocess
import sys
import threading
from collections import Counter, OrderedDict, namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import indelible
import ml_dtypes
import numpy as np
import pytest
import standins
from conftest import MIB, not_tested, python
from test_interrupts import interrupted

Momentum = namedtuple("Momentum", ["mu", "nu"])


class Empty(NamedTuple):
    """A state of an optimizer that has none."""


@dataclasses.dataclass(frozen=True)
class Schedule:
    step: int
    rates: Any = None


@dataclasses.dataclass
class Loose:
    step: int


class Labelled(np.ndarray[Any, Any]):
    """More than its elements."""


def same(one: Any, other: Any, where: str = "state") -> None:
    """Fails unless both are of the same types and values, at any depth."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            same(a, b, f"{where}[{at}]")
    elif dataclasses.is_dataclass(one):
        same(vars(one), vars(other), where)
    elif isinstance(one, np.ndarray):
        assert (one.shape, one.dtype, one.tobytes()) == (
            other.shape,
            other.dtype,
            other.tobytes(),
        ), where
    elif isinstance(one, float | np.generic) and one != one:
        assert other != other, where
    else:
        assert one == other, where


def objects(pool: indelible.Pool) -> list[str]:
    return [name for name in pool if name.startswith("c~")]


def back(pool: indelible.Pool, state: Any) -> Any:
    saved = pool.checkpoints("c", last=1, best=0)
    saved.save("state", state)
    return saved.load("state")


def test_a_state_is_that_of_its_own_name(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("c", last=2, best=0)
    saved.save("model", {"w": np.zeros(2)})
    saved.save("model/ema", {"w": np.ones(2)})
    assert list(saved.load("model")) == ["w"] and saved.load("model")["w"].tolist() == [0, 0]
    saved.save("other", {"w": np.full(2, 2.0)})
    assert list(saved) == ["model/ema", "other"]
    assert saved.load("model/ema")["w"].tolist() == [1, 1] and len(objects(pool)) == 2


def test_a_score_that_is_no_number_is_the_worst(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("c", last=1, best=1)
    for name, score in [("s0", float("nan")), ("s1", 0.5), ("s2", 0.7), ("s3", float("nan"))]:
        saved.save(name, {"v": 1}, score=score)
    assert saved.best == "s1" and list(saved) == ["s1", "s3"] and len(objects(pool)) == 2


def test_threads_lose_no_save(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("c", last=1000, best=0)

    def save(thread: str) -> None:
        for number in range(30):
            # Each its own, as in a function that is called now and then.
            pool.checkpoints("c", last=1000, best=0).save(
                f"{thread}-{number}", {"w": np.full(10, number)}
            )

    threads = [threading.Thread(target=save, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(saved) == 90 and len(objects(pool)) == 90
    assert all(saved.load(name)["w"][0] == int(name[2:]) for name in saved)


def test_an_interrupt_leaves_the_former_state_or_the_new_one(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("c", last=2, best=0)
    old, new = {"old": np.zeros(2)}, {"new": Momentum(np.ones(3), 1)}
    seen, where = set(), ""
    for at in range(2000):
        saved.save("last", old)
        assert len(objects(pool)) == 1, f"after an interrupt at {where}"
        where = interrupted(lambda: saved.save("last", new), at)
        found = saved.load("last")
        seen.add("new" in found)
        same(found, new if "new" in found else old)
        if not where:
            break
        saved.save("last", new)
    assert not where and seen == {False, True} and list(saved) == ["last"]


SAVES = """
import sys, indelible, numpy as np
saved = indelible.open(sys.argv[1]).checkpoints("c", last=2, best=0)
step = int((saved.latest or "step 0")[5:])
while True:
    step += 1
    saved.save(f"step {step}", {"w": np.full(20000, step), "step": step})
    print(step, flush=True)
"""


def test_killed_at_any_moment_a_checkpoint_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    indelible.open(path, 64 * MIB).close()
    for round_ in range(6):
        process = subprocess.Popen(python(SAVES, path), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3 + round_):
            told = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        pool = indelible.open(path)
        saved = pool.checkpoints("c", last=2, best=0)
        assert int((saved.latest or "")[5:]) >= told
        for name in saved:
            state = saved.load(name)
            assert f"step {state['step']}" == name and (state["w"] == state["step"]).all()
        saved.save(f"step {state['step']}", state)
        saved.save(f"step {state['step']}", state)
        assert len(objects(pool)) == len(saved) == 2
        del pool, saved
        gc.collect()


FAILS = """
import os, sys, indelible
from indelible._dict import Dict
saved = indelible.open(sys.argv[1]).checkpoints("c", last=1, best=0)
saved.save("first", {"n": 1})
def fails(self):
    raise OSError("no room")
Dict.psync = fails
for name in ("second", "third"):
    try:
        saved.save(name, {"n": 2})
    except OSError:
        print("failed", flush=True)
os._exit(0)
"""


def test_after_saves_whose_psync_failed_and_a_death_the_durable_one_is_there(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    indelible.open(path, 64 * MIB).close()
    run = subprocess.run(python(FAILS, path), stdout=subprocess.PIPE, text=True, timeout=100)
    assert run.stdout.split() == ["failed"] * 2
    saved = indelible.open(path).checkpoints("c", last=1, best=0)
    assert list(saved) == ["first"] and saved.load() == {"n": 1}
    saved.save("fourth", {"n": 4})
    assert saved.load() == {"n": 4} and len(objects(saved._dict.pool)) == 1


def test_states_come_back_as_they_were(pool: indelible.Pool) -> None:
    grid = np.arange(12.0).reshape(3, 4)
    state = {
        "plain": [
            None,
            True,
            -1,
            1 << 80,
            2.5,
            float("nan"),
            3 + 4j,
            "x",
            b"y",
            bytearray(b"z"),
            dt.timedelta(3),
            Path("a"),
        ],
        "containers": (
            (1, (2,), ()),
            {},
            [],
            {1: "one", (1, 2): {None: 3}},
            OrderedDict(b=1, a=[2]),
        ),
        "named": [
            Momentum(np.ones(3, "f4"), {"b": np.float32(1.5)}),
            Empty(),
            Schedule(3, [Schedule(4)]),
        ],
        "scalars": [
            np.float32(1.5),
            np.int8(-3),
            np.bool_(True),
            np.datetime64("2020-01-01"),
            np.str_("q"),
            ml_dtypes.bfloat16(2),
        ],
        "arrays": [
            grid,
            np.asfortranarray(grid),
            grid.T[::2],
            np.zeros((0, 3)),
            np.array(3.5),
            np.arange(4, dtype=">i4"),
        ],
        "types": [
            np.array(["a", "bc"]),
            np.array([1], "M8[ns]"),
            np.zeros(3, [("a", "i1"), ("b", "f8")]),
            grid.astype(ml_dtypes.bfloat16),
        ],
        "large": [np.arange(400_000.0), np.arange(3_000_000.0).reshape(1000, 3000).T],
        "object": np.asarray(pool.array("w", 5)),
    }
    found = back(pool, state)
    same(found, state)
    found["plain"].append(1)
    found["arrays"][0][0, 0] = 5
    assert found["arrays"][0].flags.owndata and found["arrays"][1].flags.f_contiguous
    generator = np.random.default_rng(4)
    assert back(pool, generator).random() == generator.random()
    same(back(pool, np.arange(3)), np.arange(3))
    same(back(pool, [pool.dict("d")] and 7), 7)


def test_bytes_between_fields_stay_in_the_process(pool: indelible.Pool) -> None:
    dtype = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
    value = np.full(100 * dtype.itemsize, 0xA7, np.uint8).view(dtype)
    value["a"], value["b"] = 1, 2
    found = back(pool, {"array": value, "scalar": value[0], "every second": value[::2]})
    assert (found["array"] == value).all() and found["scalar"] == value[0]
    assert b"\xa7\xa7\xa7" not in Path(pool.path).read_bytes()


def test_what_would_come_back_as_something_else_is_refused(pool: indelible.Pool) -> None:
    saved = pool.checkpoints("c")
    saved.save("before", {"w": 1})

    class Local(NamedTuple):
        x: int

    more = Loose(1)
    more.beside = 2  # type: ignore[attr-defined]
    refused: list[tuple[Any, str]] = [
        (object(), "object"),
        (Counter("ab"), "subclass"),
        (np.arange(3).view(Labelled), "subclass"),
        (np.ma.array([1]), "masked"),
        (np.array([object()]), "Python objects"),
        (Local(1), "define it at the top"),
        (more, "beside"),
    ]
    for value, why in refused:
        with pytest.raises(TypeError, match=why) as raised:
            saved.save("after", {"layers": [0, {"w": value}]})
        assert "['layers'][1]['w']" in str(raised.value)
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(ValueError, match="64 deep"):
        saved.save("after", deep)
    with pytest.raises(TypeError, match="name of a checkpoint is a str"):
        saved.save(3, {})  # type: ignore[arg-type]
    assert list(saved) == ["before"] and len(objects(pool)) == 1


def test_a_class_that_is_gone_or_changed_is_named(
    pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = pool.checkpoints("c")
    saved.save("momentum", Momentum(1, 2))
    saved.save("schedule", Schedule(1))
    monkeypatch.setattr(sys.modules[__name__], "Momentum", namedtuple("Momentum", ["mu", "other"]))
    with pytest.raises(indelible.Mismatch, match="mu, nu"):
        saved.load("momentum")
    monkeypatch.delattr(sys.modules[__name__], "Schedule")
    with pytest.raises(indelible.Mismatch, match=rf"import {__name__} before"):
        saved.load("schedule")


def test_tensors_of_torch_come_back(pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = standins.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    half = torch.bfloat16
    large = np.arange(6_000_000).astype("f4").reshape(2000, 3000).T
    state = {
        "w": standins.Tensor(np.arange(6.0, dtype="f4").reshape(2, 3), torch.float32),
        "half": standins.Tensor(np.arange(3).astype(half.of), half, requires_grad=True),
        "parameter": standins.Parameter(standins.Tensor(np.ones(2, "f4"), torch.float32)),
        "scalar": standins.Tensor(np.array(5), torch.int64),
        "empty": standins.Tensor(np.zeros((0, 2), "f4"), torch.float32),
        "scattered": standins.Tensor(large, torch.float32),
    }
    found = back(pool, state)
    for name, tensor in state.items():
        got = found[name]
        assert (
            type(got) is type(tensor)
            and got.dtype is tensor.dtype
            and got.requires_grad == tensor.requires_grad
        ), name
        assert got.shape == tensor.shape and np.array_equal(got.array, tensor.array), name
    sparse = standins.Tensor(np.ones(2, "f4"), torch.float32)
    sparse.layout = "sparse"
    with pytest.raises(TypeError, match="layout sparse"):
        back(pool, [sparse])
    # Without the package, and without its type.
    saved = pool.checkpoints("c", last=1, best=0)
    del torch.bfloat16
    with pytest.raises(indelible.Mismatch, match="bfloat16"):
        saved.load()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        saved.load()


def test_arrays_of_jax_come_back(pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    jax: Any = standins.jax()
    monkeypatch.setitem(sys.modules, "jax", jax)
    state = [
        standins.Array(np.arange(5)),
        standins.Array(np.ones(3, ml_dtypes.bfloat16)),
        standins.Key(np.arange(2, dtype="u4")),
    ]
    found = back(pool, {"params": state, "opt": (Momentum(state[0], state[1]), Empty())})
    for got, given in zip([*found["params"], *found["opt"][0]], [*state, *state[:2]], strict=True):
        assert (
            type(got) is type(given)
            and got.array.dtype == given.array.dtype
            and np.array_equal(got.array, given.array)
        )
    # A process that makes other types of these.
    jax.numpy.asarray = lambda array: standins.Array(array.astype("f4"))
    with pytest.raises(indelible.Mismatch, match="jax_enable_x64"):
        pool.checkpoints("c", last=1, best=0).load()


def test_checkpoints_of_the_former_layout_are_refused_with_what_to_do(pool: indelible.Pool) -> None:
    run = pool.dict("c")
    run.update({"step 1/w": np.ones(2), "checkpoints": [("step 1", None)]})
    run.psync()
    with pytest.raises(indelible.Version, match=r"pool.dict\('c'\) has their values"):
        pool.checkpoints("c")
    assert run["step 1/w"].tolist() == [1, 1]


def test_bytes_that_are_no_checkpoint_are_damaged(pool: indelible.Pool) -> None:
    from indelible import _indelible, _pytree

    state = {"w": np.arange(5), "m": Momentum(1, [2.5])}
    packed = _pytree.Packed("a", None, state)
    good = b"".join(map(bytes, packed.pieces()))
    assert len(good) <= packed.size
    name, _, found = _pytree.load(np.frombuffer(good.ljust(packed.size, b"\0"), np.uint8), "it")
    assert name == "a"
    same(found, state)
    # Every byte of the header and the structure.
    for at in range(good.index(b"\0" * 200)):
        bad = bytearray(good)
        bad[at] ^= 0x41
        with pytest.raises(indelible.Error) as raised:
            _pytree.load(np.frombuffer(bad, np.uint8), "it")
        assert isinstance(raised.value, indelible.Damaged | indelible.Version)
    saved = pool.checkpoints("c")
    saved.save("a", state)
    pool.remove("c~0")
    with pytest.raises(indelible.NotFound, match="c~0"):
        saved.load()
    with _indelible.Import(pool, "c~0", 8192) as new:
        new.append(b"something else")
        new.publish()
    with pytest.raises(indelible.Damaged, match="holds no checkpoint"):
        saved.load()


def test_an_import_is_whole_or_not_there(pool: indelible.Pool) -> None:
    from indelible import _indelible

    free = pool.info()["free"]
    with pytest.raises(ZeroDivisionError), _indelible.Import(pool, "new", MIB) as new:
        new.append(bytes(5000))
        assert "new" not in pool
        1 / 0  # noqa: B018
    assert "new" not in pool and pool.info()["free"] == free
    with pytest.raises(indelible.Closed):
        new.publish()
    new = _indelible.Import(pool, "new", 10_000)
    for at in range(0, 10_000, 7):
        new.append(bytes(at + n & 0xFF for n in range(min(7, 10_000 - at))))
    with pytest.raises(indelible.BadSize):
        new.append(b"x")
    new.publish()
    assert bytes(memoryview(pool["new"])[:10_000]) == bytes(n & 0xFF for n in range(10_000))
    assert pool.stat("new").snapshot
    with pytest.raises(indelible.Exists):
        _indelible.Import(pool, "new", 10).publish()


MEMORY = """
import sys, indelible, numpy as np
pool = indelible.open(sys.argv[1], 600 << 20, medium="file")
saved = pool.checkpoints("c", last=1, best=0)
large = np.arange(16 << 20, dtype="f8")
scattered = np.arange(16 << 20, dtype="f8").reshape(4096, 4096).T
saved.save("first", {"w": np.ones(1000)})
def status(field):
    return int(next(line for line in open("/proc/self/status") if
    line.startswith(field)).split()[1])
for state in (large, scattered):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    saved.save("state", {"w": state})
    more = status("VmHWM") - before
    assert more < 64 << 10, f"{more} KiB more"
assert np.array_equal(saved.load()["w"], scattered)
"""


def test_a_save_takes_little_memory(tmp_path: Path) -> None:
    subprocess.run(python(MEMORY, tmp_path / "p.pmo"), check=True, timeout=300)


def library(name: str) -> Any:
    """A package that these tests do not install; run them by hand where it is."""
    try:
        return importlib.import_module(name)
    except ImportError:
        not_tested(f"checkpoints with {name}: it is not installed")
        pytest.skip(f"no {name}")


def test_a_model_and_its_optimizer_in_torch(pool: indelible.Pool) -> None:
    torch = library("torch")

    def made() -> Any:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(20, 10), torch.nn.BatchNorm1d(10))
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        model(torch.arange(80.0).reshape(4, 20)).pow(2).sum().backward()
        optimizer.step()

    model, optimizer = made()
    step(model, optimizer)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "half": model[0].weight.detach().to(torch.bfloat16),
    }
    found = back(pool, state)
    assert found["half"].dtype == torch.bfloat16 and torch.equal(found["half"], state["half"])
    assert found["model"]._metadata == state["model"]._metadata
    again, other = made()
    again.load_state_dict(found["model"])
    other.load_state_dict(found["optimizer"])
    for pair in ((model, optimizer), (again, other)):
        step(*pair)
    assert all(
        torch.equal(one, two)
        for one, two in zip(model.parameters(), again.parameters(), strict=True)
    )
    kinds = [
        torch.tensor([1 + 2j]),
        torch.tensor(True),
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.randn(4, 6).T,
        torch.zeros(0),
    ]
    for given, got in zip(kinds, back(pool, kinds), strict=True):
        assert (
            got.dtype == given.dtype
            and got.shape == given.shape
            and got.numpy(force=True).tobytes() == given.contiguous().numpy(force=True).tobytes()
            if given.dtype != torch.float8_e4m3fn
            else True
        )
    with pytest.raises(TypeError, match="sparse"):
        back(pool, torch.eye(3).to_sparse())


def test_a_state_of_optax(pool: indelible.Pool) -> None:
    jax, optax = library("jax"), library("optax")
    params = {"w": jax.numpy.ones((3, 4)), "b": jax.numpy.zeros(4, "bfloat16")}
    rate = optax.warmup_cosine_decay_schedule(0, 1e-3, 10, 100)
    transformation = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate))
    state = {"params": params, "opt": transformation.init(params), "key": jax.random.key(3)}
    found = back(pool, state)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    for given, got in zip(jax.tree.leaves(state), jax.tree.leaves(found), strict=True):
        assert got.dtype == given.dtype and got.shape == given.shape and isinstance(got, jax.Array)
        assert (
            jax.numpy.issubdtype(given.dtype, jax.dtypes.prng_key)
            or (np.asarray(got) == np.asarray(given)).all()
        )
    assert jax.random.normal(found["key"]) == jax.random.normal(state["key"])
    transformation.update(params, found["opt"], found["params"])


def test_frames_of_pandas(pool: indelible.Pool) -> None:
    pandas = library("pandas")
    library("pyarrow")
    days = pandas.date_range("2020-01-01", periods=3, freq="D", tz="Europe/Berlin", name="day")
    frame = pandas.DataFrame(
        {
            "v": [1.5, float("nan"), 3],
            "s": ["x", None, "z"],
            "n": pandas.array([1, None, 3], "Int64"),
        },
        index=days,
    )
    frame["c"] = pandas.Categorical(["a", "b", "a"], ordered=True)
    frame["at"] = pandas.to_datetime([1, 2, None], unit="ns")
    frame.attrs = {"made": [1, {"by": "us"}]}
    plain = pandas.DataFrame({"a": [1, 2], "b": [True, False]})
    several = plain.set_index([pandas.Index([1, 2], name="i"), "a"])
    for given, got in zip(
        [frame, plain, several], back(pool, [frame, plain, several]), strict=True
    ):
        pandas.testing.assert_frame_equal(
            got,
            given,
            check_exact=True,
            check_freq=True,
            check_index_type=True,
            check_column_type=True,
        )
        assert got.attrs == given.attrs and type(got.index) is type(given.index)
    mixed = pandas.DataFrame({"a": [1, "x", None]})
    with pytest.raises(TypeError, match="cannot be kept exactly"):
        back(pool, mixed)


def test_frames_of_polars_and_tables_of_pyarrow(pool: indelible.Pool) -> None:
    polars, pyarrow = library("polars"), library("pyarrow")
    frame = polars.DataFrame(
        {"a": [1, None], "s": ["x", "y"], "l": [[1, 2], []], "f": [float("nan"), None]}
    )
    frame = frame.with_columns(
        c=polars.col("s").cast(polars.Categorical), e=polars.col("s").cast(polars.Enum(["x", "y"]))
    )
    table = pyarrow.table({"x": pyarrow.chunked_array([[1], [2, None]])}).replace_schema_metadata(
        {"made": "here"}
    )
    batch = pyarrow.RecordBatch.from_pydict({"q": [1.5]})
    found = back(pool, [frame, table, batch, frame.clear()])
    assert (
        found[0].schema == frame.schema
        and found[0].equals(frame)
        and found[3].schema == frame.schema
    )
    assert (
        found[1].equals(table, check_metadata=True)
        and found[2].equals(batch)
        and found[1].column(0).num_chunks == 2
    )
    with pytest.raises(TypeError, match="polars cannot be kept"):
        back(pool, polars.DataFrame({"o": [object()]}))


def test_objects_of_the_user_stay_whatever_their_names_are(pool: indelible.Pool) -> None:
    for name in ("run~0", "w~new", "t~new"):
        array = pool.array(name, (10,), "f8")
        array[:] = 7
        array.psync()
    del array
    saved = pool.checkpoints("run")
    saved.save("a", {"x": 1})
    saved.save("b", {"x": 2})
    assert saved.load("a") == {"x": 1} and saved.load("b") == {"x": 2}
    few = pool.checkpoints("few", last=1, best=0)
    few.save("a", 1)
    few.save("b", 2)
    array = pool.array("few~0", (10,), "f8")
    array[:] = 7
    array.psync()
    del array
    few.save("c", 3)
    pool.array("w", (10,), "f8").psync()
    assert (pool.array("w", (20,), "f8", "w+") == 0).all()
    pool.transactional("t", (10,), "f8")
    for name in ("run~0", "w~new", "t~new", "few~0"):
        assert (pool.array(name, mode="r") == 7).all(), name
