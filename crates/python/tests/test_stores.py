"""Stores of zarr and files of fsspec in a pool: the tests that these libraries have for all stores and
file systems, groups, and processes that are killed.
"""

from __future__ import annotations

import errno
import gc
import importlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
import warnings
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, interrupted_at, not_tested

try:
    zarr: Any = importlib.import_module("zarr")
    testing: Any = importlib.import_module("zarr.testing.store")
    buffer: Any = importlib.import_module("zarr.core.buffer")
    fsspec: Any = importlib.import_module("fsspec")
    abstract: Any = importlib.import_module("fsspec.tests.abstract")
    stores: Any = importlib.import_module("indelible.zarr")
    files: Any = importlib.import_module("indelible.fsspec")
except ImportError as missing:
    not_tested(f"stores of zarr and fsspec: {missing}")
    pytest.skip("no zarr, or no fsspec", allow_module_level=True)


class TestZarr(testing.StoreTests):  # type: ignore[misc]
    """The tests of zarr for every store."""

    store_cls = stores.PoolStore
    buffer_cls = buffer.cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, pool: indelible.Pool) -> dict[str, Any]:
        return {"pool": pool, "name": "store"}

    @pytest.fixture
    def store(self, open_kwargs: dict[str, Any]) -> Any:
        made = self.store_cls(**open_kwargs)
        made._is_open = True
        return made

    @pytest.fixture
    def store_not_open(self, store_kwargs: dict[str, Any]) -> Any:
        return self.store_cls(**store_kwargs)

    async def set(self, store: Any, key: str, value: Any) -> None:
        store._keys._writing()[key] = value.to_bytes()

    async def get(self, store: Any, key: str) -> Any:
        return self.buffer_cls.from_bytes(store._keys._writing()[key])

    def test_store_repr(self, store: Any) -> None:
        assert "store" in str(store) and "PoolStore" in repr(store)

    def test_store_supports_writes(self, store: Any) -> None:
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_listing(self, store: Any) -> None:
        assert store.supports_listing


class _Files:
    @pytest.fixture
    def fs(self, pool: indelible.Pool) -> Any:
        return files.PoolFileSystem(pool, "files")

    @pytest.fixture
    def fs_path(self) -> str:
        return ""

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(map(str, parts))


class TestCopy(_Files, abstract.AbstractCopyTests, abstract.AbstractFixtures):  # type: ignore[misc]
    pass


class TestGet(_Files, abstract.AbstractGetTests, abstract.AbstractFixtures):  # type: ignore[misc]
    pass


class TestPut(_Files, abstract.AbstractPutTests, abstract.AbstractFixtures):  # type: ignore[misc]
    pass


class TestOpen(_Files, abstract.AbstractOpenTests, abstract.AbstractFixtures):  # type: ignore[misc]
    pass


class TestPipe(_Files, abstract.AbstractPipeTests, abstract.AbstractFixtures):  # type: ignore[misc]
    pass


def durable(pool: indelible.Pool, name: str) -> dict[str, bytes]:
    """The keys of a dict as another process finds them."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # zarr has a thread, which the child does without.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            found = dict(indelible.open(pool.path).dict(name, "r"))
            with open(writing, "wb") as out:
                out.write(pickle.dumps(found))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as back:
        data = back.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return dict(pickle.loads(data))


def test_a_group_of_zarr_is_durable_as_a_whole(pool: indelible.Pool) -> None:
    store = stores.PoolStore(pool, "climate")
    data = np.arange(10_000, dtype="f4").reshape(100, 100)
    with store.group():
        root = zarr.open_group(store, mode="w")
        root.create_array("t", data=data, chunks=(50, 50))
        assert (zarr.open_group(store)["t"][:] == data).all()
        assert durable(pool, "climate") == {}
    assert (zarr.open_group(store, mode="r")["t"][:] == data).all()
    before = durable(pool, "climate")
    assert len(before) == 6
    with pytest.raises(KeyboardInterrupt), store.group():
        zarr.open_group(store)["t"][:] = 7
        raise KeyboardInterrupt
    assert (zarr.open_group(store, mode="r")["t"][:] == data).all() and durable(pool, "climate") == before
    zarr.open_group(store)["t"][:50, :50] = -1
    assert sum(durable(pool, "climate")[key] != value for key, value in before.items()) == 1
    xarray = pytest.importorskip("xarray")
    held = xarray.Dataset({"a": ("x", np.arange(5.0))})
    held.to_zarr(stores.PoolStore(pool, "x"), consolidated=False)
    assert xarray.open_zarr(stores.PoolStore(pool, "x"), consolidated=False).load().equals(held)


KILLED = """
import os, sys, numpy as np, zarr, indelible
from indelible import _keys
from indelible.zarr import PoolStore
changes, at, change = 0, int(sys.argv[2]), _keys.Keys.change
def dying(self, *given):
    global changes
    if changes == at:
        os.kill(os.getpid(), 9)
    changes += 1
    change(self, *given)
_keys.Keys.change = dying
store = PoolStore(indelible.open(sys.argv[1]), "climate")
with store.group():
    zarr.open_group(store)["t"][:] = 2
"""


def test_a_group_that_is_killed_never_happened(pool: indelible.Pool) -> None:
    store = stores.PoolStore(pool, "climate")
    with store.group():
        zarr.open_group(store).create_array("t", data=np.ones((20, 20)), chunks=(10, 10))
    store.close()
    died = subprocess.run([sys.executable, "-c", KILLED, os.fspath(pool.path), "2"], capture_output=True)
    assert died.returncode == -9, died.stderr
    assert (zarr.open_group(store, mode="r")["t"][:] == 1).all()


def test_a_reader_follows_the_process_that_stores(pool: indelible.Pool) -> None:
    store = stores.PoolStore(pool, "climate")
    zarr.open_group(store).create_array("t", data=np.ones(20), chunks=(10,))
    code = """
import sys, zarr, indelible
from indelible.zarr import PoolStore
store = PoolStore(indelible.open(sys.argv[1]), "climate", read_only=True)
for line in sys.stdin:
    print(zarr.open_group(store, mode="r")["t"][:].sum(), flush=True)
"""
    reader = subprocess.Popen([sys.executable, "-c", code, os.fspath(pool.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with reader:
        assert reader.stdin is not None and reader.stdout is not None
        for value in (1, 2):
            zarr.open_group(store)["t"][:] = value
            reader.stdin.write("look\n")
            reader.stdin.flush()
            assert float(reader.stdout.readline()) == 20 * value
        reader.stdin.close()


def test_files_are_there_as_a_whole_or_not_at_all(pool: indelible.Pool) -> None:
    fs = fsspec.filesystem("indelible", pool=os.fspath(pool.path), name="files")
    fs = files.PoolFileSystem(pool, "files")
    with fs.open("a/b.txt", "w") as file:
        file.write("hello")
        assert not fs.exists("a/b.txt")
    assert durable(pool, "files") == {"/a/b.txt": b"hello"}
    with pytest.raises(KeyboardInterrupt), fs.open("a/b.txt", "wb") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert fs.cat("a/b.txt") == b"hello" and fs.ls("a", detail=False) == ["/a/b.txt"]
    with fs.transaction:
        for name in "xyz":
            with fs.open(f"a/{name}", "wb") as file:
                file.write(name.encode())
        assert durable(pool, "files").keys() == {"/a/b.txt"}
    assert durable(pool, "files").keys() == {"/a/b.txt", "/a/x", "/a/y", "/a/z"}
    with pytest.raises(ValueError), fs.transaction:
        with fs.open("a/x", "wb") as file:
            file.write(b"other")
        raise ValueError
    assert fs.cat("a/x") == b"x"
    with fs.open("a/x", "ab") as file:
        file.write(b"more")
    assert fs.cat_file("a/x", 1, 4) == b"mor" and fs.size("a/x") == 5
    fs.mv("a", "c", recursive=True)
    assert sorted(fs.find("c")) == ["/c/b.txt", "/c/x", "/c/y", "/c/z"] and not fs.exists("a")
    fs.mkdir("empty")
    with pytest.raises(FileExistsError):
        fs.mkdir("empty")
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir("c")
    with pytest.raises(NotADirectoryError):
        fs.mkdir("c/x/y")
    fs.rmdir("empty")
    assert pickle.loads(pickle.dumps(fs)).cat("c/x") == b"xmore"
    fs.rm("c", recursive=True)
    assert fs.ls("", detail=False) == []
    with pytest.raises(FileNotFoundError):
        fs.rm("c")
    assert pool.info()["free"] > MIB


def bytes_of(text: bytes) -> Any:
    return buffer.default_buffer_prototype().buffer.from_bytes(text)


def in_thread(body: Any) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def test_a_group_has_nothing_of_other_threads(pool: indelible.Pool) -> None:
    store = stores.PoolStore(pool, "z")
    with pytest.raises(ValueError, match="^no$"), store.group():
        store.set_sync("own", bytes_of(b"1"))
        in_thread(lambda: store.set_sync("others", bytes_of(b"2")))
        assert durable(pool, "z") == {"others": b"2"}
        raise ValueError("no")
    assert durable(pool, "z") == {"others": b"2"}
    with store.group():
        store.set_sync("before", bytes_of(b"3"))
        with pytest.raises(ValueError, match="^no$"), store.group():
            store.set_sync("inner", bytes_of(b"4"))
            store.delete_sync("before")
            assert store.get_sync("before") is None
            raise ValueError("no")
        assert store.get_sync("inner") is None and store.get_sync("before").to_bytes() == b"3"

        def failing() -> None:
            with pytest.raises(ValueError, match="^no$"), store.group():
                raise ValueError("no")

        in_thread(failing)
    assert durable(pool, "z") == {"others": b"2", "before": b"3"}


def test_a_store_that_is_closed_in_a_group_takes_nothing_from_it(pool: indelible.Pool) -> None:
    store = stores.PoolStore(pool, "z")
    own = pool.dict("z")
    with store.group():
        store.set_sync("before", bytes_of(b"1"))
        with stores.PoolStore(pool, "z", read_only=True) as other:
            assert other.get_sync("before").to_bytes() == b"1"
        store.set_sync("after", bytes_of(b"2"))
    assert not own.closed and durable(pool, "z") == {"before": b"1", "after": b"2"}


def write_both(fs: Any, at: int) -> None:
    with fs.transaction, fs.open(f"/a{at}", "wb") as file:
        file.write(b"1")
        fs.pipe_file(f"/b{at}", b"2")


@pytest.mark.parametrize("write", [lambda fs, at: fs.pipe({f"/a{at}": b"1", f"/b{at}": b"2"}), write_both])
def test_interrupted_at_any_line_a_group_is_whole_or_not_there(pool: indelible.Pool, write: Any) -> None:
    fs = files.PoolFileSystem(pool, "f")
    for at in itertools.count():
        reached = interrupted_at(["_keys", "fsspec"], at, lambda at=at: write(fs, at))
        fs.pipe_file(f"/later{at}", b"3")
        # Changes that are not durable go.
        pool.dict("f").revert()
        found = fs.find("/")
        assert f"/later{at}" in found, f"line {at}"
        assert (f"/a{at}" in found) == (f"/b{at}" in found), f"line {at}"
        fs.rm("/", recursive=True)
        if not reached:
            assert at > 20
            break


def test_files_that_move_onto_themselves_stay(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe({"/d/a": b"1", "/d/e/b": b"2", "/c": b"3"})
    before = {path: fs.cat_file(path) for path in fs.find("/")}
    for one, other in [
        ("/d/a", "d/a"),
        ("/d/a", "indelible:///d/a"),
        ("/d/a", "/d/"),
        ("/d/a", "/d"),
        ("/d/*", "/d/"),
        ("/d", "/d/"),
    ]:
        fs.mv(one, other, recursive=True)
        assert {path: fs.cat_file(path) for path in fs.find("/")} == before, (one, other)
    with pytest.raises(OSError) as refused:
        fs.mv("/d", "/d/e", recursive=True)
    assert refused.value.errno == errno.EINVAL
    with pytest.raises(IsADirectoryError):
        fs.cp_file("/c", "/d")
    with pytest.raises(FileExistsError):
        fs.cp_file("/c", "/c/below")
    fs.mv("/d", "/new", recursive=True)
    assert fs.find("/") == ["/c", "/new/a", "/new/e/b"] and not fs.exists("/d")
    fs.mkdir("/empty")
    fs.mv("/empty", "/moved")
    assert fs.isdir("/moved") and not fs.exists("/empty")


def test_what_two_handles_append_is_all_there(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe_file("/log", b"0\n")
    one, other = fs.open("/log", "ab"), fs.open("/log", "a+b")
    one.write(b"1\n")
    other.seek(0)
    assert other.read() == b"0\n"
    other.seek(0)
    other.write(b"2\n")
    one.close()
    other.close()
    assert fs.cat_file("/log") == b"0\n1\n2\n"
    with fs.open("/log", "ab") as cut:
        cut.truncate(2)
        cut.write(b"3\n")
    assert fs.cat_file("/log") == b"0\n3\n"


def test_a_transaction_has_each_file_that_was_opened_in_it(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe_file("/a", b"old")
    with fs.transaction:
        with fs.open("/a", "r+b") as file:
            file.write(b"new")
        assert durable(pool, "f") == {"/a": b"old"}
    assert durable(pool, "f") == {"/a": b"new"}
    with pytest.raises(ValueError, match="^no$"), fs.transaction:
        with fs.open("/a", "r+b") as file:
            file.write(b"other")
        raise ValueError("no")
    assert durable(pool, "f") == {"/a": b"new"}


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz", "infer"])
def test_compressed_files_are_written_when_they_are_closed(pool: indelible.Pool, kind: str) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with fs.open("/a.gz", "wb", compression=kind) as file:
        file.write(b"text" * 100)
    with fs.open("/b.gz", "wt", compression=kind) as file:
        file.write("text" * 100)
    for path in ("/a.gz", "/b.gz"):
        assert len(fs.cat_file(path)) < 100
        assert fs.open(path, "rb", compression=kind).read() == b"text" * 100
        with pytest.raises(ValueError, match="^no$"), fs.open(path, "wb", compression=kind) as file:
            file.write(b"half")
            raise ValueError("no")
        assert fs.open(path, "r", compression=kind).read() == "text" * 100


def test_a_group_takes_any_number_of_appends(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe_file("/log", b"0")
    with fs._keys.group():
        for _ in range(3_000):
            fs._keys.append("/log", b"1")
    assert fs.cat_file("/log") == b"0" + b"1" * 3_000


def test_an_exception_writes_nothing_of_a_text(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with fs.open("/a", "w", encoding="utf-8") as file:
        file.write("gr\u00fcn")
    with pytest.raises(ValueError, match="^no$"), fs.open("/a", "w") as file:
        file.write("half")
        raise ValueError("no")
    left = fs.open("/a", "w")
    left.write("half")
    del left
    gc.collect()
    assert fs.cat_file("/a") == "gr\u00fcn".encode() and fs.open("/a", "rt", encoding="utf-8").read() == "gr\u00fcn"


def contents(fs: Any) -> dict[str, bytes]:
    return {path: fs.cat_file(path) for path in fs.find("/")}


def test_a_transaction_is_that_of_its_thread(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    opened = []
    with pytest.raises(ValueError, match="^no$"), fs.transaction:
        fs.pipe_file("/own", b"1")

        def others() -> None:
            with fs.open("/others", "wb") as file:
                file.write(b"2")
            opened.append(fs.open("/later", "wb"))
            opened[0].write(b"3")

        in_thread(others)
        assert durable(pool, "f") == {"/others": b"2"}
        raise ValueError("no")
    opened[0].close()
    assert contents(fs) == durable(pool, "f") == {"/others": b"2", "/later": b"3"}


def test_a_failed_transaction_undoes_each_change(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe({"/a": b"1", "/b": b"2", "/c": b"3", "/d/e": b"4"})
    before = durable(pool, "f")
    with pytest.raises(ValueError, match="^no$"), fs.transaction:
        fs.rm("/a")
        fs.rm("/d", recursive=True)
        fs.mv("/b", "/moved")
        fs.cp_file("/c", "/copy")
        fs.pipe({"/c": b"5", "/new": b"6"})
        fs.mkdir("/empty")
        with fs.open("/written", "w") as file:
            file.write("7")
        assert contents(fs) == {
            "/c": b"5", "/copy": b"3", "/moved": b"2", "/new": b"6", "/written": b"7",
        }  # fmt: skip
        assert durable(pool, "f") == before
        raise ValueError("no")
    assert durable(pool, "f") == before == contents(fs) and not fs.exists("/empty")


def test_transactions_at_the_same_time_lose_nothing(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    for fails in (False, True):

        def other(fails: bool = fails) -> None:
            with fs.transaction:
                with fs.open(f"/other {fails}", "wb") as file:
                    file.write(b"1")

        try:
            with fs.transaction:
                with fs.open(f"/one {fails}", "wb") as file:
                    file.write(b"2")
                in_thread(other)
                with fs.open(f"/two {fails}", "wb") as file:
                    file.write(b"3")
                if fails:
                    raise ValueError
        except ValueError:
            assert fails
    expected = {"/one False": b"2", "/two False": b"3", "/other False": b"1", "/other True": b"1"}
    assert durable(pool, "f") == expected


def test_a_transaction_in_another_is_a_part_of_it(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with fs.transaction:
        fs.pipe_file("/a", b"1")
        with fs.transaction:
            fs.pipe_file("/b", b"2")
        with pytest.raises(ValueError, match="^no$"), fs.transaction:
            fs.pipe_file("/a", b"3")
            fs.pipe_file("/c", b"4")
            raise ValueError("no")
        assert contents(fs) == {"/a": b"1", "/b": b"2"} and durable(pool, "f") == {}
    assert durable(pool, "f") == {"/a": b"1", "/b": b"2"}
    one = fs.transaction
    with one:
        with pytest.raises(RuntimeError, match="has begun already"), one:
            pass
    with pytest.raises(RuntimeError, match="has ended"):
        one.complete()


def test_a_transaction_without_a_block_is_ended_where_it_began(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with pytest.raises(RuntimeError, match="no transaction was started"):
        fs.end_transaction()
    fs.start_transaction()
    fs.pipe_file("/a", b"1")

    def end() -> None:
        with pytest.raises(RuntimeError, match="no transaction was started"):
            fs.end_transaction()

    in_thread(end)
    assert durable(pool, "f") == {}
    fs.end_transaction()
    assert durable(pool, "f") == {"/a": b"1"}
    fs.pipe_file("/b", b"2")
    assert durable(pool, "f") == {"/a": b"1", "/b": b"2"}
    fs.start_transaction().complete(commit=False)


def test_a_file_belongs_to_the_transaction_it_was_opened_in(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    before = fs.open("/before", "wb")
    before.write(b"1")
    with pytest.raises(ValueError, match="^no$"), fs.transaction:
        before.close()
        within = fs.open("/within", "wb")
        raise ValueError("no")
    with pytest.raises(ValueError, match="'/within'.*has ended"):
        within.close()
    with fs.transaction:
        outer = fs.open("/outer", "wb")
        thread = fs.open("/thread", "wb")
        in_thread(thread.close)
        with pytest.raises(ValueError, match="^no$"), fs.transaction:
            outer.close()
            raise ValueError("no")
        assert durable(pool, "f") == {"/before": b"1"}
    assert durable(pool, "f").keys() == {"/before", "/outer", "/thread"}


def test_files_that_are_committed_by_hand(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with fs.transaction:
        for name in ("left", "gone", "committed"):
            with fs.open(f"/{name}", "wb", autocommit=False) as file:
                file.write(b"1")
            assert not fs.exists(f"/{name}")
            if name == "gone":
                file.discard()
        file.commit()
        assert contents(fs) == {"/committed": b"1"} and durable(pool, "f") == {}
    assert durable(pool, "f").keys() == {"/committed", "/left"}
    alone = fs.open("/alone", "wb", autocommit=False)
    alone.close()
    assert not fs.exists("/alone")
    alone.commit()
    assert fs.exists("/alone")


@pytest.mark.parametrize(
    ("mode", "compression"),
    [("r+b", None), *itertools.product(["wb", "w", "ab", "xb"], [None, "gzip"])],
)
def test_an_exception_writes_nothing_of_what_fsspec_opens(
    pool: indelible.Pool, mode: str, compression: str | None
) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe_file("/beside" if "x" in mode else "/a", b"old")
    before = durable(pool, "f")
    content: Any = b"half" if "b" in mode else "half"
    opened = fsspec.open("indelible:///a", mode, compression=compression, pool=pool, name="f")
    with pytest.raises(ValueError, match="^no$"), opened as file:
        file.write(content)
        raise ValueError("no")
    assert durable(pool, "f") == before
    with pytest.raises(ValueError, match="^no$"):
        with fsspec.open_files(["indelible:///b", "indelible:///c"], "wb", pool=pool, name="f") as many:
            many[0].write(b"half")
            raise ValueError("no")
    assert durable(pool, "f") == before
    try:
        raise KeyError
    except KeyError:
        with opened as file:
            file.write(content)
    assert durable(pool, "f") != before


def test_a_file_of_fsspec_is_written_when_an_exception_was_handled(pool: indelible.Pool) -> None:
    opened = fsspec.open("indelible:///a", "w", pool=pool, name="f")
    file = opened.open()
    try:
        raise KeyError
    except KeyError:
        file.write("handled")
        opened.close()
    assert durable(pool, "f") == {"/a": b"handled"}


def test_one_of_two_handles_makes_a_new_file(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    one, other = fs.open("/a", "xb"), fs.open("/a", "x+b")
    one.write(b"1")
    other.write(b"2")
    other.close()
    with pytest.raises(FileExistsError):
        one.close()
    assert durable(pool, "f") == {"/a": b"2"}
    with pytest.raises(FileExistsError):
        fs.pipe_file("/a", b"3", mode="create")
    with pytest.raises(FileExistsError, match="another writer"), fs.transaction:
        fs.pipe_file("/beside", b"4")
        with fs.open("/b", "xb") as file:
            file.write(b"5")
        with pytest.raises(FileExistsError):
            fs.open("/b", "xb")
        in_thread(lambda: fs.pipe_file("/b", b"6"))
        assert fs.cat_file("/b") == b"5" and fs.find("/") == ["/a", "/b", "/beside"]
    assert durable(pool, "f") == {"/a": b"2", "/b": b"6"}
    below, above = fs.open("/c/d", "wb"), fs.open("/c", "wb")
    below.close()
    with pytest.raises(IsADirectoryError):
        above.close()
    with fs.transaction:
        fs.rm("/a")
        with fs.open("/a", "xb") as file:
            file.write(b"7")
    assert durable(pool, "f") == {"/a": b"7", "/b": b"6", "/c/d": b""}


def test_lists_of_paths_move_as_one_step(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe({"/a": b"1", "/b": b"2", "/d/e": b"3", "/d/a": b"4"})
    before = contents(fs)
    refused: list[tuple[Any, Any, type[Exception]]] = [
        (["/a", "/b"], ["/x"], ValueError),
        (["/a", "/d/a"], "/x", FileExistsError),
        (["/a", "/b"], ["/b", "/c"], ValueError),
        (["/a", "/none"], "/x", FileNotFoundError),
        (["/a", "/d"], ["/x", "/d/below"], OSError),
        ("/d/*", ["/x"], ValueError),
    ]
    for one, other, error in refused:
        with pytest.raises(error):
            fs.mv(one, other)
        assert contents(fs) == before, (one, other)
    fs.mv(["/a", "/b"], ["/x", "/b"])
    assert contents(fs) == {"/b": b"2", "/d/a": b"4", "/d/e": b"3", "/x": b"1"}
    fs.mv(["/b", "/x"], ["/y", "/b"])
    assert contents(fs) == {"/b": b"1", "/d/a": b"4", "/d/e": b"3", "/y": b"2"}
    fs.mv(["/b", "/d"], "/into")
    assert contents(fs) == {"/into/b": b"1", "/into/d/a": b"4", "/into/d/e": b"3", "/y": b"2"}
    fs.mv("/into/d/*", ["/a", "/e"])
    assert contents(fs) == {"/a": b"4", "/e": b"3", "/into/b": b"1", "/y": b"2"}


def test_what_is_deeper_than_asked_for_stays(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    fs.pipe({"/d/a": b"1", "/d/e/b": b"22", "/d/e/g/c": b"333"})
    fs.mkdir("/d/empty")
    assert fs.find("/d", maxdepth=1) == ["/d/a"] and fs.find("/d", maxdepth=2) == ["/d/a", "/d/e/b"]
    assert fs.find("/d", maxdepth=1, withdirs=True) == ["/d", "/d/a", "/d/e", "/d/empty"]
    assert list(fs.walk("/d", maxdepth=1)) == [("/d", ["e", "empty"], ["a"])]
    assert fs.du("/d", maxdepth=2) == 3 and fs.du("/d") == 6
    for each in (lambda: fs.find("/d", maxdepth=0), lambda: list(fs.walk("/d", maxdepth=0))):
        with pytest.raises(ValueError, match="maxdepth"):
            each()
    fs.mv("/d", "/n", recursive=True, maxdepth=1)
    assert fs.find("/") == ["/d/e/b", "/d/e/g/c", "/n/a"] and fs.isdir("/d/empty")
    fs.mv("/d/*", "/n/")
    assert fs.find("/") == ["/d/e/b", "/d/e/g/c", "/n/a"] and fs.isdir("/d/empty")
    fs.rm("/d", recursive=True, maxdepth=2)
    assert fs.find("/") == ["/d/e/g/c", "/n/a"]


def test_slashes_that_follow_each_other_are_one(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    with fs.open("/q//b", "wb") as file:
        file.write(b"1")
    fs.pipe_file("indelible:////q///c//", b"2")
    fs.mkdir("q//d")
    assert fs.ls("/q", detail=False) == ["/q/b", "/q/c", "/q/d"] == fs.ls("//q//", detail=False)
    assert fs.cat_file("/q/b") == fs.cat_file("//q//b") == b"1" and fs.find("//q") == ["/q/b", "/q/c"]
    assert fs.glob("/q//*") == ["/q/b", "/q/c", "/q/d"] and fs.info("/q//c")["name"] == "/q/c"
    fs.mv("/q//b", "/q//e")
    fs.cp_file("/q//e", "//f")
    fs.rm(["/q//c", "/q//d"])
    assert durable(pool, "f") == {"/q/": b"", "/q/e": b"1", "/f": b"1"}
