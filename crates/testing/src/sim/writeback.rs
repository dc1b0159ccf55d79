//! Failed write-back: the state of its pages, and the reports of the medium.

use super::errors::Asker;
use super::event::{EventKind, Extent};
use super::medium::{Shared, SimMedium};
use crate::seed::derived;
use indelible_store::medium::MediumError;

/// Maximum of operations between a failure and the eviction of its pages.
const SOON: u64 = 60;

impl Shared {
    /// Writing back failed. The pages of `event` are clean but lost, and all handles must be told.
    pub(super) fn lose(&mut self, holder: u64, event: EventKind, no_space: bool) {
        self.log(holder, event, Vec::new());
        self.errors.set(no_space);
        if self.evicts {
            let mut rng = derived(self.seed, self.recording.next());
            self.evict_at = rng.bool().then(|| self.operations + rng.u64(1..SOON));
        }
    }

    /// The error that a call of a handle must report, by the cursor that such calls share.
    pub(super) fn report(&mut self, holder: u64, whose: Asker) -> Result<(), MediumError> {
        let process = self.processes.entry(holder).or_default();
        self.errors.check_and_advance(&mut process.cursors[whose as usize])
    }

    /// Evicts pages that are clean but lost, some or all of them.
    pub(super) fn evict(&mut self, all: bool) {
        let mut rng = derived(self.seed, !self.recording.next());
        let model = self.recording.state_at(self.recording.next());
        let extents: Vec<Extent> =
            model.evicted(|| all || rng.bool(), &mut fastrand::Rng::with_seed(self.seed));
        if !extents.is_empty() {
            self.log(u64::MAX, EventKind::Evicted, extents);
        }
    }
}

impl SimMedium {
    /// Whether this handle has yet to be told of a write-back error: its next barrier, or its next
    /// durable write, or both fail.
    #[must_use]
    pub fn error_due(&self) -> bool {
        let shared = self.lock();
        let cursors = shared.processes.get(&self.holder).map(|process| process.cursors);
        cursors.is_some_and(|cursors| cursors.iter().any(|cursor| shared.errors.is_due(*cursor)))
    }

    /// The system tries to write pending pages back, and fails: a process is told by its next
    /// barrier or durable write.
    pub fn fail_writeback(&self, no_space: bool) {
        let everything = EventKind::WritebackFailed { offset: 0, len: self.length() };
        self.lock().lose(self.holder, everything, no_space);
    }

    /// Whether pages that are clean but lost are evicted by themselves, some operations after the
    /// failure.
    pub fn evict_by_itself(&self, evicts: bool) {
        self.lock().evicts = evicts;
    }

    /// Evicts every page that is clean but lost.
    pub fn evict(&self) {
        self.lock().evict(true);
    }

    /// Decides anew everything that is undefined while the medium runs.
    pub fn reseed(&self, seed: u64) {
        self.lock().seed = seed;
    }
}
