"""Answers of a pool: its objects, their ties and differences, and upkeep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Stat:
    """The pool table's entry of an object."""

    name: str
    id: str
    """Permanent: "id:" and 32 hexadecimal digits, which every call takes as a name."""
    size: int
    """Bytes."""
    address: int
    """Fixed virtual address."""
    reach: int
    """Bytes to which it can grow."""
    state: Literal["D", "R", "W", "P", "C"]
    """D detached, R read, W written, P or C in the middle of a psync."""
    holder: int | None
    """The process that has it attached; one of several readers."""
    other_readers: list[int]
    """The other processes that read it."""
    unseen_readers: int
    """At least so many further readers, in processes that this one may not see."""
    needs_recovery: bool
    """Its last writer died; the next attach recovers it."""
    living_writer: int | None
    """That writer, if it still runs without this file: this may be a copy of a pool in use."""
    read_only: bool
    sparse: bool
    volatile: bool
    """Its contents hold only until the machine restarts."""
    gone: bool
    """The machine has restarted: it cannot be attached, and a new object takes its place."""
    snapshot: bool
    """A snapshot: no process ever stores to it."""
    position_independent: bool
    """Declared position-independent: its contents do not depend on its address."""
    readable_outside: bool
    """Plain loads outside of transactions see what these committed: `Pool.set_readable_outside`."""
    shares: bool
    """It shares unchanged pages with a snapshot or copy."""
    sealed: bool
    """It is encrypted: a seal key opens it."""
    ecc: bool
    """Its words have check words: `Pool.transactional`, `Pool.scrub`."""
    durability: Literal["psync", "transactional", "on-demand", "shared", "unknown"]
    """How stores become durable; `Pool.transactional` makes "transactional" and "on-demand"."""
    own: int
    """Bytes of its own pages in the pool, without those shared with a snapshot or copy."""
    psyncs: int
    """Durable psyncs over its life."""
    created: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """Words that `Pool.scrub` read."""

    words: int
    repaired: int
    """Damaged words that were repaired, durably."""
    lost: list[int]
    """Offsets of those that cannot be repaired, in bytes."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Work that `Pool.collect` did."""

    removed: int
    """Removed objects: deleted and detached, volatile of an earlier boot, leftovers."""
    copied: int
    """Bytes copied."""


@dataclass(frozen=True, slots=True)
class Tie:
    """An object that another one outlives: see `Pool.tie`."""

    name: str
    deleted: bool
    """Deleted: it stays as long as a process has it attached, or a tie of its own keeps it."""


@dataclass(frozen=True, slots=True)
class KeySlot:
    """A key that opens a sealed object: see `Pool.key_slots`."""

    slot: int
    kind: str
    """"key file" (also of bytes, a command, a credential), "passphrase" or "TPM"."""
    label: str
    created: int
    """Seconds since 1970."""
    expires: int | None
    """Seconds since 1970 from which on it is refused; None: never."""
    damaged: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """How two objects or snapshots differ: see `Pool.diff`."""

    ranges: list[tuple[int, int]]
    """Pages whose bytes differ, in runs: first byte, and the one behind the last."""
    older_size: int
    newer_size: int
