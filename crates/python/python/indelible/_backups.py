"""Backups of pools, and pools restored from them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from . import _indelible
from ._progress import Progress, told


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup."""

    path: Path
    objects: int
    """How many objects it has."""
    size: int
    """Bytes of its file."""
    base: Path | None
    """The backup in the same folder that it rests on; None: it is full."""


def backup(
    pool: _indelible.Pool,
    path: str | os.PathLike[str],
    objects: list[str],
    key: bytes | None,
    replace: bool,
    progress: Progress,
) -> Backup:
    """See `Pool.backup`."""
    folder = os.path.isdir(path)
    if folder and replace:
        raise ValueError("replace is for a file: a folder has all backups of a pool")
    with told(progress, f"backup of {os.fspath(pool.path)}") as tell:
        made = _indelible._backup(pool, path, objects, key, folder, replace, tell)
    return Backup(*made)


def restore(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    size: int | None = None,
    replace: bool = False,
    rebase: bool = False,
    progress: Progress = False,
) -> list[str]:
    """Restores all objects of a backup, or of the newest in a folder, to a new pool at `path`, and
    returns their names.

    The pool is as long as the original, or `size` bytes. With `replace` it takes the place of a
    pool at `path` that no process uses. With `rebase` the objects get other addresses, so that a
    process can have them beside the originals. `progress` is as for `Pool.copy_to`: its exceptions,
    and Ctrl-C, end the call, and nothing is replaced.
    """
    with told(progress, f"restore of {os.fspath(path)}") as tell:
        if tell is None:
            return _indelible._restore(backup, path, size, replace, rebase, None)
        of = 0

        def each(done: int, total: int) -> None:
            nonlocal of
            of = total
            tell(done, total)

        names = _indelible._restore(backup, path, size, replace, rebase, each)
        # Pages of zeros are not written, and not counted.
        tell(of, of)
        return names
