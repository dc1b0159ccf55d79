"""A pool, as far as snapshots, backups, differences, ties and upkeep are concerned."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from . import _backups
from ._backups import Backup
from ._indelible import Pool, _create_from_ranges
from ._progress import Progress, told
from ._table import Collected, Difference, Tie
from ._viewing import ViewingPool


class SnapshotPool(ViewingPool):
    """The part of `Pool` that keeps objects and compares them."""

    @overload
    def snapshot(self, name: str, snapshot: str, /, *, key: bytes | None = None) -> None: ...
    @overload
    def snapshot(self, names: Mapping[str, str], /, *, key: bytes | None = None) -> None: ...
    def snapshot(
        self, names: str | Mapping[str, str], snapshot: str | None = None, /, *, key: bytes | None = None
    ) -> None:
        """Keeps the state of an object's last psync under another name; given a mapping from names
        of objects to names of snapshots, those of several objects as of one moment: all, or none.

        It takes no time, for any size, also beside a writer of the object. A snapshot is read as
        any object, with mode "r", and `create_from` makes an object of it. The pool needs a free
        piece as large as the object, of which only pages changed from now on take space.
        """
        if isinstance(names, str) == (snapshot is None):
            raise TypeError("snapshot takes two names, or a mapping from names of objects to names of snapshots")
        pairs = [(names, snapshot or "")] if isinstance(names, str) else list(names.items())
        if pairs:
            self._snapshot(pairs, key)

    def create_from_ranges(
        self,
        name: str,
        size: int,
        ranges: Iterable[tuple[str, int, int, int]],
        *,
        key: bytes | None = None,
        new_key: bytes | None = None,
        read_only: bool = False,
    ) -> None:
        """Creates an object of `size` bytes from page ranges of others, (object, first byte, end,
        place in the new object), as their last psyncs left them, with zeros between them: all of
        it, or nothing.

        Places are multiples of 4096; a range ends with such a page, or with its object. The object
        has addresses of its own. Pages that keep their place are shared with their source: of one
        source, a snapshot, or 64 KiB and more of an object that `key` allows to write. Others are
        copied. Sources are neither sealed, on demand nor shared, and without check words. An array
        or a dict is not made this way: its first page says what follows.
        """
        _create_from_ranges(self, name, size, list(ranges), key, new_key, read_only)

    def diff(self, older: str, newer: str, *, key: bytes | None = None) -> Difference:
        """Compares the last psynced states of two objects or snapshots: which pages differ. Shared
        pages are not read. Other processes may have both attached.
        """
        ranges, older_size, newer_size = self._diff(older, newer, key)
        return Difference(ranges, older_size, newer_size)

    def ties(self, name: str) -> builtins.list[Tie]:
        """The existing objects that an object is tied to."""
        return [Tie(*tie) for tie in self._ties(name)]

    def copy_to(
        self,
        name: str,
        other: Pool,
        copy: str,
        *,
        key: bytes | None = None,
        rebase: bool = False,
        progress: Progress = False,
    ) -> None:
        """Copies the state of an object's last psync, or a snapshot, to a pool. With `rebase`, to
        other addresses, so that a process can have both: that needs an array, a dict, another heap
        whose roots are described, or an object that is position-independent.

        `progress` shows a bar (tqdm) or a line on stderr, or is a function of the bytes copied so far
        and of all bytes. Its exceptions, and Ctrl-C, end the call, which then leaves no copy.
        """
        with told(progress, f"copy of {name!r}") as tell:
            self._copy_to(name, other, copy, key, rebase, tell)

    def move_to(
        self,
        name: str,
        other: Pool,
        *,
        key: bytes | None = None,
        rebase: bool = False,
        progress: Progress = False,
    ) -> None:
        """Moves a detached object to another pool, with its identity and, unless `rebase`, its
        addresses. `progress` is as for `copy_to`.
        """
        with told(progress, f"move of {name!r}") as tell:
            self._move_to(name, other, key, rebase, tell)

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        objects: Sequence[str] = (),
        key: bytes | None = None,
        replace: bool = False,
        progress: Progress = False,
    ) -> Backup:
        """Backs up all objects that are not volatile, or these `objects`, as one psync of each left
        them, beside their writers: `indelible.restore` makes a pool of it.

        A folder gets a file with the changes since the pool's newest backup there. Any other path
        names the file of a full backup; `replace` allows that it exists. `progress` is as for
        `copy_to`; a call that it ends leaves no backup, and in a folder a part that the next one
        continues.
        """
        return _backups.backup(self, path, list(objects), key, replace, progress)

    def collect(self, *, progress: Progress = False) -> Collected:
        """Merges unshared remains of copies, and removes deleted objects that are detached, volatile
        ones of an earlier boot, and remains of deleted snapshots and copies: then each object takes
        no more space than one that was never copied. Others may use the pool meanwhile. Costs the
        pages that are copied. `progress` is as for `copy_to`, in objects; what was merged stays.
        """
        with told(progress, "collect", " objects") as tell:
            return Collected(*self._collect(tell))
