"""A pool, as far as transactions are concerned."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Literal

from . import _array, _holders, _registry, _unfinished
from ._errors import Held
from ._indelible import _create_transactional, _scrub, _set_durability, _set_epochs, _set_readable_outside
from ._layout import Layout, Order, Shape
from ._table import Scrubbed
from ._snapshots import SnapshotPool
from ._transactions import TxArray, write_header

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class TransactionalPool(SnapshotPool):
    """The part of `Pool` that makes arrays for transactions."""

    def transactional(
        self,
        name: str,
        shape: Shape | None = None,
        dtype: DTypeLike | None = None,
        order: Order | None = None,
        *,
        durability: Literal["transactional", "on-demand"] = "transactional",
        with_on_demand: bool = False,
        ecc: bool = False,
        key: bytes | None = None,
    ) -> TxArray:
        """The array in the object `name`, which transactions alone read and change
        (`indelible.transaction`); without an object of that name one is made, all zero, as by
        `array`. As long as it is open, another call returns the same. A transaction is durable when
        it returns.

        With "on-demand" it returns, without a durable write, when it outlives the process. It is
        durable later: when `TxArray.tx_sync` or `TxArray.psync` returns, when the array is closed,
        and regularly (`set_epochs`). A power cut takes the last ones, and never a part of one.
        Arrays of both kinds are used together if those that are not on demand are opened
        `with_on_demand`: such a transaction is durable when it returns.

        With `ecc` each word of 8 bytes of a new array has a check word: it takes twice the space. A
        transaction repairs a damaged word that it reads, or is `Damaged` if it is beyond repair:
        see `scrub`.
        """
        if durability not in ("transactional", "on-demand"):
            raise ValueError(f"durability is 'transactional' or 'on-demand', not {durability!r}")

        def expect(found: TxArray) -> None:
            _array.expect_layout(
                found._layout, shape, dtype, order, self, name, "ask for what it has"
            )

        def attach() -> TxArray:
            _unfinished.clean(self, name, key)
            if name not in self:
                wanted = _array.wanted_layout(name, shape, dtype, order)
                self._make_transactional(name, wanted, durability, ecc, key)
            made = TxArray(self, name, self._stat(name)["size"], key, with_on_demand)
            try:
                expect(made)
            except BaseException:
                made.close()
                raise
            return made

        found = _registry.once(self, name, "transactional", attach, key)
        expect(found)
        if with_on_demand and not found._with_on_demand:
            raise Held(
                f"cannot open object {name!r} with_on_demand: this process has it open without (close it"
                f" first{_holders.of(name)})",
                operation="open",
                pool=os.fspath(self.path),
                object=name,
            )
        return self._in_block(found)

    def _make_transactional(
        self, name: str, wanted: Layout, durability: str, ecc: bool, key: bytes | None
    ) -> None:
        """Makes the array under another name, and renames it when it is complete: a crash leaves the array or none."""
        with _unfinished.making(self, name, key) as made:
            _create_transactional(self, made, _array.size_for(wanted), key, durability, ecc)
            try:
                write_header(self, made, key, wanted)
                self.rename(made, name, key=key)
            except BaseException:
                self.remove(made, key=key)
                raise

    def set_durability(
        self, name: str, durability: Literal["psync", "transactional", "on-demand"], *, key: bytes | None = None
    ) -> None:
        """Gives a detached object another durability: that of `array`, or one of those of `transactional`. Its bytes stay. ClassMismatch of sealed and sparse objects."""
        _set_durability(self, name, key, durability)

    def scrub(self, name: str, *, key: bytes | None = None) -> Scrubbed:
        """Reads all words of a detached object with check words, and repairs damaged ones, durably. ClassMismatch of other objects."""
        return Scrubbed(*_scrub(self, name, key))

    def set_readable_outside(self, name: str, readable: bool = True, *, key: bytes | None = None) -> None:
        """Sets whether plain loads outside of transactions see a detached object of `transactional`, or are a SIGSEGV: for libraries in C, which get its address. Elements of
        a `TxArray` are read in transactions. ClassMismatch of other objects.
        """
        _set_readable_outside(self, name, key, readable)

    def set_epochs(self, seconds: float | None = 1.0, bytes: int = 4 << 20) -> None:
        """Sets when commits on demand of this process in the pool become durable by themselves:
        after so many seconds (None: never), and before more than so many bytes have changed.
        """
        _set_epochs(self, seconds, operator.index(bytes))
