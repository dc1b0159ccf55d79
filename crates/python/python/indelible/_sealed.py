"""Sealed objects of a pool: their keys, sizes and anchors, and who signs them."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable

from . import _indelible
from ._indelible import SealKey, _bind_name, _change_signer, _reencrypt, _rename, _resize, _set_anchor
from ._table import KeySlot


class SealedPool(_indelible.Pool):
    """The part of a pool that is for sealed objects."""

    def key_slots(self, name: str, *, key: bytes | None = None) -> builtins.list[KeySlot]:
        """The keys that open a sealed object, whoever has it attached; needs none of them."""
        return [KeySlot(*slot) for slot in self._key_slots(name, key)]

    def resize(self, name: str, size: int, *, key: bytes | None = None, seal: SealKey | None = None) -> None:
        """Gives an object that nobody has attached another size; a sealed one by one of its seal keys."""
        _resize(self, name, size, key, seal)

    def rename(self, name: str, new: str, *, key: bytes | None = None, seal: SealKey | None = None) -> None:
        """Gives an object that nobody has attached another name. The name of a sealed one is sealed with it: that takes a seal key, which has the sign key of one that is signed."""
        _rename(self, name, new, key, seal)

    def reencrypt(self, name: str, seals: Iterable[SealKey], *, key: bytes | None = None) -> None:
        """Seals all of a sealed object, which nobody has attached, anew, by a new key, which `seals` open, each in its slot; all other slots go, so that
        nobody who had another key reads what is psynced from then on. The first of them opens the object. It needs its space once more meanwhile; a
        crash leaves the former key or the new one, and all of the object.
        """
        _reencrypt(self, name, list(seals), key)

    def bind_name(self, name: str, *, seal: SealKey, key: bytes | None = None) -> None:
        """Has the name and the ID of a sealed object, which nobody has attached, authenticated with it from now on: of one that an earlier release made, or of a copy, for which
        `seal` says what it was `sealed_as`.
        """
        _bind_name(self, name, seal, key)

    def set_anchor(self, name: str, *, seal: SealKey, key: bytes | None = None) -> None:
        """Takes the present state of a sealed object, which nobody has attached, for the newest, whatever the anchor of `seal` was told: for a state that was
        put back on purpose, an anchor that was lost, or another anchor. If `seal` has no anchor, the object has none from then on.
        """
        _set_anchor(self, name, seal, key)

    def change_signer(
        self, name: str, path: str | os.PathLike[str], *, seal: SealKey, key: bytes | None = None
    ) -> None:
        """Has the key file at `path` sign a sealed object, which is signed, and which nobody has attached; `seal` has the sign key of before. Those who read
        need the new one's `verify_key` from then on.
        """
        _change_signer(self, name, path, seal, key)
