"""A file system of fsspec in a pool: `PoolFileSystem(pool, "files")`, or by the protocol
`indelible` with the options `pool`, a path or a pool, and `name`.

Each file is a key of a dict. It is there as a whole when it was closed, durably; an exception in
its block writes nothing.

A transaction (`with fs.transaction:`) makes all changes of its block durable by one psync at its
end, or undoes them: files that were opened in it, removed or moved. It is a group of keys: it
belongs to the thread or task that began it, and to tasks started in it. Other threads do not take
part, and may have transactions at the same time; one in another is a part of it. A file belongs to
the transaction in which it was opened, and is closed before that ends.
"""

from __future__ import annotations

import contextvars
import errno
import importlib
from typing import Any

from ._file import Compressed, PoolFile, Text
from ._keys import keys
from ._open import open as open_pool

_fsspec: Any = importlib.import_module("fsspec")
_core: Any = importlib.import_module("fsspec.core")
_transaction: Any = importlib.import_module("fsspec.transaction")


class _Transaction(_transaction.Transaction):  # type: ignore[misc]
    """A group of keys."""

    def __init__(self, fs: PoolFileSystem) -> None:
        super().__init__(fs)
        self._block: Any = None
        self.group: Any = None

    def start(self) -> None:
        if self._block is not None:
            raise RuntimeError("the transaction has begun already (get another by fs.transaction)")
        block = self.fs._keys.group()
        try:
            block.__enter__()
            self.group = self.fs._keys.current()
            self._block = block
        except BaseException:
            block.gen.close()
            raise

    def complete(self, commit: bool = True) -> None:
        """Ends the transaction: makes its changes durable, or undoes them."""
        if self._block is None:
            raise RuntimeError("the transaction has not begun, or has ended")
        try:
            if commit:
                self._block.__exit__(None, None, None)
        finally:
            self._block.gen.close()
            self._block = None

    def __exit__(self, exception: Any, value: Any, traceback: Any) -> None:
        self.complete(exception is None)


class _Move:
    """The paths that a move has read and written."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()

    def note(self, path1: str, path2: str, directory: bool) -> None:
        if path1 != path2 and path1 in self.written:
            raise ValueError(f"cannot move {path1!r}: the same move writes it (move it before)")
        if path2 in self.written and not directory:
            raise FileExistsError(errno.EEXIST, "two files would move to one path", path2)
        self.read.add(path1)
        self.written.add(path2)


# The move that is going on.
_move: contextvars.ContextVar[_Move | None] = contextvars.ContextVar("move", default=None)


class PoolFileSystem(_fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The dict `name` of a pool as a file system. A directory that was made is a key with a slash
    at its end; others are there as long as they have files. One process stores to it; others read.
    """

    protocol = "indelible"
    root_marker = "/"
    cachable = False
    transaction_type = _Transaction

    def __init__(self, pool: Any, name: str = "files", **options: Any) -> None:
        super().__init__(pool, name, **options)
        self.pool = pool if hasattr(pool, "dict") else open_pool(pool)
        self.name = name
        self._keys = keys(self.pool, name)
        self._begun: list[_Transaction] = []

    @property
    def transaction(self) -> _Transaction:
        """A transaction that has not begun: a context manager."""
        return _Transaction(self)

    def start_transaction(self) -> _Transaction:
        """Begins a transaction of this thread or task, which `end_transaction` ends."""
        made = self.transaction
        made.start()
        self._begun.append(made)
        return made

    def end_transaction(self) -> None:
        """Makes the changes of the transaction durable that was started here last."""
        current = self._keys.current()
        for made in self._begun:
            if made.group is current and current is not None:
                self._begun.remove(made)
                made.complete()
                return
        raise RuntimeError("no transaction was started in this thread or task, or in its block")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        parts = str(path).removeprefix("indelible://").split("/")
        # Slashes that follow each other are one.
        return "".join("/" + part for part in parts if part)

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        value = self._keys.get(path) if path else None
        if value is not None:
            return {"name": path, "size": len(value), "type": "file"}
        if path == "" or any(key.startswith(path + "/") for key in self._keys.names()):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        path = self._strip_protocol(path)
        about = self.info(path)
        if about["type"] != "directory":
            return [about] if detail else [path]
        below = path + "/"
        inside = (key[len(below) :] for key in self._keys.names() if key.startswith(below))
        found: dict[str, dict[str, Any]] = {}
        for name, slash, _ in (each.partition("/") for each in inside):
            if slash and name:
                found[name] = {"name": below + name, "size": 0, "type": "directory"}
            elif name and (value := self._keys.get(below + name)) is not None:
                found[name] = {"name": below + name, "size": len(value), "type": "file"}
        return list(found.values()) if detail else sorted(each["name"] for each in found.values())

    def mkdir(self, path: str, create_parents: bool = True, **_options: Any) -> None:
        path = self._strip_protocol(path)
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "there is a file or directory", path)
        parents = self._parents(path)
        for parent in parents:
            if self.isfile(parent):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", parent)
        made = [path, *(parents if create_parents else [])]
        self._keys.change({each + "/": b"" for each in made if each + "/" not in self._keys})

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path)
        except FileExistsError:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        if path == "":
            return
        if self.ls(path):
            raise OSError(errno.ENOTEMPTY, "the directory is not empty", path)
        self._keys.change({}, [path + "/"])

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files and directories, as one step; `maxdepth` leaves what is deeper."""
        found = self.expand_path(self._strip_protocol(path), recursive=recursive, maxdepth=maxdepth)
        there = {each for each in found if self.exists(each)}
        for each in found:
            if each not in there:
                raise FileNotFoundError(errno.ENOENT, "no such file", each)
        with self._keys.group():
            for each in reversed(found):
                if self.isfile(each):
                    self._rm(each)
                elif self.exists(each) and not (maxdepth is not None and self.ls(each)):
                    self.rmdir(each)

    def _rm(self, path: str) -> None:
        path = self._strip_protocol(path)
        if not self.isfile(path):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._keys.change({}, [path])

    def cp_file(self, path1: str, path2: str, **_options: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        move, directory = _move.get(), self.isdir(path1)
        if move is not None:
            move.note(path1, path2, directory)
        if directory:
            self.makedirs(path2, exist_ok=True)
        elif path1 != path2:
            self._expect_place(path2, False)
            self._keys.change({path2: self.cat_file(path1)})

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **_options: Any,
    ) -> None:
        """Moves files and directories, as one step: a list to the paths of a list, or into a
        directory. Files that move onto themselves stay, and files deeper than `maxdepth`.
        """
        pairs, move = self._pairs(path1, path2), _Move()
        with self._keys.group():
            token = _move.set(move)
            try:
                for one, other in pairs:
                    self._copy_all(one, other, recursive, maxdepth)
            finally:
                _move.reset(token)
            for each in sorted(move.read, reverse=True):
                if self.isfile(each) and each not in move.written:
                    self._rm(each)
                elif self.isdir(each) and not self.ls(each):
                    self.rmdir(each)

    def _pairs(self, path1: Any, path2: Any) -> list[tuple[Any, Any]]:
        """Sources and destinations of a move."""
        if isinstance(path2, list):
            olds = path1 if isinstance(path1, list) else self.expand_path(path1)
            if len(olds) != len(path2):
                raise ValueError(f"cannot move {len(olds)} paths to {len(path2)}")
            return list(zip(olds, path2, strict=True))
        if isinstance(path1, list):
            return [(each, self._strip_protocol(path2) + "/") for each in path1]
        return [(path1, path2)]

    def _copy_all(self, path1: Any, path2: Any, recursive: bool, maxdepth: int | None) -> None:
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if old == new:
            return
        if self.isdir(old):
            if (new + "/").startswith(old + "/"):
                raise OSError(errno.EINVAL, "a directory cannot move into itself", old, None, new)
            recursive = True
            if maxdepth is not None:
                # Of fsspec, a single file would become the directory.
                if not str(path1).endswith("/") and (str(path2).endswith("/") or self.isdir(new)):
                    new += "/" + old.rpartition("/")[2]
                path1 = self.find(old, maxdepth)
                path2 = [new + each.removeprefix(old) for each in path1]
        self.copy(path1, path2, recursive=recursive, maxdepth=maxdepth, on_error="raise")

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_options: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        value = self._keys.get(path) if path else None
        if value is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return value[start:end]

    def pipe(self, path: Any, value: Any = None, **options: Any) -> None:
        """Writes files, as one step."""
        with self._keys.group():
            super().pipe(path, value, **options)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_options: Any) -> None:
        path = self._strip_protocol(path)
        self._write(path, bytes(value), mode == "create")

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        cache_options: Any = None,
        compression: str | None = None,
        **options: Any,
    ) -> Any:
        """Opens a file; see fsspec. An exception in its block writes nothing, of texts and
        compressed files neither.
        """
        of_text = {
            name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options
        }
        binary = mode if "b" in mode else mode.replace("t", "") + "b"
        file = super().open(path, binary, block_size, cache_options, **options)
        compression = _core.get_compression(path, compression)
        if compression is not None:
            file = Compressed(file, compression)
        return file if "b" in mode else Text(file, **of_text)

    def _open(
        self, path: str, mode: str = "rb", autocommit: bool = True, **_options: Any
    ) -> PoolFile:
        path = self._strip_protocol(path)
        if mode == "rb":
            return PoolFile(self, path, mode, self.cat_file(path), autocommit)
        if mode not in ("wb", "w+b", "xb", "x+b", "ab", "a+b", "r+b"):
            raise ValueError(f"a file has no mode {mode!r}")
        self._expect_place(path, "x" in mode)
        kept = b""
        if "r" in mode or ("a" in mode and self.isfile(path)):
            kept = self.cat_file(path)
        return PoolFile(self, path, mode, kept, autocommit)

    def _write(self, path: str, content: bytes, new: bool) -> None:
        self._expect_place(path, new)
        if new:
            self._keys.create(path, content)
        else:
            self._keys.change({path: content})

    def _expect_place(self, path: str, new: bool) -> None:
        if new and self.exists(path):
            raise FileExistsError(errno.EEXIST, "there is a file", path)
        if self.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "a directory", path)
        for parent in self._parents(path):
            if self.isfile(parent):
                raise FileExistsError(errno.EEXIST, "not a directory", parent)

    def _parents(self, path: str) -> list[str]:
        parts = path.split("/")
        return ["/".join(parts[:count]) for count in range(2, len(parts))]


_fsspec.register_implementation("indelible", PoolFileSystem, clobber=True)
