//! A batch: all changes that one commit makes durable, as redo.
//!
//! ```text
//! Header | lines (64 B each) | sections | runs | zeros up to a line
//! ```
//! `head_sum` covers the header, with generation, sequence and `body_sum`; `body_sum` covers the
//! rest. An invalid batch does not exist.

use super::{LINE, checksum};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a batch.
pub const MAGIC: u32 = u32::from_le_bytes(*b"BTCH");

/// First line of a batch.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Header {
    pub magic: U32,
    pub sections: U32,
    pub head_sum: U64,
    pub body_sum: U64,
    pub generation: U64,
    pub sequence: U64,
    pub len: U64,
    pub runs: U32,
    pub lines: U32,
    pub durable: U64,
}

const _: () = assert!(size_of::<Header>() as u64 == LINE);

/// Kinds of sections.
pub mod kind {
    /// Redo runs of table pages.
    pub const TABLE: u16 = 0;
    /// Redo runs of one object, and its progress.
    pub const PSYNC: u16 = 1;
    /// No runs, only progress: announces a direct write (`direct` beyond `published`), or cancels
    /// one.
    pub const INTENT: u16 = 2;
    /// No runs: the batch of the table with this number lies elsewhere.
    pub const SPILL: u16 = 3;
}

/// Flag of a section: readers that do not know its kind skip it; without the flag they refuse the
/// lane.
pub const SKIPPABLE: u16 = 1;

/// A batch's changes of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Section {
    pub kind: U16,
    pub flags: U16,
    pub runs: U32,
    pub entry: U64,
    pub binding: U64,
    pub published: U64,
    pub psyncs: U64,
    pub direct: U64,
}

/// Consecutive lines of data and where they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Run {
    pub target: U64,
    pub lines: U64,
}

const _: () = assert!(size_of::<Section>() == 48 && size_of::<Run>() == 16);

impl Section {
    /// Whether this code knows this kind of section.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.kind.get() <= kind::SPILL && self.flags.get() & !SKIPPABLE == 0
    }

    /// Whether software that does not know it may leave it out.
    #[must_use]
    pub fn is_skippable(&self) -> bool {
        self.flags.get() == SKIPPABLE
    }

    /// Whether it changes an object.
    #[must_use]
    pub fn is_of_object(&self) -> bool {
        self.is_known() && matches!(self.kind.get(), kind::PSYNC | kind::INTENT)
    }
}

/// Bytes of such a batch, if representable.
#[must_use]
pub fn length(sections: u64, runs: u64, lines: u64) -> Option<u64> {
    let tail = sections.checked_mul(48)?.checked_add(runs.checked_mul(16)?)?;
    lines.checked_mul(LINE)?.checked_add(LINE)?.checked_add(tail)?.checked_next_multiple_of(LINE)
}

impl Header {
    /// The header's own checksum.
    #[must_use]
    pub fn sum(&self, seed: u64) -> u64 {
        let mut zeroed = *self;
        zeroed.head_sum = U64::new(0);
        checksum(seed, &[zeroed.as_bytes()])
    }

    /// Whether this can be header `sequence` of `generation` with `room` bytes left. The body
    /// remains to be verified.
    #[must_use]
    pub fn verify(&self, seed: u64, generation: u64, sequence: u64, room: u64) -> bool {
        self.magic.get() == MAGIC
            && self.generation.get() == generation
            && self.sequence.get() == sequence
            && self.head_sum.get() == self.sum(seed)
            && self.durable.get() <= sequence
            && self.len.get() <= room
            && length(self.sections.get().into(), self.runs.get().into(), self.lines.get().into())
                == Some(self.len.get())
    }
}
