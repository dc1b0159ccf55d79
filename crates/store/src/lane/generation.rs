//! The generation of a lane: one rule for attach, check and repair.
//!
//! Three witnesses state it: the two copies of the lane's header, and the header of the first
//! batch. Facts:
//!
//! 1. A checkpoint writes copy 0 durably, then copy 1 without durability. So copy 1 is at most one
//!    checkpoint behind, and copy 0 never. An acquisition from a holder that died or failed first
//!    writes one copy durably ([`LaneLog::take_over`]): a failed checkpoint may leave one copy
//!    torn, and the next checkpoint risks the other.
//! 2. No batch of a generation is written before copy 0, or the directory, states that generation
//!    durably.
//! 3. The first batch of a generation takes the place of the first batch of the one before.
//!
//! So the lane is in the highest generation of an intact witness: FORMAT.md, section 4, has the
//! cases. If none is intact, the lane is refused.

use super::LaneLog;
use crate::error::{Part, Result, StoreError};
use crate::format::batch;
use crate::format::lane::{BODY, HEADERS, Header};
use crate::format::{LINE, TABLE_LANE};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use zerocopy::IntoBytes;

/// The records that state the generation of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witnesses {
    /// The header copies; `None`: damaged. 0: never written.
    pub copies: [Option<u64>; 2],
    /// Generation of the first batch, if its header is intact.
    pub first: Option<u64>,
}

impl Witnesses {
    /// Reads the witnesses of the lane of `len` bytes at `offset`.
    pub fn read(medium: &dyn Medium, seed: u64, offset: u64, len: u64) -> Result<Witnesses> {
        let mut copies = [None; 2];
        for (generation, copy) in copies.iter_mut().zip(HEADERS) {
            let header: Header = read_struct(medium, offset + copy)?;
            *generation = header.generation(seed, offset);
        }
        // A format wrote both copies here, or copy 0 preceded copy 1: zeros are an erased copy.
        if offset == TABLE_LANE {
            copies = copies.map(|copy| copy.filter(|generation| *generation > 0));
        } else if copies[0] == Some(0) && copies[1] > Some(0) {
            copies[0] = None;
        }
        let mut first = None;
        if len >= BODY + LINE {
            let header: batch::Header = read_struct(medium, offset + BODY)?;
            let stated = header.generation.get();
            first = header.verify(seed, stated, 0, len - BODY).then_some(stated);
        }
        if Mutant::CopiesAlone.is_on() {
            first = None;
        }
        Ok(Witnesses { copies, first })
    }

    /// The lane's generation, at least the directory's `at_least`; `None`: unknown.
    #[must_use]
    pub fn generation(&self, at_least: u64) -> Option<u64> {
        // Rule L6 of docs/protocol.md.
        let first = self.first.filter(|first| *first >= at_least);
        let stated = self.copies.into_iter().flatten().max().map(|stated| stated.max(at_least));
        first.max(stated)
    }
}

impl LaneLog {
    /// The lane's log, without batches yet; `at_least`: the directory's generation.
    ///
    /// # Errors
    /// Damaged: the generation is unknown.
    pub fn read(medium: &dyn Medium, seed: u64, offset: u64, len: u64, at_least: u64) -> Result<Self> {
        let witnesses = Witnesses::read(medium, seed, offset, len)?;
        let unknown = StoreError::damaged(Part::LaneHeader, offset);
        Ok(LaneLog::at_start(offset, len, witnesses.generation(at_least).ok_or(unknown)?))
    }

    /// The lane's log for its next holder, in a generation that voids the lane's batches; the
    /// caller enters it in the directory.
    ///
    /// One header copy is durable first, and damaged copies are whole again. This rewrites the copy
    /// that may not be durable, so that a power cut leaves the other whole:
    ///
    /// | copies found | how that came | durable for certain | written |
    /// |---|---|---|---|
    /// | zeros | never used | both | none |
    /// | *g*, *g + 1* | given back ([`LaneLog::retire`]) | first | none |
    /// | *g*, *g* | checkpoint done | first | second |
    /// | *g*, *g + 2* | taken over from such a holder | first | second |
    /// | *g + n*, *g* | checkpoint cut short, or taken over from such a holder | second, by the barrier before | first |
    /// | *g*, damaged | the second was not durable | first | second |
    /// | damaged, *g* | checkpoint torn | second, by the barrier before | first |
    ///
    /// The generation skips one, to differ from that of a lane given back.
    pub fn take_over(&self, medium: &dyn Medium, seed: u64) -> Result<LaneLog> {
        let copies = Witnesses::read(medium, seed, self.offset, self.len)?.copies;
        let next = |by: u64| LaneLog::at_start(self.offset, self.len, self.generation + by);
        // Rule L7 of docs/protocol.md.
        let unsure = match copies {
            _ if Mutant::GenerationUnstated.is_on() => return Ok(next(1)),
            [Some(0), Some(0)] => return Ok(next(1)),
            [Some(first), Some(second)] if second == first + 1 => return Ok(next(1)),
            // An interrupted checkpoint: the first may not be durable.
            [Some(first), Some(second)] if first > second && !Mutant::SureCopyRisked.is_on() => 0,
            [Some(_), _] => 1,
            [None, _] => 0,
        };
        let log = next(2);
        let header = Header::new(seed, self.offset, log.generation);
        medium.write_durable(self.offset + HEADERS[unsure], header.as_bytes())?;
        if copies == [None, None] {
            medium.write(self.offset + HEADERS[1 - unsure], header.as_bytes())?;
        }
        Ok(log)
    }
}
