//! Standing of objects: their progress lines, and the part of a primary that no psync has published.

use crate::error::Result;
use crate::format::LINE;
use crate::format::batch::Section;
use crate::format::entry::{Entry, FLAG_SPARSE, PROGRESS, Progress};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::table::Located;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Standing of an object after a batch: the content of its progress line once that is brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// `Progress::published`.
    pub published: u64,
    /// `Progress::psyncs`.
    pub psyncs: u64,
    /// `Progress::direct`.
    pub direct: u64,
}

impl Standing {
    /// The standing that a batch's section states.
    #[must_use]
    pub fn of(section: &Section) -> Standing {
        Standing {
            published: section.published.get(),
            psyncs: section.psyncs.get(),
            direct: if Mutant::IntentIgnored.is_on() { 0 } else { section.direct.get() },
        }
    }
}

/// Zeroes bytes of an object's primary; an object that is not sparse keeps its space.
pub fn clear(medium: &dyn Medium, entry: &Entry, from: u64, to: u64) -> Result<()> {
    let start = entry.primary_offset() + from;
    medium.zero(start, to - from)?;
    if !entry.has(FLAG_SPARSE) {
        medium.reserve(start, to - from)?;
    }
    Ok(())
}

/// Writes an object's progress line; the caller owns its lane.
pub fn put_progress(medium: &dyn Medium, seed: u64, object: &Located, standing: &Standing) -> Result<()> {
    put_progress_at(medium, seed, object.offset, object.entry.id, standing)
}

/// As [`put_progress`], for the object `id` whose slot is at `slot`.
pub fn put_progress_at(
    medium: &dyn Medium,
    seed: u64,
    slot: u64,
    id: [u8; 16],
    standing: &Standing,
) -> Result<()> {
    let line = Progress {
        id,
        published: U64::new(standing.published),
        psyncs: U64::new(standing.psyncs),
        direct: U64::new(standing.direct),
        ..Progress::default()
    }
    .sealed(seed);
    debug_assert!((slot + PROGRESS).is_multiple_of(LINE));
    Ok(medium.write(slot + PROGRESS, line.as_bytes())?)
}
