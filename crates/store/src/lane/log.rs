//! The end of a lane: where its next batch goes.
//!
//! Invariants:
//! 1. The valid batches of `generation` lie back to back from the start of the body to `tail`,
//!    numbered from 0 to `sequence - 1`.
//! 2. No batch of `generation` is written before that generation is durable in the lane's header or
//!    the directory.

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
    /// The empty log of a durable generation.
    #[must_use]
    pub fn at_start(offset: u64, len: u64, generation: u64) -> Self {
        LaneLog { offset, len, generation, sequence: 0, tail: BODY }
    }

    /// Whether header copy 0, which a checkpoint writes first, states this generation.
    pub fn is_current(&self, medium: &dyn Medium, seed: u64) -> Result<bool> {
        let header: Header = read_struct(medium, self.offset + HEADERS[0])?;
        Ok(header.generation(seed, self.offset) == Some(self.generation))
    }

    /// Writes both headers of an unused lane, not durably.
    pub fn initialise(medium: &dyn Medium, seed: u64, offset: u64, generation: u64) -> Result<()> {
        for copy in HEADERS {
            medium.write(offset + copy, Header::new(seed, offset, generation).as_bytes())?;
        }
        Ok(())
    }

    /// Whether both logs are of one generation of one lane.
    #[must_use]
    pub fn is_of_generation(&self, other: &LaneLog) -> bool {
        (self.offset, self.len, self.generation) == (other.offset, other.len, other.generation)
    }

    /// Whether `bytes` more fit.
    #[must_use]
    pub fn fits(&self, bytes: u64) -> bool {
        self.tail.saturating_add(bytes) <= self.len
    }

    /// Most bytes of a batch.
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

    /// Starts the next generation, which voids the lane's batches, once the caller's barrier made
    /// their redo and the second header copy durable.
    pub fn next_generation(&mut self, medium: &dyn Medium, seed: u64) -> Result<()> {
        // Rules L4 and L5 of docs/protocol.md.
        let generation = self.generation + u64::from(!Mutant::SameGeneration.is_on());
        let header = Header::new(seed, self.offset, generation);
        medium.write_durable(self.offset + HEADERS[0], header.as_bytes())?;
        *self = LaneLog::at_start(self.offset, self.len, generation);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// Voids the lane's batches once all that was written before is durable.
    pub(crate) fn checkpoint(&mut self, medium: &dyn Medium, seed: u64) -> Result<()> {
        self.state_again(medium, seed)?;
        if !Mutant::EarlyTableCheckpoint.is_on() {
            medium.barrier()?;
        }
        self.next_generation(medium, seed)
    }

    /// Rewrites the second header copy, as the next checkpoint risks the first.
    pub fn state_again(&self, medium: &dyn Medium, seed: u64) -> Result<()> {
        let header = Header::new(seed, self.offset, self.generation);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// Voids the lane's batches by the second header copy, not durably, to spare the next holder a
    /// scan.
    pub fn retire(&self, medium: &dyn Medium, seed: u64) -> Result<()> {
        let header = Header::new(seed, self.offset, self.generation + 1);
        Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?)
    }

    /// Makes durable what may only be visible: the batches from `from` on or, without batches, the
    /// generation.
    pub fn confirm(&self, medium: &dyn Medium, seed: u64, from: u64) -> Result<()> {
        // Rule L8 of docs/protocol.md.
        if Mutant::VisibleIsDurable.is_on() {
            return Ok(());
        }
        if self.sequence == 0 {
            let header = Header::new(seed, self.offset, self.generation);
            medium.write_durable(self.offset + HEADERS[0], header.as_bytes())?;
            // The second copy must be durable before the first is risked.
            return Ok(medium.write(self.offset + HEADERS[1], header.as_bytes())?);
        }
        Ok(medium.persist(from, self.position().saturating_sub(from))?)
    }

    /// Length of lane `index`: for rare checkpoints, with most of the pool left to objects. Lanes 0
    /// to 3 get a 32nd of the pool each, the next four a quarter of that, the next four a ninth,
    /// and so on.
    #[must_use]
    pub fn default_len(pool_len: u64, index: u32) -> u64 {
        let group = u64::from(index / 4 + 1);
        (pool_len / 32 / (group * group)).clamp(16 * PAGE, 8 << 20) / PAGE * PAGE
    }

    /// Length of a lane with room for a batch of `bytes`.
    #[must_use]
    pub fn len_for(bytes: u64) -> u64 {
        let len = bytes.saturating_add(2 * PAGE);
        let unit = len.min(1 << 20).next_power_of_two();
        len.next_multiple_of(unit)
    }
}
