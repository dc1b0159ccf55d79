"""The dict as Python programs know dicts, and as threads and handlers meet it."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def test_setdefault_returns_what_is_stored(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    mine = np.zeros(3)
    values.setdefault("w", mine)[:] = 7
    assert values["w"].tolist() == [7, 7, 7] and mine.tolist() == [0, 0, 0]
    assert values.setdefault("w", np.ones(3)).tolist() == [7, 7, 7]
    values["w"][0] = 1
    values.psync()
    values.close()
    assert pool.dict("run")["w"].tolist() == [1, 7, 7]


def test_copies_are_ordinary_dicts(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update(a=1, w=np.arange(3.0))
    shallow, deep, pickled = copy.copy(values), copy.deepcopy(values), pickle.loads(pickle.dumps(values))
    assert type(shallow) is type(deep) is type(pickled) is dict
    values["w"][0] = 9
    assert shallow["w"][0] == 9 and deep["w"][0] == 0 and pickled["w"][0] == 0
    assert values.copy().keys() == {"a", "w"}
    pool.create("raw", 4096)
    raw = pool.attach("raw")
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            refused(raw)


def test_unions_and_reversal(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update({"a": 1}, b=2)
    assert values | {"b": 3, "c": 4} == {"a": 1, "b": 3, "c": 4}
    assert {"b": 3, "z": 0} | values == {"b": 2, "z": 0, "a": 1}
    values |= {"c": 5}
    values.update([("d", 6)])
    assert list(reversed(values)) == ["d", "c", "b", "a"]
    assert list(reversed(values.items()))[0] == ("d", 6) and list(reversed(values.values())) == [6, 5, 2, 1]
    assert values.keys() & {"a", "x"} == {"a"} and ("a", 1) in values.items()
    assert values.popitem() == ("d", 6) and list(values) == ["a", "b", "c"]


def test_a_change_during_iteration_is_an_error(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update((str(number), number) for number in range(1000))
    changes: list[Callable[[], Any]] = [
        lambda: values.__setitem__("new", 1), lambda: values.__delitem__("5"), lambda: values.pop("7"), values.popitem,
        values.clear,
    ]  # fmt: skip
    walks: list[Callable[[], Any]] = [lambda: iter(values), lambda: iter(values.items()), lambda: reversed(values)]
    for change in changes:
        for begin in walks:
            values.clear()
            values.update((str(number), number) for number in range(1000))
            walk = begin()
            next(walk)
            values["1"] = 2  # a value may change
            next(walk)
            change()
            with pytest.raises(RuntimeError, match="changed size during iteration"):
                next(walk)
            assert list(walk) == []


def test_a_key_that_was_deleted_costs_nothing_for_the_rest(pool: indelible.Pool) -> None:
    """Deleting, and failing to, leaves the dict in memory alone: no key is read again."""
    values = pool.dict("run")
    values.update((f"k{number}", number) for number in range(20_000))
    walk = iter(values)
    next(walk)
    for _ in range(1000):
        with pytest.raises(KeyError):
            del values["none"]
    assert next(walk) == "k1"


OPERATIONS = st.lists(st.tuples(st.sampled_from("sssssdpiuxrt"), st.integers(0, 40), st.integers(-5, 5)), max_size=200)


@given(operations=OPERATIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_it_does_what_a_dict_does(pool: indelible.Pool, operations: list[tuple[str, int, int]]) -> None:
    """Order included, and after it was opened again."""
    values, model = pool.dict("run", "w+"), dict[str, Any]()
    for what, place, number in operations:
        key = f"key {place}"
        match what:
            case "s":
                values[key] = model[key] = [number, "text" * number, float(number)][number % 3]
            case "d" if key in model:
                del values[key], model[key]
            case "p":
                assert values.pop(key, None) == model.pop(key, None)
            case "i" if model:
                assert values.popitem() == model.popitem()
            case "u":
                new = {f"key {place + step}": number for step in range(10)}
                values.update(new)
                model.update(new)
            case "x":
                assert values.setdefault(key, number) == model.setdefault(key, number)
            case "r":
                values.psync()
                values.close()
                values = pool.dict("run")
            case "t" if number == 0:
                values.clear()
                model.clear()
        assert values.get(key) == model.get(key) and len(values) == len(model)
    assert list(values.items()) == list(model.items()) and list(reversed(values)) == list(reversed(model))
    assert values._check() == []
    values.psync()
    values.close()


def test_keys_whose_hashes_collide_are_told_apart(pool: indelible.Pool) -> None:
    """Hashes have 32 bits: of 150,000 keys, a few share theirs."""
    values = pool.dict("run", size=32 * MIB)
    keys = [f"{number}" for number in range(150_000)]
    values.update((key, number) for number, key in enumerate(keys))
    assert all(values[key] == number for number, key in enumerate(keys))
    for key in keys[::2]:
        del values[key]
    assert len(values) == 75_000 and list(values.values()) == list(range(1, 150_000, 2))
    values.update((key, -1) for key in keys[::2])
    assert [values[key] for key in keys[:4]] == [-1, 1, -1, 3] and values._check() == []


class Interrupted(BaseException):
    pass


def traced(change: Callable[[], Any], at: int, do: Callable[[], Any]) -> bool:
    """Runs `change`, and `do` before its bytecode number `at`; false if there are not so many."""
    left = at

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode" and "indelible" in frame.f_code.co_filename:
            left -= 1
            if left == 0:
                sys.settrace(None)
                do()
        return trace

    sys.settrace(trace)
    try:
        change()
    finally:
        sys.settrace(None)
    return left <= 0


def changes(values: indelible.Dict) -> list[Callable[[], Any]]:
    return [
        lambda: values.update({"new": 1, "old": "longer text", "w": np.arange(30)}),
        lambda: values.__setitem__("w", np.arange(50)),
        lambda: values.setdefault("fresh", np.ones(3)),
        lambda: values.pop("w"),
        lambda: values.clear(),
    ]


def interrupt() -> None:
    raise Interrupted


def test_whatever_interrupts_a_change_leaves_a_whole_dict(pool: indelible.Pool) -> None:
    """An exception before every bytecode of the package that a change runs."""
    hits = 0
    for number in range(5):
        for at in range(1, 2000):
            with pool.dict("run", "w+") as values:
                values.update(old="text", w=np.arange(3), n=None)
                before = {key: repr(value) for key, value in values.items()}
                try:
                    ended = not traced(changes(values)[number], at, interrupt)
                except Interrupted:
                    hits, ended = hits + 1, False
                done = {key: repr(value) for key, value in values.items()}
                if done != before:
                    reference: dict[str, Any] = {}
                    with pool.dict("other", "w+") as other:
                        other.update(old="text", w=np.arange(3), n=None)
                        changes(other)[number]()
                        reference = {key: repr(value) for key, value in other.items()}
                    assert done == reference, f"change {number}, interrupted at {at}, is half done"
                assert values._check() == []
            assert {key: repr(value) for key, value in pool.dict("run").items()} == done
            if ended:
                break
    assert hits > 100


def test_a_handler_that_uses_the_dict_finds_it_whole(pool: indelible.Pool) -> None:
    """Another change before every bytecode of the package that a change runs, as a signal handler makes it."""
    for number in range(5):
        for at in range(1, 2000, 2):
            values = pool.dict("run", "w+")
            values.update(old="text", w=np.arange(3), n=None)

            def handler(values: indelible.Dict = values) -> None:
                values["handler"] = np.arange(20)
                values["old"] = "from the handler"
                del values["n"]
                values.update({f"h{key}": key for key in range(30)})
                values.psync()

            ended = not traced(changes(values)[number], at, handler)
            done = {key: repr(value) for key, value in values.items()}
            assert ended or number == 4 or done["h29"] == "29"
            assert values._check() == []
            values.psync()
            values.close()
            values = pool.dict("run")
            assert {key: repr(value) for key, value in values.items()} == done
            values.close()
            if ended:
                break


def test_signals_that_change_the_dict_do_not_destroy_it(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    done = [0]

    def handler(_number: int, _frame: FrameType | None) -> None:
        done[0] += 1
        values[f"handler {done[0] % 50}"] = np.full(10, done[0])
        values.pop(f"handler {(done[0] + 7) % 50}", None)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for step in range(4000):
            values[f"main {step % 60}"] = np.full(20, step)
            if step % 3 == 0:
                values.pop(f"main {(step + 11) % 60}", None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    values.psync()
    expected = {key: repr(value) for key, value in values.items()}
    assert values._check() == []
    values.close()
    assert {key: repr(value) for key, value in pool.dict("run").items()} == expected


def together(work: Callable[[int], None], threads: int = 4) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_threads_that_take_items_get_each_once(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update((f"k{number}", number) for number in range(4000))
    taken: list[list[int]] = [[], [], [], []]

    def work(number: int) -> None:
        for step in range(4000):
            found = values.pop(f"k{step}", None) if number % 2 else None
            if number % 2 == 0 and len(values) > 100:
                try:
                    found = values.popitem()[1]
                except KeyError:
                    return
            if found is not None:
                taken[number].append(found)

    together(work)
    everything = sorted(sum(taken, []) + list(values.values()))
    assert everything == list(range(4000))


def test_threads_that_set_a_default_agree(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    seen: list[dict[str, int]] = [{}, {}, {}, {}]

    def work(number: int) -> None:
        for step in range(2000):
            seen[number][f"k{step}"] = values.setdefault(f"k{step}", number)

    together(work)
    assert seen[0] == seen[1] == seen[2] == seen[3] == dict(values)


def test_an_update_is_one_step_for_other_threads(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update({f"k{key}": 0 for key in range(20)})
    torn: list[Any] = []

    def work(number: int) -> None:
        for step in range(300):
            if number < 2:
                values.update({f"k{key}": 2 * step + number for key in range(20)})
            else:
                # One fetch of the walk has all of them.
                found = set(values.values())
                if len(found) != 1:
                    torn.append(found)

    together(work)
    assert torn == []


def test_an_update_that_fails_changes_nothing(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update(a=1, b=2)
    with pytest.raises(TypeError):
        values.update(a=5, c=6, d=object())
    with pytest.raises(indelible.NoRoom):
        values.update({"a": 5, "c": np.zeros(3), "d": bytes(80 * MIB)})
    assert dict(values) == {"a": 1, "b": 2}
    values["e"] = 1
    values.psync()
    assert len(values._blocks()[0]) < 12 and values._check() == []


def test_what_was_not_psynced_is_warned_of(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values["a"] = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        del values
        gc.collect()
        with pool.dict("run") as values:
            values["b"] = 1
        values = pool.dict("run")
        values["c"] = 2
        values.psync()
        values.pop("none", None)
        del values
        gc.collect()
    assert [str(each.message).partition(" is detached")[2] for each in caught] == [
        " with changes that were not psynced: they are lost; this line has opened it (psync it, or use it or its"
        " pool in a with block)"
    ]
    assert dict(pool.dict("run")) == {"b": 1, "c": 2}


def test_a_with_block_psyncs_at_its_end_and_not_after_an_exception(pool: indelible.Pool) -> None:
    with pool.dict("run") as values:
        values["a"] = 1
    with pytest.raises(ZeroDivisionError), pool.dict("run") as values:
        values["a"] = 2
        1 / 0  # noqa: B018
    assert dict(pool.dict("run")) == {"a": 1}
    pool.create("raw", 4096)
    with pool.attach("raw") as raw:
        memoryview(raw)[:2] = b"ab"
    with pool.attach("raw", "r") as raw:
        assert bytes(raw)[:2] == b"ab"


def test_too_small_a_size_is_no_trap(pool: indelible.Pool) -> None:
    for size in (1, 4096, 12 << 10):
        with pool.dict(f"of {size}", size=size) as values:
            values["a"] = np.zeros(100_000)
        assert pool.dict(f"of {size}")["a"].shape == (100_000,)
    with pytest.raises(ValueError, match="0 bytes"):
        pool.dict("none", size=0)
    assert "none" not in pool
    # One that was left by the program before this one.
    pool.create("left", 5000)
    pool.dict("left")["a"] = 1
