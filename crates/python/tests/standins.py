"""Small modules that have of torch and jax what checkpoints use: the same names, types and
refusals, over numpy.
"""

from __future__ import annotations

import types
from typing import Any

import ml_dtypes
import numpy as np


class Dtype:
    def __init__(self, name: str, of: Any) -> None:
        self.name, self.of = name, np.dtype(of)

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    """As torch's: it gives its elements to numpy unless their type is one that numpy does not
    have.
    """

    is_quantized = False
    layout = "strided"
    device = types.SimpleNamespace(type="cpu")

    def __init__(
        self, array: np.ndarray[Any, Any], dtype: Dtype, requires_grad: bool = False
    ) -> None:
        self.array, self.dtype, self.requires_grad = array, dtype, requires_grad

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def _same(self, array: np.ndarray[Any, Any]) -> Tensor:
        return Tensor(array, self.dtype)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Tensor:
        return self._same(self.array[index])

    def detach(self) -> Tensor:
        return self._same(self.array)

    resolve_conj = resolve_neg = cpu = detach

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def contiguous(self) -> Tensor:
        return self._same(np.ascontiguousarray(self.array).reshape(self.shape))

    def reshape(self, *shape: int) -> Tensor:
        return self._same(self.array.reshape(*shape))

    def view(self, dtype: Dtype) -> Tensor:
        return Tensor(self.array.view(dtype.of), dtype)

    def requires_grad_(self, requires_grad: bool) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        if self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if self.array.dtype.type.__module__ == "ml_dtypes":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


class Parameter(Tensor):
    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        super().__init__(data.array, data.dtype, requires_grad)


def torch() -> types.ModuleType:
    made: Any = types.ModuleType("torch")
    made.Tensor, made.dtype, made.strided = Tensor, Dtype, "strided"
    made.nn = types.SimpleNamespace(Parameter=Parameter)
    for name, of in [
        ("float32", "f4"),
        ("int64", "i8"),
        ("uint8", "u1"),
        ("bool", "?"),
        ("bfloat16", ml_dtypes.bfloat16),
    ]:
        setattr(made, name, Dtype(name, of))
    made.empty = lambda shape, dtype: Tensor(np.full(shape, 1, dtype.of), dtype)
    return made


class Array:
    """As jax's: no numpy array, and one that cannot be changed."""

    def __init__(self, array: Any) -> None:
        self.array = np.array(array)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = self.array.view()
        found.flags.writeable = False
        return found


class Key(Array):
    """The type of a random generator: its bytes are no array."""

    dtype = "key<fry>"  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array.")


def jax() -> types.ModuleType:
    made: Any = types.ModuleType("jax")
    made.Array = Array
    made.dtypes = types.SimpleNamespace(prng_key="prng_key")
    issubdtype = lambda dtype, kind: kind == "prng_key" and str(dtype).startswith("key<")  # noqa: E731
    made.numpy = types.SimpleNamespace(asarray=Array, issubdtype=issubdtype)
    made.random = types.SimpleNamespace(
        key_data=lambda key: Array(key.array),
        key_impl=lambda key: "fry",
        wrap_key_data=lambda data, impl: Key(data.array),
    )
    return made
