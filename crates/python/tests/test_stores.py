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
from conftest import MIB, not_tested

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


def test_interrupted_at_any_line_a_group_is_whole_or_not_there(pool: indelible.Pool) -> None:
    fs = files.PoolFileSystem(pool, "f")
    module = sys.modules["indelible._keys"].__file__
    for at in itertools.count():
        seen = 0

        def interrupt(frame: Any, event: str, _of: Any, at: int = at) -> Any:
            nonlocal seen
            if frame.f_code.co_filename != module:
                return None
            if event == "line":
                seen += 1
                if seen == at + 1:
                    raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            fs.pipe({f"/a{at}": b"1", f"/b{at}": b"2"})
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        fs.pipe_file(f"/later{at}", b"3")
        # Changes that are not durable go.
        pool.dict("f").revert()
        found = fs.find("/")
        assert f"/later{at}" in found, f"line {at}"
        assert (f"/a{at}" in found) == (f"/b{at}" in found), f"line {at}"
        fs.rm("/", recursive=True)
        if seen <= at:
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
