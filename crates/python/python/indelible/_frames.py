"""Data frames of pandas and polars, and tables of pyarrow, as bytes: those that do not come back
exactly are refused.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any, NamedTuple

from ._errors import Error


class Frame(NamedTuple):
    """A frame as a stream of Arrow, and the facts that its restoration needs beside it."""

    about: tuple[Any, ...]
    data: memoryview


def of(value: Any) -> Frame | None:
    """The bytes of a frame, or None for another value. TypeError: it would not come back exactly."""
    pandas, polars, pyarrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return _of_pandas(pandas, value)
    if polars is not None and isinstance(value, polars.DataFrame):
        return _of_polars(polars, value)
    if pyarrow is not None and isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
        kind = "table" if isinstance(value, pyarrow.Table) else "batch"
        return Frame(("pyarrow", kind), _stream(pyarrow, value))
    return None


def is_frame(value: Any) -> bool:
    """Whether it is a frame or table of a library that the program has imported."""
    kinds = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
    return any(
        isinstance(value, getattr(sys.modules[library], kind))
        for library, names in kinds.items()
        if library in sys.modules
        for kind in names
    )


def load(about: Any, data: Any, what: str) -> Any:
    """The frame, over `data` if possible; a copy if `data` is of type bytes."""
    library, *rest = about
    if library == "polars":
        return _to_polars(_library("polars", what), data, *rest)
    if library not in ("pandas", "pyarrow"):
        raise ValueError(f"there are no frames of {library!r}")
    pyarrow = _library("pyarrow", what)
    table = _table(pyarrow, data)
    if library == "pyarrow" and rest[0] == "batch":
        return table.to_batches()[0] if table.num_rows else pyarrow.RecordBatch.from_pylist([], table.schema)
    if library == "pyarrow":
        return table
    return _to_pandas(_library("pandas", what), table, not isinstance(data, bytes), *rest)


def _to_polars(polars: Any, data: Any, same: bool = False) -> Any:
    """`same`: pyarrow, which copies less, gives the same frame."""
    if same and not isinstance(data, bytes):
        try:
            return polars.from_arrow(_table(importlib.import_module("pyarrow"), data))
        except ImportError:
            pass
    return polars.read_ipc_stream(io.BytesIO(data))


def _table(pyarrow: Any, data: Any) -> Any:
    importlib.import_module("pyarrow.ipc")
    with pyarrow.ipc.open_stream(pyarrow.py_buffer(data)) as stream:
        return stream.read_all()


def _of_polars(polars: Any, value: Any) -> Frame:
    _expect_exact(value, polars.DataFrame)
    into = io.BytesIO()
    try:
        value.write_ipc_stream(into)
        back = polars.read_ipc_stream(io.BytesIO(into.getbuffer())).schema
    except Exception as error:
        raise TypeError(f"a frame of polars cannot be kept: {error}") from error
    if back != value.schema:
        raise TypeError(
            f"a frame of polars cannot be kept: columns {value.schema} would come back as {back}"
        )
    return Frame(("polars", _is_same_by_arrow(polars, value, into.getbuffer())), into.getbuffer())


def _is_same_by_arrow(polars: Any, value: Any, data: memoryview) -> bool:
    """Whether pyarrow, if it is installed, gives the same frame."""
    try:
        back = polars.from_arrow(_table(importlib.import_module("pyarrow"), data))
    except Exception:
        return False
    return bool(back.schema == value.schema and back.equals(value))


def _of_pandas(pandas: Any, value: Any) -> Frame:
    _expect_exact(value, pandas.DataFrame)
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise TypeError(
            "a frame of pandas cannot be kept without the package pyarrow (pip install pyarrow)"
        ) from error
    freq = getattr(value.index, "freqstr", None)
    about = (freq, value.attrs, value.flags.allows_duplicate_labels, _range(pandas, value.columns))
    plain = value.copy(deep=False)
    plain.attrs = {}
    try:
        table = pyarrow.Table.from_pandas(plain)
        frame = Frame(("pandas", *about), _stream(pyarrow, table))
        _expect_same(pandas, value, load(frame.about, bytes(frame.data), "the frame"))
    except Error:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise TypeError(
            f"a frame of pandas cannot be kept exactly: {text} (keep its columns as arrays)"
        ) from error
    return frame


def _to_pandas(
    pandas: Any,
    table: Any,
    views: bool,
    freq: str | None,
    attrs: Any,
    duplicates: bool,
    columns: Any = None,
) -> Any:
    made = table.to_pandas(split_blocks=views)
    if freq is not None and hasattr(made.index, "freq"):
        made.index = type(made.index)(made.index, freq=freq)
    if columns is not None:
        made.columns = pandas.RangeIndex(*columns[:3], name=columns[3])
    made.attrs = attrs
    made.flags.allows_duplicate_labels = duplicates
    return made


def _range(pandas: Any, columns: Any) -> tuple[Any, ...] | None:
    """The range of numbered columns, which Arrow cannot state."""
    if type(columns) is not pandas.RangeIndex:
        return None
    return columns.start, columns.stop, columns.step, columns.name


def _expect_same(pandas: Any, one: Any, other: Any) -> None:
    """Fails unless both have the same types, labels, and values of the same types."""
    pandas.testing.assert_frame_equal(
        one, other, check_index_type=True, check_column_type=True, check_exact=True, check_freq=True,
    )  # fmt: skip
    for number, dtype in enumerate(one.dtypes):
        if _has_objects(dtype):
            items = zip(one.iloc[:, number], other.iloc[:, number], strict=True)
            if not all(_is_same(*pair) for pair in items):
                raise TypeError(f"column {one.columns[number]!r} has other objects then")
    for what, labels, back in (
        ("the index", one.index, other.index),
        ("the columns' labels", one.columns, other.columns),
    ):
        if not _is_same(list(labels.names), list(back.names)):
            raise TypeError(f"{what} would have other names: {list(back.names)}")
        for number in range(labels.nlevels):
            level, again = labels.get_level_values(number), back.get_level_values(number)
            if _has_objects(level.dtype) and not _is_same(list(level), list(again)):
                raise TypeError(f"{what} would have other objects")


def _has_objects(dtype: Any) -> bool:
    """Whether it is the type of objects, or of categories that are objects."""
    categories = getattr(dtype, "categories", None)
    return bool(dtype == object or (categories is not None and categories.dtype == object))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two objects have the same types and values, all that they hold included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict):
        return _is_same(list(one.items()), list(other.items()))
    if hasattr(one, "dtype") and hasattr(one, "tolist"):
        about = one.dtype == other.dtype and one.shape == other.shape
        return bool(about) and _is_same(one.tolist(), other.tolist())
    if isinstance(one, (str, bytes, int)):
        return bool(one == other)
    # NaN is equal to none, and -0.0 to 0.0.
    return repr(one) == repr(other)


def _expect_exact(value: Any, kind: type) -> None:
    if type(value) is not kind:
        raise TypeError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be kept: it is no plain frame"
        )


def _stream(pyarrow: Any, value: Any) -> memoryview:
    importlib.import_module("pyarrow.ipc")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, value.schema) as stream:
        stream.write(value)
    return memoryview(sink.getvalue()).cast("B")


def _library(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{what} has a frame that needs the package {name}: install it (pip install {name})",
            name=name,
        ) from error
