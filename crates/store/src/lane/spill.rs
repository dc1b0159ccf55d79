//! Batches of the table that its lane cannot hold: the *image*, a whole batch, lies in free space;
//! the lane has a batch of the same number that points to it.
//!
//! Invariants:
//! 1. The image is durable before the lane's batch is written.
//! 2. The image lies in space that is free in the table before and after the batch.
//! 3. The lane's batch is the last of its generation: the process that publishes or redoes it
//!    checkpoints the lane before it uses free space.

use super::{Batch, BatchView, LaneLog, scan};
use crate::error::{Part, Result, StoreError};
use crate::format::batch::{Header, Section, kind};
use crate::format::{DATA, LINE};
use crate::medium::{Medium, read_struct};

/// A batch that points to an image at `place`.
pub(crate) fn pointer(seed: u64, place: u64, image: &Batch) -> Batch {
    let mut batch = Batch::new();
    batch.begin(kind::SPILL, place, image.len());
    batch.set_progress(image.head_sum(), 0, 0);
    batch.seal(seed);
    batch
}

/// Visits the image of a batch in the lane; `after`: the log behind that batch.
///
/// # Errors
/// `Damaged`: the image is not the one that the batch states. Those of `visit`.
pub(crate) fn visit_spilled(
    medium: &dyn Medium,
    seed: u64,
    after: &LaneLog,
    section: &Section,
    visit: &mut dyn FnMut(&mut BatchView<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (offset, len) = (section.entry.get(), section.binding.get());
    let damaged = || StoreError::damaged(Part::Record, offset);
    let inside = offset.checked_add(len).is_some_and(|end| end <= medium.len());
    if offset < DATA || !offset.is_multiple_of(LINE) || len < LINE || !inside {
        return Err(damaged());
    }
    let header: Header = read_struct(medium, offset)?;
    if (header.head_sum, header.len) != (section.published, section.binding) {
        return Err(damaged());
    }
    let sequence = after.sequence.saturating_sub(1);
    let mut image = LaneLog { offset, len, generation: after.generation, sequence, tail: 0 };
    let mut found = false;
    scan(medium, seed, &mut image, &mut |batch| {
        found = true;
        match batch.sections.iter().all(|section| section.kind.get() == kind::TABLE) {
            true => visit(batch),
            false => Err(damaged()),
        }
    })?;
    if found { Ok(()) } else { Err(damaged()) }
}
