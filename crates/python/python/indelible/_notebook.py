"""Tables of pools, objects and dicts for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ._table import Stat

if TYPE_CHECKING:
    from ._indelible import Object, Pool

# Rows that a table shows; a last row counts the others.
MOST = 100
# Characters of a value that a cell shows.
_WIDE = 60


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """A table in HTML of the first hundred of `count` rows."""
    lines = [_row("th", heads)]
    lines += [_row("td", row) for row in islice(rows, MOST)]
    if count > MOST:
        lines.append(f'<tr><td colspan="{len(heads)}">and {count - MOST:,} more</td></tr>')
    return f"<table><caption>{_shown(caption)}</caption>{''.join(lines)}</table>"


def objects(caption: str, stats: Sequence[Stat]) -> str:
    """A table of objects of a pool."""
    rows = (
        (stat.name, size(stat.size), _kind(stat), stat.state, stat.psyncs, stat.holder or "")
        for stat in stats
    )
    heads = ("object", "size", "kind", "state", "psyncs", "process")
    return table(caption, heads, rows, len(stats))


def attached(obj: Object, what: str = "bytes") -> str | None:
    """A table of an object that this process has; None if there is none to show."""
    if obj.closed:
        return None
    changes = ", with changes that are not psynced" if obj._is_unsynced() else ""
    return named(obj.pool, obj.name, obj.address, what, changes)


def named(pool: Pool, name: str, address: int, what: str, changes: str = "") -> str | None:
    """A table of the object at an address; None if the name is that of another one by now."""
    if pool.closed or name not in pool:
        return None
    stat = Stat(**pool._stat(name))
    return objects(f"{what}{changes}", [stat]) if stat.address == address else None


def text(shown: str) -> str:
    """Plain text below a table."""
    return f"<pre>{html.escape(shown)}</pre>"


def _kind(stat: Stat) -> str:
    """Properties of an object, in words."""
    marks = ("snapshot", "sealed", "read_only", "sparse", "volatile", "ecc", "gone")
    words = [mark.replace("_", "-") for mark in marks if getattr(stat, mark)]
    return ", ".join([stat.durability, *words])


def size(count: int) -> str:
    """Bytes as people read them."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if unit != "B" else f"{count} B"


def short(value: Any) -> str:
    """A value in one line. Of an array its shape and type: it may be large."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"array of {value.dtype}, shape {shape}"
    text = repr(value)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


def _row(tag: str, cells: Sequence[Any]) -> str:
    inner = "".join(f"<{tag}>{_shown(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def _shown(text: str) -> str:
    """Text without control characters and markup."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return html.escape(plain)
