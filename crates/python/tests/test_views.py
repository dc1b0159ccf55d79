"""Views: slots with objects, which are in memory from their first use on, and security contexts, which say with which rights."""

from __future__ import annotations

import signal
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import Open, python
from test_shared import child, said


def work(pool: indelible.Pool) -> None:
    """A view with three objects in four slots."""
    for name in ("progress", "counts", "wages"):
        pool.create(name, 8192)
    with pool.view("work", 4) as view:
        view.set(0, "progress")
        view.set(1, "counts", "rw", at_once=True)
        view.set(2, "wages", "r")


def test_a_view_is_an_object_of_slots(open_pool: Open) -> None:
    with open_pool() as pool:
        work(pool)
        view = pool.view("work")
        assert (view.name, view.pool, view.slots, view.closed) == ("work", pool, 4, False)
        assert repr(view) == "<indelible.View 'work', 4 slots>"
        slots = view.list()
        assert slots == list(view) == pool.view_slots("work")
        assert [(slot.slot, pool.stat(slot.target).name, slot.rights, slot.at_once) for slot in slots] == [
            (0, "progress", "rw", False),
            (1, "counts", "rw", True),
            (2, "wages", "r", False),
        ]
        assert view.clear(1) and not view.clear(1)
        view.set(0, "counts", "r")
        assert [(slot.slot, slot.rights) for slot in view] == [(0, "r"), (2, "r")]
        # Others see it as the last psync left it.
        assert len(pool.view_slots("work")) == 3
        view.psync()
        assert len(pool.view_slots("work")) == 2
        view.close()
        view.close()
        for use in (view.list, view.psync, lambda: view.clear(0), lambda: view.set(0, "wages")):
            with pytest.raises(indelible.Closed, match='view "work": it is closed'):
                use()
        assert repr(view) == "<indelible.View 'work', closed>"
    with open_pool() as pool, pytest.raises(KeyError), pool.view("work") as view:
        view.clear(0)
        raise KeyError("why not")
    with open_pool() as pool:
        assert len(pool.view_slots("work")) == 2


def test_a_slot_takes_what_it_can_have(pool: indelible.Pool) -> None:
    work(pool)
    with pytest.raises(indelible.NotFound):
        pool.view("none")
    with pytest.raises(indelible.Error, match="no view") as refused:
        pool.view("counts")
    assert refused.value.kind == "Unsuitable"
    for read in (pool.view_slots, pool.attach_view):
        with pytest.raises(indelible.Error, match="no view"):
            read("counts")
        with pytest.raises(indelible.NotFound):
            read("none")
    view = pool.view("work")
    assert pool.view("work") is view
    with pytest.raises(indelible.NotFound):
        view.set(3, "none")
    for slot in (4, 1 << 40):
        with pytest.raises(indelible.BadSize):
            view.set(slot, "wages")
        with pytest.raises(indelible.BadSize):
            view.clear(slot)
    with pytest.raises(indelible.Error, match="slot") as taken:
        view.set(3, "wages")
    assert taken.value.kind == "AddressTaken"
    with pytest.raises(ValueError, match="rights is one of r, rw, not 'w'|rights is one of r, rw, not \"w\""):
        view.set(3, "wages", "w")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        view.set(-1, "wages")
    with pytest.raises(indelible.BadSize):
        pool.view("huge", 1 << 20)


def test_changes_that_vanish_are_warned_of(pool: indelible.Pool) -> None:
    work(pool)
    pool.context("staff", 4).close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        view, context = pool.view("work"), pool.context("staff")
        view.clear(0)
        context.set_default("r")
        view.psync()
        context.psync()
        del view, context
        assert told == []
        view, context = pool.view("work"), pool.context("staff")
        view.clear(1)
        view.close()
        context.set_default(None)
        del context
        assert [str(warning.message).split(" is detached")[0] for warning in told] == ['view "work"', 'security context "staff"']
    assert len(pool.view_slots("work")) == 2 and pool.context_rules("staff").default == "r"


def test_objects_are_attached_when_they_are_used(open_pool: Open) -> None:
    with open_pool() as pool:
        work(pool)
        view = pool.attach_view("work")
        assert (view.name, view.pool, view.contexts, view.closed, view.views) == ("work", pool, [], False, 0)
        assert repr(view) == "<indelible.AttachedView 'work', 3 slots set>"
        assert [slot.memory for slot in view.slots()] == ["reserved", "writing", "reserved"]
        progress, wages = view[0], view[2]
        assert [slot.memory for slot in view.slots()] == ["writing", "writing", "reading"]
        state = view.slots()[0]
        assert (state.slot, state.name, state.rights, state.allowed, state.size) == (0, "progress", "rw", "rw", 8192)
        assert state.address == pool.stat("progress").address == view.bring(0) and state.refused is None
        assert (progress.nbytes, progress.readonly, wages.readonly) == (8192, False, True)
        progress[:5] = b"hello"
        with pytest.raises(TypeError):
            wages[0] = 1
        counts = np.frombuffer(view.buffer(1, "r+"), "u8")
        counts[:] = 7
        assert view.buffer(0, "r").readonly and bytes(view.buffer(0, "r")[:5]) == b"hello"
        view.psync()
        assert view.bring_all() == 3
        with pytest.raises(BufferError, match="still in use"):
            view.close()
        del progress, wages, counts
        view.close()
    with open_pool() as pool, pool.attach_view("work") as view:
        assert bytes(view[0][:6]) == b"hello\0" and np.frombuffer(view[1], "u8").sum() == 7 * 1024
        view[0][:5] = b"again"
    with open_pool() as pool:
        assert bytes(memoryview(pool.attach("progress", "r"))[:5]) == b"again"


def test_an_array_is_had_by_its_slot(pool: indelible.Pool) -> None:
    w = pool.array("w", (10, 3), "f4", order="F")
    w[:] = 1
    w.psync()
    del w
    pool.create("raw", 4096)
    with pool.view("work", 2) as made:
        made.set(0, "w")
        made.set(1, "raw")
    with pool.attach_view("work") as view:
        w = view.array(0)
        assert (w.shape, w.dtype, w.flags.f_contiguous, w.sum()) == ((10, 3), "f4", True, 30)
        assert not view.array(0, "r").flags.writeable
        w += 1
        with pytest.raises(indelible.Error):
            view.array(1)
        with pytest.raises(indelible.Error, match="does not lie in the memory of an attached object"):
            indelible.psync(w)
        del w
    assert pool.array("w").sum() == 60


def test_uses_that_cannot_be_are_errors(pool: indelible.Pool) -> None:
    work(pool)
    view = pool.attach_view("work")
    uses: list[Callable[[], object]] = [lambda: view[3], lambda: view.buffer(3), lambda: view.bring(1 << 40)]
    for use in uses:
        with pytest.raises(indelible.NotFound):
            use()
    with pytest.raises(indelible.ReadOnly, match="slot 2"):
        view.buffer(2, "r+")
    with pytest.raises(ValueError, match="mode"):
        view.buffer(2, "w")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        view[-1]
    # Another process has one object, and one is gone.
    holder = child("import sys, indelible; o = indelible.open(sys.argv[1]).attach('progress'); print('has', flush=True); sys.stdin.read()", pool.path)
    assert said(holder) == "has"
    with pytest.raises(indelible.Held, match=str(holder.pid)):
        view[0]
    refused = view.slots()[0].refused
    assert isinstance(refused, indelible.Held) and str(holder.pid) in str(refused) and refused.object == view.slots()[0].target
    holder.kill()
    holder.communicate()
    view[0].release()
    assert view.slots()[0].refused is None
    view.close()
    view.close()
    pool.remove("wages")
    with pool.attach_view("work") as other, pytest.raises(indelible.NotFound):
        other[2]
    for closed in (lambda: view[0], view.slots, view.psync, view.adopt, view.bring_all, lambda: view.bring(0), lambda: view.contexts):
        with pytest.raises(indelible.Closed, match='view "work": it is closed'):
            closed()
    assert repr(view) == "<indelible.AttachedView 'work', closed>"


def test_an_exception_is_not_covered_by_another(pool: indelible.Pool) -> None:
    work(pool)
    with pytest.raises(KeyError, match="why not"), pool.attach_view("work") as view:
        memory = view[0]
        memory[0] = 1
        raise KeyError("why not")
    assert view.closed and memory[0] == 1
    with pytest.raises(indelible.Closed):
        view[0]
    memory.release()
    # Detached with the last view, and not psynced.
    assert memoryview(pool.attach("progress"))[0] == 0


def test_memory_outlives_all_names_of_the_view(pool: indelible.Pool) -> None:
    work(pool)
    memory = pool.attach_view("work")[0]
    memory[0] = 9
    assert memory[0] == 9 and bytes(memory[1:]) == bytes(8191)
    with pytest.raises(indelible.Held):
        pool.attach("progress")
    del memory
    pool.attach("progress").close()


def test_changes_by_others_are_found_and_adopted(pool: indelible.Pool) -> None:
    work(pool)
    view = pool.attach_view("work")
    progress = view[0]
    change = """
import sys, indelible
pool = indelible.open(sys.argv[1])
pool.create("new", 4096)
with pool.view("work") as view:
    view.set(3, "new")
    view.clear(0)
"""
    subprocess.run(python(change, pool.path), check=True, timeout=120)
    # A slot that is new is found; one that was emptied goes on.
    view[3][0] = 1
    progress[0] = 5
    with pytest.raises(BufferError, match="cannot adopt changes of .*in use: 1"):
        view.adopt()
    assert progress[0] == 5
    progress.release()
    view.adopt()
    with pytest.raises(indelible.NotFound):
        view[0]
    assert [slot.slot for slot in view.slots()] == [1, 2, 3] and view[3][0] == 1
    view.close()


def test_contexts_say_what_is_allowed(pool: indelible.Pool) -> None:
    work(pool)
    with pool.context("staff", 8) as staff:
        assert (staff.name, staff.pool, staff.room, repr(staff)) == ("staff", pool, 8, "<indelible.SecurityContext 'staff', room for 8 entries>")
        assert staff.rules() == indelible.Rules(None, [])
        staff.set_default("r")
        staff.allow("counts", "rw")
        staff.mask("wages", None)
    wages, counts = (next(slot.target for slot in pool.view_slots("work") if pool.stat(slot.target).name == name) for name in ("wages", "counts"))
    assert pool.context_rules("staff") == indelible.Rules("r", [indelible.Rule("allow", counts, "rw"), indelible.Rule("mask", wages, None)])
    assert [pool.rights(name, ["staff"]) for name in ("progress", "counts", "wages")] == ["r", "rw", None]
    with pool.context("ann", 8) as ann:
        ann.delegate("staff", "r")
        ann.allow("progress", "rw")
    assert [pool.rights(name, ["ann"]) for name in ("progress", "counts", "wages")] == ["rw", "r", None]
    assert pool.rights("counts", ["ann", "staff"]) == "rw" and pool.rights("counts", []) == "rw"
    with pool.context("staff") as staff:
        assert staff.clear("wages") == 1 and staff.clear(wages) == 0
        with pytest.raises(indelible.Error, match="circle|itself") as circle:
            staff.delegate("ann", "rw")
        assert circle.value.kind == "Unsuitable"
        for wrong in ("w", "", "x", "none"):
            with pytest.raises(ValueError, match="rights is one of r, rw"):
                staff.allow("wages", wrong)  # type: ignore[arg-type]
        with pytest.raises(indelible.NotFound):
            staff.allow("none", "r")
        # An object of another pool, by its ID.
        staff.allow("id:" + "0123456789abcdef" * 2, "r")
        assert staff.clear("id:" + "0123456789abcdef" * 2) == 1
    assert pool.rights("wages", ["ann"]) == "r"
    with pool.context("small", 1) as small:
        small.allow("counts", "r")
        with pytest.raises(indelible.BadSize):
            small.allow("wages", "r")
    with pytest.raises(indelible.NotFound):
        pool.context("none")
    with pytest.raises(indelible.Error, match="no security context"):
        pool.context("counts")
    with pytest.raises(indelible.Error, match="no security context"):
        pool.context_rules("work")
    with pytest.raises(TypeError, match="several names"):
        pool.rights("wages", "staff")
    with pytest.raises(indelible.Closed, match='security context "small"'):
        small.rules()
    assert repr(small) == "<indelible.SecurityContext 'small', closed>"


def test_accesses_that_no_context_allows_are_denied(pool: indelible.Pool) -> None:
    work(pool)
    with pool.context("staff", 8) as staff:
        staff.set_default("r")
        staff.allow("counts", "rw")
        staff.mask("wages", None)
    view = pool.attach_view("work", ["staff"])
    assert view.contexts == ["staff"]
    view[1][0] = 1
    assert view[0].readonly
    with pytest.raises(indelible.Denied, match='security context.*"staff"') as denied:
        view.buffer(0, "r+")
    assert isinstance(denied.value, PermissionError) and denied.value.object == "progress"
    for use in (lambda: view[2], lambda: view.buffer(2, "r"), lambda: view.bring(2), lambda: view.array(2)):
        with pytest.raises(indelible.Denied, match="loads"):
            use()
    refused = view.slots()[2].refused
    assert isinstance(refused, indelible.Denied) and view.slots()[2].allowed is None and view.slots()[0].allowed == "r"
    # A right that is taken away ends for attached objects with `adopt`.
    memory = view[1]
    with pool.context("staff") as staff:
        staff.allow("counts", "r")
        staff.mask("wages", "rw")
    memory[1] = 2
    assert view[2].readonly
    with pytest.raises(BufferError, match="in use"):
        view.adopt()
    del memory
    view.psync()
    view.adopt()
    with pytest.raises(indelible.Denied):
        view.buffer(1, "r+")
    assert bytes(view[1][:3]) == b"\1\2\0" and view[1].readonly
    view.close()
    with pytest.raises(indelible.NotFound):
        pool.attach_view("work", ["staff", "none"])
    with pytest.raises(TypeError, match="several names"):
        pool.attach_view("work", "staff")


def test_processes_have_rights_of_their_own(pool: indelible.Pool) -> None:
    work(pool)
    for name, rights in (("reads", "r"), ("stores", "rw")):
        with pool.context(name, 1) as context:
            context.set_default("r")
            context.allow("progress", rights)  # type: ignore[arg-type]
    program = """
import sys, indelible
with indelible.open(sys.argv[1]).attach_view("work", [sys.argv[2]]) as view:
    try:
        view.buffer(0, "r+")[0] += 1
        print("stored")
    except indelible.Denied as error:
        assert sys.argv[2] in str(error)
        print("denied", view[0][0])
"""
    said_: list[str] = []
    for name in ("stores", "reads", "stores", "reads"):
        done = subprocess.run(python(program, pool.path, name), capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        said_.append(done.stdout.strip())
    assert said_ == ["stored", "denied 1", "stored", "denied 2"]


def test_a_killed_process_leaves_what_it_psynced(pool: indelible.Pool) -> None:
    work(pool)
    program = """
import sys, indelible
view = indelible.open(sys.argv[1]).attach_view("work")
view[0][0], view[1][0] = 1, 1
view.psync()
view[0][0] = 2
print("stored", flush=True)
sys.stdin.read()
"""
    with child(program, pool.path) as other:
        assert said(other) == "stored"
        other.kill()
        assert other.wait(120) == -signal.SIGKILL
    with pool.attach_view("work") as view:
        assert (view[0][0], view[1][0]) == (1, 1)


FORK = """
import os, sys, warnings, indelible
warnings.simplefilter("ignore", DeprecationWarning)
pool = indelible.open(sys.argv[1])
view, made, context = pool.attach_view("work"), pool.view("other", 2), pool.context("staff", 2)
made.clear(0)
memory = view[0]
child = os.fork()
if child == 0:
    try:
        uses = [
            lambda: view[0], view.slots, view.psync, view.adopt, view.close, view.bring_all, lambda: view.contexts, made.list, made.psync, made.close,
            lambda: made.clear(0), context.rules, context.psync, lambda: context.set_default("r"), lambda: pool.view_slots("work"),
        ]
        for number, use in enumerate(uses):
            try:
                use()
            except indelible.Forked:
                pass
            else:
                raise AssertionError(f"use {number} was not refused")
        repr(view), repr(made), repr(context)
        del view, made, context, memory
        assert len(indelible.open(sys.argv[1]).view_slots("work")) == 3
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
memory[0] = 3
view.psync()
made.psync()
"""


def test_a_fork_opens_it_anew(pool: indelible.Pool, tmp_path: Path) -> None:
    work(pool)
    done = subprocess.run(python(FORK, pool.path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert memoryview(pool.attach("progress", "r"))[0] == 3
