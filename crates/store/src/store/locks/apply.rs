//! Apply locks: a lane's process changes primaries of its objects, and another process may hold
//! them still, to read or to move them.
//!
//! At most one process *changes* a lane's primaries, and at most one *holds them still*. Both set
//! their mark and then look for the other's. If they meet, the changes give way: their process
//! begins none until the hold ends, and the hold waits for those begun.
//!
//! In memory a word of the pool has both marks; elsewhere locks are the marks. A kernel lock
//! ([`LockKey::ApplyGate`]) ends with the holder, and the first process blocked then takes its mark
//! back.
//!
//! The holder may change entries that the lane's process has in memory. It raises the lane's
//! *revision* before it publishes that, and the lane's process reads the revision at each change.
//!
//! Order: an apply lock is taken before the table's. A change under the table's lock asks once, and
//! does not wait.
//!
//! Invariants:
//! 1. `changing` and `HELD` are never both seen by the two that set them: each sets its own first,
//!    by an operation ordered with the other's, and gives way (`begin`) or waits (`hold`) if it
//!    finds the other.
//! 2. The revision rises only while the lane is held, once its log was redone and is durable in the
//!    primaries.
//! 3. A dead process's `HELD` is taken back only under that process's gate, so that it is no other
//!    process's.

use super::{Deadline, Patience, lock};
use crate::error::{Holder, Result, StoreError};
use crate::format::{apply_word, revision};
use crate::medium::{Device, LockKey, LockMode, Medium, read_struct};
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Mutex, Ordering, fence};
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Bit of a lane's word: its process changes primaries.
const CHANGING: u64 = 1;
/// Bit of a lane's word: a process holds them still.
const HELD: u64 = 2;

#[derive(Default)]
struct Own {
    changing: BTreeSet<u32>,
    held: BTreeSet<u32>,
}

pub(in crate::store) struct ApplyLocks {
    device: Arc<dyn Device>,
    patience: Arc<Patience>,
    own: Mutex<Own>,
}

impl ApplyLocks {
    pub(in crate::store) fn new(device: Arc<dyn Device>, patience: Arc<Patience>) -> Arc<Self> {
        Arc::new(ApplyLocks { device, patience, own: Mutex::default() })
    }

    fn word(&self, lane: u32) -> Option<&AtomicU64> {
        self.device.shared_word(apply_word(lane))
    }

    /// Clears the last process's marks for a new holder.
    pub(in crate::store) fn take_over(&self, lane: u32) {
        if let Some(word) = self.word(lane) {
            word.fetch_and(HELD, Ordering::AcqRel);
        }
    }

    pub(in crate::store) fn revision(&self, lane: u32) -> Result<u64> {
        match self.device.shared_word(revision(lane)) {
            Some(word) => Ok(word.load(Ordering::Acquire)),
            None => Ok(read_struct::<U64>(&*self.device, revision(lane))?.get()),
        }
    }

    /// One `begin` at a time, and an [`end`](Self::end) for each `true`. `false`: held still.
    pub(in crate::store) fn begin(&self, lane: u32) -> Result<bool> {
        if Mutant::HoldIgnored.is_on() {
            return Ok(true);
        }
        match self.word(lane) {
            Some(word) if begin(word) => Ok(true),
            Some(word) => Ok(self.take_back(lane, word)? && begin(word)),
            None => self.begin_by_locks(lane),
        }
    }

    fn begin_by_locks(&self, lane: u32) -> Result<bool> {
        let mut own = lock(&self.own);
        let key = LockKey::Apply(lane);
        if own.held.contains(&lane) || !self.device.try_lock(key, LockMode::Shared)? {
            return Ok(false);
        }
        match self.device.probe(LockKey::ApplyGate(lane)) {
            Ok(None) => {
                own.changing.insert(lane);
                Ok(true)
            }
            held => {
                self.device.unlock(key);
                held?;
                Ok(false)
            }
        }
    }

    fn take_back(&self, lane: u32, word: &AtomicU64) -> Result<bool> {
        let own = lock(&self.own);
        let gate = LockKey::ApplyGate(lane);
        if own.held.contains(&lane) || !self.device.try_lock(gate, LockMode::Shared)? {
            return Ok(false);
        }
        word.fetch_and(!HELD, Ordering::AcqRel);
        self.device.unlock(gate);
        Ok(true)
    }

    pub(in crate::store) fn is_wanted(&self, lane: u32) -> Result<bool> {
        match self.word(lane) {
            Some(word) => Ok(word.load(Ordering::Acquire) & HELD != 0),
            None => {
                let wanted = lock(&self.own).held.contains(&lane);
                Ok(wanted || self.device.probe(LockKey::ApplyGate(lane))?.is_some())
            }
        }
    }

    pub(in crate::store) fn is_held(&self, lane: u32) -> Result<bool> {
        match self.word(lane) {
            Some(word) if self.is_wanted(lane)? => Ok(!self.take_back(lane, word)?),
            Some(_) => Ok(false),
            None => self.is_wanted(lane),
        }
    }

    /// Whether a change is under way. If not, earlier reads of the lane saw only ended changes.
    pub(in crate::store) fn is_changing(&self, lane: u32) -> Result<bool> {
        if self.device.capabilities().byte_addressable {
            // Earlier reads precede the load.
            fence(Ordering::Acquire);
            let word = match self.word(lane) {
                Some(word) => word.load(Ordering::Acquire),
                // A read-only process has no words.
                None => read_struct::<u64>(&*self.device, apply_word(lane))?,
            };
            return Ok(word & CHANGING != 0);
        }
        if lock(&self.own).changing.contains(&lane) {
            return Ok(true);
        }
        // An exclusive lock is a hold's.
        Ok(self.device.probe(LockKey::Apply(lane))? == Some(LockMode::Shared))
    }

    /// Later holds see its stores.
    pub(in crate::store) fn end(&self, lane: u32) {
        match self.word(lane) {
            Some(word) => {
                word.fetch_and(!CHANGING, Ordering::AcqRel);
            }
            None => {
                let mut own = lock(&self.own);
                if own.changing.remove(&lane) {
                    self.device.unlock(LockKey::Apply(lane));
                }
            }
        }
    }

    pub(in crate::store) fn deadline(&self) -> Deadline {
        Deadline::of_a_moment(self.patience.get())
    }

    pub(in crate::store) fn pause(&self, lane: u32, deadline: &mut Deadline) -> Result<()> {
        if deadline.pause(|moment| self.device.pause(moment)) {
            return Ok(());
        }
        Err(self.still(lane, deadline))
    }

    pub(in crate::store) fn pause_or(&self, error: StoreError, deadline: &mut Deadline) -> Result<()> {
        if deadline.pause(|moment| self.device.pause(moment)) { Ok(()) } else { Err(error) }
    }

    pub(in crate::store) fn pause_changed(&self, lane: u32, deadline: &mut Deadline) -> Result<()> {
        if deadline.pause(|moment| self.device.pause(moment)) {
            return Ok(());
        }
        Err(self.changing(lane, deadline))
    }

    pub(in crate::store) fn refused(&self, lane: u32) -> StoreError {
        self.still(lane, &Deadline::after(std::time::Duration::ZERO))
    }

    fn still(&self, lane: u32, deadline: &Deadline) -> StoreError {
        let holder = if lock(&self.own).held.contains(&lane) {
            Holder::Own { writer: false }
        } else {
            let seen = self.device.holder(LockKey::ApplyGate(lane));
            seen.map_or(Holder::Unknown, |process| Holder::Process { process, writer: false })
        };
        StoreError::HeldStill { lane, seconds: deadline.seconds(), holder }
    }

    /// Holds a lane's primaries still until dropped: all is psynced, or announced as direct, and
    /// the lane gets no batch. `lives`: whether a process has the lane.
    ///
    /// # Errors
    /// `NeedsRecovery`: no process has the lane. `HeldStill`: another hold lasts too long.
    /// `Changing`: a change does not end.
    pub(in crate::store) fn hold(
        self: &Arc<Self>,
        lane: u32,
        lives: &dyn Fn() -> Result<bool>,
    ) -> Result<ApplyLock> {
        let mut deadline = self.deadline();
        while !lock(&self.own).held.insert(lane) {
            self.pause(lane, &mut deadline)?;
        }
        let mut held = ApplyLock { locks: self.clone(), lane, gate: false };
        while !self.device.try_lock(LockKey::ApplyGate(lane), LockMode::Exclusive)? {
            self.pause(lane, &mut deadline)?;
        }
        held.gate = true;
        if let Some(word) = self.word(lane) {
            word.fetch_or(HELD, Ordering::AcqRel);
        }
        while !self.is_still(lane)? {
            if !lives()? {
                return Err(StoreError::NeedsRecovery);
            }
            if !deadline.pause(|moment| self.device.pause(moment)) {
                return Err(self.changing(lane, &deadline));
            }
        }
        if lives()? { Ok(held) } else { Err(StoreError::NeedsRecovery) }
    }

    fn is_still(&self, lane: u32) -> Result<bool> {
        match self.word(lane) {
            Some(word) => Ok(word.load(Ordering::Acquire) & CHANGING == 0),
            // Locking it would only change the mode.
            None if lock(&self.own).changing.contains(&lane) => Ok(false),
            None => Ok(self.device.try_lock(LockKey::Apply(lane), LockMode::Exclusive)?),
        }
    }

    fn changing(&self, lane: u32, deadline: &Deadline) -> StoreError {
        let seen = self.device.holder(LockKey::Lane(lane));
        let holder = seen.map_or(Holder::Unknown, |process| Holder::Process { process, writer: true });
        StoreError::Changing { lane, seconds: deadline.seconds(), holder }
    }
}

fn begin(word: &AtomicU64) -> bool {
    if word.fetch_or(CHANGING, Ordering::AcqRel) & HELD == 0 {
        return true;
    }
    word.fetch_and(!CHANGING, Ordering::AcqRel);
    false
}

/// A hold of a lane's primaries, until dropped.
#[must_use]
pub struct ApplyLock {
    locks: Arc<ApplyLocks>,
    lane: u32,
    /// Whether it has the kernel lock.
    gate: bool,
}

impl ApplyLock {
    pub(in crate::store) fn revise(&self, medium: &dyn Medium) -> Result<()> {
        if Mutant::RevisionKept.is_on() {
            return Ok(());
        }
        if let Some(word) = self.locks.device.shared_word(revision(self.lane)) {
            word.fetch_add(1, Ordering::AcqRel);
            return Ok(());
        }
        let next = U64::new(self.locks.revision(self.lane)?.wrapping_add(1));
        Ok(medium.write(revision(self.lane), next.as_bytes())?)
    }

    /// Index of the lane.
    #[must_use]
    pub fn lane(&self) -> u32 {
        self.lane
    }
}

impl Drop for ApplyLock {
    fn drop(&mut self) {
        let (locks, lane) = (&self.locks, self.lane);
        let mut own = lock(&locks.own);
        if self.gate {
            match locks.word(lane) {
                Some(word) => {
                    word.fetch_and(!HELD, Ordering::AcqRel);
                }
                // The lock may be this process's change.
                None if !own.changing.contains(&lane) => locks.device.unlock(LockKey::Apply(lane)),
                None => {}
            }
            locks.device.unlock(LockKey::ApplyGate(lane));
        }
        own.held.remove(&lane);
    }
}
