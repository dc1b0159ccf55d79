//! The steps of a commit: sequence, validate, tell the sink, store, release.
//!
//! The number is taken while the transaction owns all that it changes; then its reads are
//! validated. So the numbers are a serial order. Stripes are held from the first store to the last
//! change in memory, never across a wait for a medium.
//!
//! # Invariants
//!
//! 1. The words of the write set exist and may be stored to, as the storing callers promised.
//! 2. The transaction owns their stripes: no other thread stores to them.

use super::access::WORD;
use super::descriptor::{Descriptor, Phase};
use super::error::{CommitError, Conflict};
use super::memory::Memory;
use super::mutant::Mutant;
use super::sink::{Receipt, Sink};
use super::sync::{Ordering, fence};
use super::write_set::bits;

impl<M: Memory, S: Sink> Descriptor<M, S> {
    /// Commits and waits for the sink's acknowledgement. After an error other than `Unacknowledged`
    /// the caller must abort.
    #[inline(always)]
    pub(crate) fn commit(&mut self) -> Result<Receipt, CommitError<S::Error>> {
        if self.phase != Phase::Running {
            return Err(Conflict.into());
        }
        if self.stm.gate.is_forked() {
            return Err(CommitError::Forked);
        }
        let receipt = if self.writes.is_empty() { self.receipt_of_reader() } else { self.commit_changes()? };
        self.leave();
        self.contention.settle();
        if let Err(error) = self.stm.sink.acknowledge(&mut self.own, receipt) {
            self.actions.forget();
            return Err(CommitError::Unacknowledged(error));
        }
        self.actions.committed();
        Ok(receipt)
    }

    /// All reads were valid at its snapshot.
    fn receipt_of_reader(&self) -> Receipt {
        let newest = self.reads.iter().map(|(_, seen)| seen.sequence()).max();
        let newest_read = newest.map_or(0, |newest| newest.max(self.stm.alone_until()));
        Receipt { sequence: 0, newest_read }
    }

    #[inline(always)]
    fn commit_changes(&mut self) -> Result<Receipt, CommitError<S::Error>> {
        let stopped = self.stm.broken.is(Mutant::ClockStopped);
        let sequence = if stopped { self.stm.clock.now() } else { self.stm.clock.tick() };
        self.phase = Phase::Sequenced(sequence);
        // Without a commit since the snapshot, it still holds.
        let must_look = sequence != self.snapshot + 1 && !self.stm.broken.is(Mutant::Unvalidated);
        if must_look && !self.is_valid() {
            return Err(Conflict.into());
        }
        if let Err(error) = self.stm.sink.commit(&mut self.own, sequence, &self.writes) {
            self.phase = Phase::Running;
            return Err(CommitError::Refused(error));
        }
        self.phase = Phase::Storing(sequence);
        if self.stm.broken.is(Mutant::ReleasedFirst) {
            self.release(sequence);
            super::sync::yield_now();
        }
        self.store();
        self.stm.sink.stored(&mut self.own, sequence);
        if !self.stm.broken.is(Mutant::ReleasedFirst) {
            self.release(sequence);
        }
        Ok(Receipt { sequence, newest_read: self.snapshot })
    }

    #[inline]
    fn store(&self) {
        fence(Ordering::Release);
        for line in self.writes.lines.iter().filter(|line| !line.in_place) {
            for (word, changed) in line.changed_words() {
                let (address, value) = (line.address + word * WORD, line.words[word]);
                // SAFETY: the word exists (1), and no other thread stores to it (2).
                unsafe { self.stm.memory.store(address, value, bits(changed)) };
            }
        }
    }
}
