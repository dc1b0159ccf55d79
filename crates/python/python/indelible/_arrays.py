"""Arrays of numpy, torch and jax as bytes, and back: of the libraries that the program has
imported.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _tree
from ._errors import Mismatch
from ._layout import fill, is_padded, layout, unpack

PIECE = 1 << 20
"""Bytes that are handed on at a time."""
_ALIGN = 64

# How many values say what an array is, by its tag.
ABOUT = {b"A": 1, b"B": 4, b"J": 1, b"K": 2}


class Bytes(NamedTuple):
    """An array: its tag, what has to be known to make it again, and its bytes in pieces."""

    tag: bytes
    about: tuple[Any, ...]
    nbytes: int
    pieces: Callable[[], Iterator[memoryview]]


def of(value: Any) -> Bytes | None:
    """The bytes of an array; None of anything else. TypeError of one that cannot be kept."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if isinstance(value, np.ndarray):
        return _of_numpy(value)
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value)
    if jax is not None and isinstance(value, jax.Array):
        return _of_jax(jax, value)
    return None


def load(tag: bytes, about: list[Any], data: np.ndarray[Any, Any], what: str) -> Any:
    """An array of the library that it came from, in memory of its own."""
    if tag == b"B":
        return _to_torch(about, data, what)
    if tag == b"A":
        return _to_numpy(about[0], data, what)
    jax = _library("jax", what)
    array = _to_numpy(about[-1], data, what)
    made = jax.numpy.asarray(array)
    if made.dtype != array.dtype:
        raise Mismatch(
            f"{what}: it has a jax array of type {array.dtype}, which this process makes {made.dtype}"
            " (set jax_enable_x64)"
        )
    return made if tag == b"J" else jax.random.wrap_key_data(made, impl=about[0])


def _of_numpy(value: np.ndarray[Any, Any]) -> Bytes:
    _tree.expect_plain_array(value)
    array = np.asarray(value)
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    found = layout(array.shape, array.dtype, "F" if fortran else "C")
    return Bytes(
        b"A",
        (found.pack(_ALIGN),),
        array.nbytes,
        lambda: _slabs(array.T if fortran else array, numpy_bytes),
    )


def numpy_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """The elements in their order; bytes between fields are zeros, and not any of this process."""
    if is_padded(array.dtype):
        stored = np.zeros(array.shape, array.dtype)
        fill(stored, array)
        array = stored
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _to_numpy(header: bytes, data: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    found, _ = unpack(header, what)
    if found.nbytes != len(data):
        raise ValueError(f"an array of {found} has {len(data)} bytes")
    made = np.empty(found.shape, found.dtype, order=found.order)
    (made.T if found.order == "F" else made).reshape(-1).view(np.uint8)[...] = data
    return made


def _of_torch(torch: Any, value: Any) -> Bytes:
    parameter = type(value) is torch.nn.Parameter
    if not parameter and type(value) is not torch.Tensor:
        raise TypeError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be kept: it is more than a"
            " tensor (keep x.data)"
        )
    if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
        raise TypeError(
            f"a tensor of layout {value.layout} on device {value.device} cannot be kept: use a dense one,"
            " x.to_dense()"
        )
    tensor = value.detach().resolve_conj().resolve_neg()
    about = (
        str(value.dtype).removeprefix("torch."),
        tuple(tensor.shape),
        parameter,
        bool(value.requires_grad),
    )
    nbytes = tensor.numel() * tensor.element_size()

    def contiguous(part: Any) -> memoryview:
        return memoryview(part.contiguous().reshape(-1).view(torch.uint8).cpu().numpy())

    return Bytes(b"B", about, nbytes, lambda: _slabs(tensor, contiguous))


def _to_torch(about: list[Any], data: np.ndarray[Any, Any], what: str) -> Any:
    torch = _library("torch", what)
    name, shape, parameter, requires_grad = about
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Mismatch(
            f"{what}: it has a tensor of type {name}, which this torch lacks (use a newer one)"
        )
    if not all(isinstance(length, int) and length >= 0 for length in shape) or math.prod(
        shape
    ) > len(data):
        raise ValueError(f"a tensor of shape {shape} has {len(data)} bytes")
    made = torch.empty(tuple(shape), dtype=dtype)
    memory = made.reshape(-1).view(torch.uint8).numpy()
    if memory.nbytes != len(data):
        raise ValueError(f"a tensor of shape {shape} has {len(data)} bytes")
    memory[...] = data
    if parameter:
        return torch.nn.Parameter(made, requires_grad=requires_grad)
    return made.requires_grad_(True) if requires_grad else made


def _of_jax(jax: Any, value: Any) -> Bytes:
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        data = _of_numpy(np.asarray(jax.random.key_data(value)))
        return data._replace(tag=b"K", about=(str(jax.random.key_impl(value)), *data.about))
    return _of_numpy(np.asarray(value))._replace(tag=b"J")


def _library(name: str, what: str) -> Any:
    """One of the libraries above."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{what} has arrays of the package {name}: install it (pip install {name})", name=name
        ) from error


def _slabs(array: Any, contiguous: Callable[[Any], memoryview]) -> Iterator[memoryview]:
    """The elements in their order; of one that lies scattered, no more than a few pieces are
    copied at a time.
    """
    nbytes = int(array.nbytes)
    if nbytes <= 8 * PIECE or array.ndim == 0 or _is_contiguous(array):
        yield contiguous(array)
        return
    rows = max(1, 8 * PIECE // (nbytes // len(array)))
    for at in range(0, len(array), rows):
        part = array[at : at + rows]
        if rows == 1:
            yield from _slabs(part[0], contiguous)
        else:
            yield contiguous(part)


def _is_contiguous(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return bool(array.flags.c_contiguous) and not is_padded(array.dtype)
    # On another device, it is copied from there piece by piece.
    return bool(array.is_contiguous()) and array.device.type == "cpu"
