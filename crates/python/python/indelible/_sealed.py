"""Sealed objects of a pool: their keys, sizes and anchors, and who signs them."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable

from . import _indelible
from ._indelible import SealKey, _bind_name, _change_signer, _reencrypt, _rename, _renew_key, _resize, _set_anchor
from ._table import KeySlot


class SealedPool(_indelible.Pool):
    """The part of a pool that is for sealed objects."""

    def key_slots(self, name: str, *, key: bytes | None = None) -> builtins.list[KeySlot]:
        """The keys that open a sealed object, attached or not; needs none of them."""
        return [KeySlot(*slot) for slot in self._key_slots(name, key)]

    def resize(self, name: str, size: int, *, key: bytes | None = None, seal: SealKey | None = None) -> None:
        """Gives a detached object another size; a sealed one by one of its seal keys."""
        _resize(self, name, size, key, seal)

    def rename(self, name: str, new: str, *, key: bytes | None = None, seal: SealKey | None = None) -> None:
        """Gives a detached object another name. The name of a sealed one is sealed with it: that takes a seal key, which has the sign key of one that is signed."""
        _rename(self, name, new, key, seal)

    def reencrypt(self, name: str, seals: Iterable[SealKey], *, key: bytes | None = None) -> None:
        """Seals all of a detached, sealed object anew, by a new key, which `seals` open, each in its slot; all other slots go, so that
        owners of other keys cannot read later psyncs. The first of them opens the object. It needs its space once more meanwhile; a
        crash leaves the former key or the new one, and all of the object.
        """
        _reencrypt(self, name, list(seals), key)

    def renew_key(self, name: str, new: SealKey, *, seal: SealKey, key: bytes | None = None) -> None:
        """Seals a detached, sealed object anew by a new key, which `new` alone opens, in the slot of `seal`. Once the former key file is
        destroyed, no older copy of an erasable object (`SealKey.erasable`) can be read. It needs its space once more meanwhile.
        """
        _renew_key(self, name, new, seal, key)

    def bind_name(self, name: str, *, seal: SealKey, key: bytes | None = None) -> None:
        """Binds a detached, sealed object to its name and ID. The object is one of an earlier
        release, or a copy: for a copy `seal` has the name of its origin (`sealed_as`).
        """
        _bind_name(self, name, seal, key)

    def set_anchor(self, name: str, *, seal: SealKey, key: bytes | None = None) -> None:
        """Accepts the present state of a detached, sealed object as the newest, against the record of `seal`'s anchor: for a state that was
        put back on purpose, an anchor that was lost, or another anchor. If `seal` has no anchor, the object has none from then on.
        """
        _set_anchor(self, name, seal, key)

    def change_signer(
        self, name: str, path: str | os.PathLike[str], *, seal: SealKey, key: bytes | None = None
    ) -> None:
        """Re-signs a detached, signed, sealed object with the key file at `path`; `seal` has the former sign key. Readers
        need the new one's `verify_key` from then on.
        """
        _change_signer(self, name, path, seal, key)
