"""A file system of fsspec in a pool: `PoolFileSystem(pool, "files")`, or by the protocol
`indelible` with the options `pool`, a path or a pool, and `name`.

Each file is a key of a dict. It is there as a whole when it was closed, durably; in a transaction
(`with fs.transaction:`) all files are, by one psync. Files that `fsspec.open` opens are
written when they are closed, also by an exception.
"""

from __future__ import annotations

import contextvars
import errno
import importlib
import io
from typing import Any

from ._keys import keys
from ._open import open as open_pool

_fsspec: Any = importlib.import_module("fsspec")
_compression: Any = importlib.import_module("fsspec.compression")
_core: Any = importlib.import_module("fsspec.core")
_transaction: Any = importlib.import_module("fsspec.transaction")


class _Transaction(_transaction.Transaction):  # type: ignore[misc]
    """Files of a transaction: durable together."""

    def complete(self, commit: bool = True) -> None:
        with self.fs._keys.group():
            super().complete(commit)


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

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = str(path).removeprefix("indelible://").strip("/")
        return "/" + path if path else ""

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
        found = [about]
        if about["type"] == "directory":
            below = path + "/"
            inside = (key[len(below) :] for key in self._keys.names() if key.startswith(below))
            names = {part.split("/")[0]: None for part in inside if part}
            found = [self.info(below + name) for name in names]
        return found if detail else sorted(each["name"] for each in found)

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
        """Removes files and directories, as one step."""
        found = self.expand_path(self._strip_protocol(path), recursive=recursive, maxdepth=maxdepth)
        there = {each for each in found if self.exists(each)}
        for each in found:
            if each not in there:
                raise FileNotFoundError(errno.ENOENT, "no such file", each)
        with self._keys.group():
            for each in reversed(found):
                if self.isfile(each):
                    self._rm(each)
                elif self.exists(each):
                    self.rmdir(each)

    def _rm(self, path: str) -> None:
        path = self._strip_protocol(path)
        if not self.isfile(path):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._keys.change({}, [path])

    def cp_file(self, path1: str, path2: str, **_options: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        written = _written.get()
        if written is not None:
            written.add(path2)
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
        elif path1 != path2:
            self._expect_place(path2, False)
            self._keys.change({path2: self.cat_file(path1)})

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        """Moves files and directories, as one step. What is there already stays."""
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if old == new:
            return
        if self.isdir(old):
            if (new + "/").startswith(old + "/"):
                raise OSError(errno.EINVAL, "a directory cannot move into itself", old, None, new)
            options["recursive"] = True
        with self._keys.group():
            written: set[str] = set()
            token = _written.set(written)
            try:
                self.copy(path1, path2, on_error="raise", **options)
            finally:
                _written.reset(token)
            for each in reversed(self.expand_path(old, **options)):
                if self.isfile(each) and each not in written:
                    self._rm(each)
                elif self.isdir(each) and not any(kept.startswith(each + "/") for kept in written):
                    self.rmdir(each)

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
        self._expect_place(path, mode == "create")
        self._keys.change({path: bytes(value)})

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
            file = _Compressed(file, compression)
        return file if "b" in mode else _Text(file, **of_text)

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
        file = PoolFile(self, path, mode, kept, autocommit)
        if not autocommit and "r" in mode:
            # Those of other modes `open` gives to the transaction.
            self.transaction.files.append(file)
        return file

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


# Paths that a move has written.
_written: contextvars.ContextVar[set[str] | None] = contextvars.ContextVar("written", default=None)


class PoolFile(io.BytesIO):
    """A file in memory; written as a whole when it is closed, and not at all after an exception. A file
    opened to append adds its new bytes to the present contents.
    """

    def __init__(self, fs: PoolFileSystem, path: str, mode: str, kept: bytes, commits: bool) -> None:
        super().__init__(kept)
        self.fs, self.path, self._mode = fs, path, mode
        self._commits, self._kept = commits and mode != "rb", b""
        self._appends = "a" in mode
        # Length of the contents at the open; None: they were truncated since.
        self._before = len(kept) if self._appends else None
        if self._appends:
            self.seek(0, io.SEEK_END)

    @property
    def size(self) -> int:
        return len(self.getbuffer())

    @property
    def mode(self) -> str:
        return self._mode

    def writable(self) -> bool:
        return self.mode != "rb"

    def write(self, data: Any, /) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("the file was opened for reading")
        if self._appends:
            self.seek(0, io.SEEK_END)
        return super().write(data)

    def truncate(self, size: int | None = None, /) -> int:
        left = super().truncate(size)
        if self._before is not None and left < self._before:
            self._before = None
        return left

    def close(self) -> None:
        if not self.closed:
            self._kept = self.getvalue()
            super().close()
            if self._commits:
                self.commit()

    def commit(self) -> None:
        """Makes the bytes those of the file, durably."""
        content = self._kept if self.closed else self.getvalue()
        if self._before is None:
            self.fs._keys.change({self.path: content})
        else:
            self.fs._keys.append(self.path, content[self._before :])
            self._before = len(content)

    def discard(self) -> None:
        """Forgets what was written."""
        self._commits = False

    def __exit__(self, exception: Any, value: Any, traceback: Any) -> None:
        if exception is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # A file that was never closed was not written.
        self.discard()


class _Compressed:
    """A file through a compressor, which does not close what it writes to."""

    def __init__(self, file: PoolFile, kind: str) -> None:
        self._file = file
        self._through = _compression.compr[kind](file, mode=file.mode[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._through, name)

    def __iter__(self) -> Any:
        return iter(self._through)

    def __enter__(self) -> _Compressed:
        return self

    def __exit__(self, exception: Any, value: Any, traceback: Any) -> None:
        if exception is not None:
            self.discard()
        self.close()

    def close(self) -> None:
        self._through.close()
        self._file.close()

    def discard(self) -> None:
        self._file.discard()


class _Text(io.TextIOWrapper):
    """A file's text."""

    def __exit__(self, exception: Any, value: Any, traceback: Any) -> None:
        if exception is not None:
            self._discard()
        self.close()

    def __del__(self) -> None:
        # A file that was never closed was not written.
        if not self.closed:
            self._discard()
            self.close()

    def _discard(self) -> None:
        self.buffer.discard()  # type: ignore[attr-defined]


_fsspec.register_implementation("indelible", PoolFileSystem, clobber=True)
