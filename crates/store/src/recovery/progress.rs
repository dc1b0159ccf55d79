use crate::error::Result;
use crate::format::batch::Section;
use crate::format::entry::{Entry, FLAG_SPARSE, PROGRESS, Progress};
use crate::format::{LINE, PAGE};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::table::Located;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Contents of an object's progress line after a batch.
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
    /// The standing in a progress line.
    #[must_use]
    pub fn in_line(line: &Progress) -> Standing {
        Standing { published: line.published.get(), psyncs: line.psyncs.get(), direct: line.direct.get() }
    }

    /// The standing in a batch's section.
    #[must_use]
    pub fn of(section: &Section) -> Standing {
        Standing {
            published: section.published.get(),
            psyncs: section.psyncs.get(),
            direct: if Mutant::IntentIgnored.is_on() { 0 } else { section.direct.get() },
        }
    }
}

/// Zeroes unpublished bytes of a primary, from `from` to the end of the page of `to`, because only
/// zeroing a whole page ends a failed first write ([`Medium`], 7).
pub fn clear(medium: &dyn Medium, entry: &Entry, from: u64, to: u64) -> Result<()> {
    let to = if Mutant::ClearedInPart.is_on() { to } else { to.next_multiple_of(PAGE) };
    let (start, len) = (entry.primary_offset() + from, to.min(entry.extent_len()) - from);
    medium.zero(start, len)?;
    if !entry.has(FLAG_SPARSE) {
        medium.reserve(start, len)?;
    }
    Ok(())
}

/// [`clear`] after a dead writer, whose lane was redone. The page of `from`, if never written, may
/// lose writes: it is zeroed whole, as its published bytes are zeros.
pub fn clear_left(medium: &dyn Medium, entry: &Entry, from: u64, to: u64) -> Result<()> {
    let first = from / PAGE * PAGE;
    let asked = from > first && !Mutant::ClearedInPart.is_on();
    let never_written = asked && !medium.unwritten(entry.primary_offset() + first, PAGE)?.is_empty();
    clear(medium, entry, if never_written { first } else { from }, to)
}

/// Writes an object's progress line; the caller owns its lane.
pub fn put_progress(medium: &dyn Medium, seed: u64, object: &Located, standing: &Standing) -> Result<()> {
    put_progress_at(medium, seed, object.offset, object.entry.id, standing)
}

/// [`put_progress`] for object `id` with the slot at `slot`.
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
