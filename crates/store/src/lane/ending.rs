//! How a lane ends: one judgement for attach, check and repair.
//!
//! A lane has, behind its last valid batch, nothing, an interrupted commit, or a damaged durable
//! batch, proved by a later intact batch or by the record of applied table batches. A lane with a
//! damaged batch is refused: it may have been applied.

use super::{LaneLog, Witnesses};
use crate::error::{Result, StoreError};
use crate::format::batch::{Header, MAGIC};
use crate::format::root::Applied;
use crate::format::{APPLIED, LINE, TABLE_LANE};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use std::fmt;
use std::ops::RangeInclusive;
use zerocopy::FromBytes;

const PIECE: u64 = 1 << 20;
const NEAR: u64 = 64 << 10;
const FAR: u64 = 1 << 20;

/// State of the lane behind the last batch that verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing.
    Clean,
    /// An incomplete batch: an interrupted commit, or a last batch damaged at rest.
    Torn {
        /// An intact batch of the same durable write, lost with a damaged one at the end.
        beside: Option<u64>,
    },
    /// A batch that had been durable is damaged.
    Damaged {
        /// Evidence of its durability.
        proof: Proof,
    },
}

/// Evidence that the batch at a lane's end was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A later intact batch.
    Behind(u64),
    /// Number of applied batches of the table's lane.
    Applied(u64),
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Behind(batch) => write!(f, "batch {batch} behind it is intact"),
            Proof::Applied(batches) => write!(f, "{batches} batches of the table were applied"),
        }
    }
}

/// How far to search behind a lane without a begun batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// As much as the log holds, between 64 KiB and 1 MiB: recovery costs about one read of the
    /// log.
    Near,
    /// The whole lane.
    Whole,
}

/// Judges the end of the lane behind `log`, which has every valid batch.
pub fn ending(medium: &dyn Medium, seed: u64, log: &LaneLog, search: Search) -> Result<Ending> {
    let mut generations = log.generation..=log.generation;
    if log.sequence == 0 {
        // Without copy 0 the lane may be one generation further if its first batch is damaged.
        let witnesses = Witnesses::read(medium, seed, log.offset, log.len)?;
        if witnesses.copies[0].is_none() {
            generations = log.generation..=log.generation.saturating_add(1);
        }
    }
    if log.offset == TABLE_LANE && !Mutant::AppliedIgnored.is_on() {
        let applied = read_struct::<Applied>(medium, APPLIED)?.of(seed, log.generation);
        if applied > log.sequence {
            return Ok(Ending::Damaged { proof: Proof::Applied(applied) });
        }
    }
    let begun = begun(medium, seed, log)?;
    let reach = match search {
        Search::Near if !begun => log.used().clamp(NEAR, FAR),
        _ => log.len,
    };
    let later = later(medium, seed, log, generations, reach)?;
    Ok(match later {
        Some(Later { sequence, proves_damage: true }) => Ending::Damaged { proof: Proof::Behind(sequence) },
        Some(Later { sequence, .. }) => Ending::Torn { beside: Some(sequence) },
        None if begun => Ending::Torn { beside: None },
        None => Ending::Clean,
    })
}

/// Fails if a durable batch behind `log`, which has every valid one, is damaged.
pub fn expect_sound(medium: &dyn Medium, seed: u64, log: &LaneLog, search: Search) -> Result<()> {
    match ending(medium, seed, log, search)? {
        Ending::Clean | Ending::Torn { .. } => Ok(()),
        Ending::Damaged { proof } => Err(damaged(log, proof.to_string())),
    }
}

pub(crate) fn damaged(log: &LaneLog, proof: String) -> StoreError {
    StoreError::BatchDamaged { sequence: log.sequence, offset: log.position(), proof }
}

struct Later {
    sequence: u64,
    proves_damage: bool,
}

fn later(
    medium: &dyn Medium,
    seed: u64,
    log: &LaneLog,
    generations: RangeInclusive<u64>,
    reach: u64,
) -> Result<Option<Later>> {
    let mut found = None;
    let end = (log.offset + log.len).min(log.position().saturating_add(reach));
    let mut at = log.position() + LINE;
    let mut piece = Vec::new();
    while at < end {
        piece.resize((end - at).min(PIECE) as usize, 0);
        medium.read(at, &mut piece)?;
        for (index, line) in piece.chunks_exact(LINE as usize).enumerate() {
            if line[..4] != MAGIC.to_le_bytes() {
                continue;
            }
            let Ok(header) = Header::read_from_bytes(line) else { continue };
            let room = log.offset + log.len - at - index as u64 * LINE;
            let (generation, sequence) = (header.generation.get(), header.sequence.get());
            if sequence > log.sequence
                && generations.contains(&generation)
                && header.verify(seed, generation, sequence, room)
            {
                let proves_damage = header.durable.get() > log.sequence;
                let later = Later { sequence, proves_damage };
                if proves_damage {
                    return Ok(Some(later));
                }
                found = found.or(Some(later));
            }
        }
        at += piece.len() as u64;
    }
    Ok(found)
}

fn begun(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<bool> {
    if !log.fits(LINE) {
        return Ok(false);
    }
    let found: Header = read_struct(medium, log.position())?;
    let is_intact = found.head_sum.get() == found.sum(seed);
    let signs = [
        found.magic.get() == MAGIC,
        found.generation.get() == log.generation,
        found.sequence.get() == log.sequence,
    ];
    let fitting = signs.iter().filter(|sign| **sign).count();
    Ok(fitting == signs.len() || (fitting == 2 && !is_intact && log.sequence > 0))
}
