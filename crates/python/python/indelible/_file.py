"""Files of fsspec in memory, which are written as a whole when they are closed."""

from __future__ import annotations

import importlib
import io
import sys
from types import FrameType
from typing import Any

_compression: Any = importlib.import_module("fsspec.compression")
_core: Any = importlib.import_module("fsspec.core")


class PoolFile(io.BytesIO):
    """A file in memory; written as a whole when it is closed, and not at all after an exception. A
    file opened to append adds its new bytes to the present contents.
    """

    def __init__(self, fs: Any, path: str, mode: str, kept: bytes, commits: bool) -> None:
        super().__init__(kept)
        self.fs, self.path, self._mode = fs, path, mode
        self._commits, self._kept = commits and mode != "rb", b""
        self._discarded = False
        self._appends, self._new = "a" in mode, "x" in mode
        self._group = fs._keys.current()
        if not commits and mode != "rb" and self._group is not None:
            self._group.at_end.append(self.commit)
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
            if self._commits and not _is_left_by_exception():
                self.commit()

    def commit(self) -> None:
        """Makes the bytes those of the file, durably, or at the end of the transaction in which it
        was opened.
        """
        if self._discarded:
            return
        content = self._kept if self.closed else self.getvalue()
        what = f"the file {self.path!r}"
        self.fs._keys.within(self._group, what, lambda: self._write(content))

    def _write(self, content: bytes) -> None:
        if self._before is None:
            self.fs._write(self.path, content, self._new)
            self._new = False
        else:
            self.fs._expect_place(self.path, False)
            self.fs._keys.append(self.path, content[self._before :])
            self._before = len(content)

    def discard(self) -> None:
        """Forgets what was written."""
        self._commits, self._discarded = False, True

    def __exit__(self, exception: Any, value: Any, traceback: Any) -> None:
        if exception is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # A file that was never closed was not written.
        self.discard()


def _is_left_by_exception() -> bool:
    """Whether an exception ends a block of `fsspec.open`, which does not tell its files."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _exits:
            return any(
                isinstance(each, BaseException)
                for value in frame.f_locals.values()
                for each in (value if isinstance(value, tuple) else (value,))
            )
        frame = frame.f_back
    return False


_exits = {_core.OpenFile.__exit__.__code__, _core.OpenFiles.__exit__.__code__}


class Compressed:
    """A file through a compressor, which does not close what it writes to."""

    def __init__(self, file: PoolFile, kind: str) -> None:
        self._file = file
        self._through = _compression.compr[kind](file, mode=file.mode[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._through, name)

    def __iter__(self) -> Any:
        return iter(self._through)

    def __enter__(self) -> Compressed:
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


class Text(io.TextIOWrapper):
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
