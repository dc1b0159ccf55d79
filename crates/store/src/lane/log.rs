//! The end of a lane: where its next batch goes.
//!
//! Invariants:
//! 1. Valid batches of `generation` lie back to back from the start of the body to `tail`, numbered
//!    from 0 to `sequence - 1`.
//! 2. No batch of `generation` is written before that generation is durable (in the lane's header
//!    or in the directory): otherwise recovery would take batches of an earlier lap for the present
//!    ones.

use crate::error::Result;
use crate::format::PAGE;
use crate::format::lane::{BODY, HEADERS, Header};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use zerocopy::IntoBytes;

/// Position in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLog {
    /// First byte of the lane in the pool.
    pub offset: u64,
    /// Length of the lane in bytes.
    pub len: u64,
    /// Generation whose batches count.
    pub generation: u64,
    /// Number of the next batch.
    pub sequence: u64,
    /// Offset of the next batch, from the start of the lane.
    pub tail: u64,
}

impl LaneLog {
    /// The empty log of a generation that is durable already.
    #[must_use]
    pub fn at_start(offset: u64, len: u64, generation: u64) -> Self {
        LaneLog { offset, len, generation, sequence: 0, tail: BODY }
    }

    /// Whether the lane is still in this generation, as far as the first header copy tells: it is
    /// the first to be written when there is a next. False also if it is damaged.
    pub fn is_current(&self, medium: &dyn Medium, seed: u64) -> Result<bool> {
        let header: Header = read_struct(medium, self.offset + HEADERS[0])?;
        Ok(header.generation(seed, self.offset) == Some(self.generation))
    }

    /// Writes both headers of an unused lane; not durable.
    pub fn initialise(medium: &dyn Medium, seed: u64, offset: u64, generation: u64) -> Result<()> {
        for copy in HEADERS {
            medium.write(offset + copy, Header::new(seed, offset, generation).as_bytes())?;
        }
        Ok(())
    }

    /// Whether both are positions in one generation of one lane.
    #[must_use]
    pub fn is_of_generation(&self, other: &LaneLog) -> bool {
        (self.offset, self.len, self.generation) == (other.offset, other.len, other.generation)
    }

    /// Whether `bytes` more fit.
    #[must_use]
    pub fn fits(&self, bytes: u64) -> bool {
        self.tail.saturating_add(bytes) <= self.len
    }

    /// Bytes a batch may have at most, in an empty lane.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.len - BODY
    }

    /// Bytes of batches in the lane.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.tail - BODY
    }

    /// Offset of the next batch in the pool.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset + self.tail
    }

    /// Starts the next generation: everything in the lane is void once this returns.
    ///
    /// The caller has made durable, by a barrier, all that the batches redo. That barrier also made
    /// the second header copy of the present generation durable, so that tearing the first here
    /// leaves a header that verifies.
    pub fn next_generation(&mut self, medium: &dyn Medium, seed: u64) -> Result<()> {
        // Rules L4 and L5 of docs/protocol.md.
        let generation = self.generation + u64::from(!Mutant::SameGeneration.is_on());
        let header = Header::new(seed, self.offset, generation);
        medium.write_durable(self.offset + HEADERS[0], header.as_bytes())?;
        *self = LaneLog::at_start(self.offset, self.len, generation);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// States the generation in the second copy of the header once more, durable after the next
    /// barrier: an earlier process may have failed to write it back, and a barrier of this process
    /// does not tell. In a checkpoint the first copy is at risk next.
    pub fn state_again(&self, medium: &dyn Medium, seed: u64) -> Result<()> {
        let header = Header::new(seed, self.offset, self.generation);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// Voids the lane's batches for its next holder, not durably: nothing in it matters any more,
    /// this only spares a scan. The lane must not be appended to afterwards.
    ///
    /// It goes to the second copy, which may not be durable yet. The caller has started a
    /// generation here, so that the first one is.
    pub fn retire(&self, medium: &dyn Medium, seed: u64) -> Result<()> {
        let header = Header::new(seed, self.offset, self.generation + 1);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// Makes batches durable that are only known to be visible: the process that wrote them may
    /// have died, or failed, before it was. Without batches that is the generation, else the
    /// batches from `from` on.
    pub fn confirm(&self, medium: &dyn Medium, seed: u64, from: u64) -> Result<()> {
        // Rule L8 of docs/protocol.md.
        if Mutant::VisibleIsDurable.is_on() {
            return Ok(());
        }
        if self.sequence == 0 {
            let header = Header::new(seed, self.offset, self.generation);
            medium.write_durable(self.offset + HEADERS[0], header.as_bytes())?;
            // A barrier that failed may have been the second copy's: the next one is to make it
            // durable, before the first is risked.
            return Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?);
        }
        Ok(medium.persist(from, self.position().saturating_sub(from))?)
    }

    /// Length that lane `index` of a pool of this size is made with: large enough that checkpoints
    /// are rare. Lanes 0 to 3 have a 32nd of the pool, the next four a quarter of that, the next
    /// four a ninth, and so on: all 128 together leave most of the pool to objects.
    #[must_use]
    pub fn default_len(pool_len: u64, index: u32) -> u64 {
        let group = u64::from(index / 4 + 1);
        (pool_len / 32 / (group * group)).clamp(16 * PAGE, 8 << 20) / PAGE * PAGE
    }

    /// Length of a lane that has room for a batch of so many bytes.
    #[must_use]
    pub fn len_for(bytes: u64) -> u64 {
        let len = bytes.saturating_add(2 * PAGE);
        let unit = len.min(1 << 20).next_power_of_two();
        len.next_multiple_of(unit)
    }
}
