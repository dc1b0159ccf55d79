use super::errors::Asker;
use super::event::{EventKind, Extent};
use super::medium::{Shared, SimMedium};
use crate::seed::derived;
use indelible_store::medium::MediumError;

const SOON: u64 = 60;

impl Shared {
    pub(super) fn lose(&mut self, holder: u64, event: EventKind, no_space: bool) {
        self.log(holder, event, Vec::new());
        self.errors.set(no_space);
        if self.evicts {
            let mut rng = derived(self.seed, self.recording.next());
            self.evict_at = rng.bool().then(|| self.operations + rng.u64(1..SOON));
        }
    }

    pub(super) fn report(&mut self, holder: u64, whose: Asker) -> Result<(), MediumError> {
        let process = self.processes.entry(holder).or_default();
        self.errors.check_and_advance(&mut process.cursors[whose as usize])
    }

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
    #[must_use]
    pub fn error_due(&self) -> bool {
        let shared = self.lock();
        let cursors = shared.processes.get(&self.holder).map(|process| process.cursors);
        cursors.is_some_and(|cursors| cursors.iter().any(|cursor| shared.errors.is_due(*cursor)))
    }

    /// The system fails to write pending pages back; the next barrier or durable write reports it.
    pub fn fail_writeback(&self, no_space: bool) {
        let everything = EventKind::WritebackFailed { offset: 0, len: self.length() };
        self.lock().lose(self.holder, everything, no_space);
    }

    pub fn evict_by_itself(&self, evicts: bool) {
        self.lock().evicts = evicts;
    }

    pub fn evict(&self) {
        self.lock().evict(true);
    }

    pub fn reseed(&self, seed: u64) {
        self.lock().seed = seed;
    }
}
