use super::choice::Choice;
use super::cut::{CrashImage, Cut};
use super::event::{Event, EventKind, Extent};
use super::fault::{Fault, OpKind};
use super::images::{CrashImages, Limits};
use super::medium::{SECTOR, SimMedium};
use super::model::Model;
use crate::seed::derived;
use indelible_store::medium::{LockKey, LockMode};

impl CrashImage {
    /// An independent medium with the image: nothing pending, no locks, an empty log.
    #[must_use]
    pub fn medium(&self) -> SimMedium {
        SimMedium::holding(
            self.contents.clone(),
            self.blocks.after_cut(&self.contents),
            self.len,
            self.config,
        )
    }
}

impl SimMedium {
    /// Kills the process of this handle: its locks are free, its later operations fail, its writes
    /// stay visible.
    pub fn kill(&self) {
        self.lock().kill(self.holder);
    }

    /// Calls `look`, which must not use the medium, when a fault ends a process.
    pub fn at_death(&self, look: impl FnMut() + Send + 'static) {
        self.lock().at_death = Some(Box::new(look));
    }

    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock().processes.get(&self.holder).is_none_or(|process| process.dead)
    }

    #[must_use]
    pub fn locks_held(&self) -> Vec<(LockKey, LockMode)> {
        self.lock().locks.held_by(self.holder)
    }

    /// Makes the `nth` operation of its kind from now on, of any handle, fail; 0 is the next one.
    pub fn fail_at(&self, kind: OpKind, nth: u64, fault: Fault) {
        self.lock().faults.plan(kind, nth, false, fault);
    }

    pub fn fail_from(&self, kind: OpKind, nth: u64, fault: Fault) {
        self.lock().faults.plan(kind, nth, true, fault);
    }

    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    #[must_use]
    pub fn count(&self, kind: OpKind) -> u64 {
        self.lock().faults.count(kind)
    }

    #[must_use]
    pub fn faults_met(&self) -> u64 {
        self.lock().faults.met()
    }

    /// Notes in the log a promise that the test got, or a request that it is about to make. An
    /// image has the marks before its cut.
    pub fn mark(&self, mark: u64) {
        self.lock().log(self.holder, EventKind::Mark(mark), Vec::new());
    }

    #[must_use]
    pub fn events(&self) -> Vec<(u64, Event)> {
        let recording = &self.lock().recording;
        (recording.first..).zip(recording.events.iter().cloned()).collect()
    }

    pub fn forget_log(&self) {
        let recording = &mut self.lock().recording;
        let next = recording.next();
        recording.base = recording.state_at(next);
        recording.base.forget_marks();
        recording.first = next;
        recording.events.clear();
    }

    pub fn settle(&self) {
        let mut shared = self.lock();
        let (contents, len) = (shared.volatile.clone(), shared.len);
        shared.blocks.settle();
        let blocks = shared.blocks.clone();
        let recording = &mut shared.recording;
        recording.first = recording.next();
        recording.events.clear();
        recording.base = Model::settled(contents, blocks, len, self.config.tear_unit);
    }

    /// All images that power cuts during the log may leave, within limits.
    #[must_use]
    pub fn power_cut_states(&self, limits: &Limits) -> CrashImages {
        CrashImages::new(self.lock().recording.clone(), *limits)
    }

    #[must_use]
    pub fn power_cut(&self, choice: Choice) -> CrashImage {
        let before = self.lock().recording.next();
        self.crash_at(Cut { before, choice })
    }

    #[must_use]
    pub fn crash_at(&self, cut: Cut) -> CrashImage {
        let recording = &self.lock().recording;
        let range = recording.first..=recording.next();
        assert!(range.contains(&cut.before), "{cut} lies outside of the log, {range:?}");
        recording.image(&recording.state_at(cut.before), cut)
    }

    /// Flips one bit at rest, which makes its unit durable.
    pub fn flip(&self, offset: u64, bit: u32) {
        assert!(offset < self.lock().len && bit < 8, "bit {bit} at {offset} does not exist");
        let mut shared = self.lock();
        let mut byte = [0];
        shared.volatile.read(offset, &mut byte);
        let extent = Extent::bytes(offset, &[byte[0] ^ 1 << bit]);
        shared.log(self.holder, EventKind::Damage, vec![extent]);
    }

    /// Fills a range with noise at rest, which makes its units durable.
    pub fn scribble(&self, range: std::ops::Range<u64>, seed: u64) {
        assert!(range.start <= range.end && range.end <= self.lock().len, "{range:?} is out of bounds");
        let mut bytes = vec![0; (range.end - range.start) as usize];
        derived(seed, range.start).fill(&mut bytes);
        let extent = Extent::bytes(range.start, &bytes);
        self.lock().log(self.holder, EventKind::Damage, vec![extent]);
    }

    /// Makes the sectors of a range unreadable until they are written.
    pub fn spoil(&self, range: std::ops::Range<u64>) {
        assert!(range.start <= range.end && range.end <= self.lock().len, "{range:?} is out of bounds");
        self.lock().spoiled.extend(range.start / SECTOR..range.end.div_ceil(SECTOR));
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.lock().len).unwrap_or(usize::MAX)];
        self.lock().volatile.read(0, &mut bytes);
        bytes
    }

    #[must_use]
    pub fn digest(&self) -> u64 {
        self.lock().volatile.digest()
    }
}
