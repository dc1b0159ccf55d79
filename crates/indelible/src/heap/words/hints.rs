//! Hints for free blocks and roots, which a transaction verifies. No root is missing.
//!
//! Threads start at different places: their transactions seldom meet in a line of allocation bytes.

use crate::heap::layout::CLASSES;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

const GROUPS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) page: u64,
    pub(super) block: u64,
}

pub(crate) struct Hints {
    spots: Box<[[AtomicU64; CLASSES]; GROUPS]>,
    bounds: [AtomicU64; 2],
    looked: AtomicBool,
    shared: Mutex<HintSets>,
}

struct HintSets {
    spans: [BTreeSet<u64>; CLASSES],
    unseen: u64,
    roots: BTreeSet<u64>,
    made: [usize; CLASSES],
}

impl Default for Hints {
    fn default() -> Self {
        let spots = [const { [const { AtomicU64::new(0) }; CLASSES] }; GROUPS];
        let spans = [const { BTreeSet::new() }; CLASSES];
        let shared = HintSets { spans, unseen: 0, roots: BTreeSet::new(), made: [0; CLASSES] };
        let bounds = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Hints { spots: Box::new(spots), bounds, looked: AtomicBool::new(false), shared: Mutex::new(shared) }
    }
}

fn group() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Relaxed) % GROUPS;
    }
    OWN.try_with(|own| *own).unwrap_or(0)
}

impl Hints {
    fn shared(&self) -> MutexGuard<'_, HintSets> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spot(&self, class: usize) -> Option<Spot> {
        let bits = self.spots[group()][class].load(Relaxed);
        (bits != 0).then_some(Spot { page: bits >> 16, block: bits & 0xffff })
    }

    pub(super) fn set_spot(&self, class: usize, spot: Option<Spot>) {
        let bits = spot.map_or(0, |spot| spot.page << 16 | spot.block & 0xffff);
        self.spots[group()][class].store(bits, Relaxed);
    }

    pub(super) fn take(&self, class: usize) -> Option<u64> {
        let mut shared = self.shared();
        let taken = |page: u64| self.spots.iter().any(|group| group[class].load(Relaxed) >> 16 == page);
        let page = shared.spans[class].iter().copied().find(|page| !taken(*page))?;
        shared.spans[class].remove(&page);
        Some(page)
    }

    pub(super) fn offer(&self, class: usize, page: u64) {
        self.shared().spans[class].insert(page);
    }

    pub(super) fn unseen(&self, chunks: u64) -> Option<u64> {
        let mut shared = self.shared();
        let next = shared.unseen;
        (next < chunks).then(|| {
            shared.unseen += 1;
            next
        })
    }

    pub(super) fn add_root(&self, offset: u64) {
        self.shared().roots.insert(offset);
        self.bounds[0].fetch_min(offset, SeqCst);
        self.bounds[1].fetch_max(offset, SeqCst);
    }

    pub(super) fn add_roots(&self, offsets: &[u64]) {
        offsets.iter().for_each(|offset| self.add_root(*offset));
        self.looked.store(true, SeqCst);
    }

    pub(super) fn may_have_root(&self, bytes: Range<u64>) -> Option<bool> {
        if !self.looked.load(SeqCst) {
            return None;
        }
        let [low, high] = [0, 1].map(|end| self.bounds[end].load(SeqCst));
        let between = bytes.start <= high && low < bytes.end;
        Some(between && self.shared().roots.range(bytes).next().is_some())
    }

    pub(super) fn count_made(&self, class: usize) -> usize {
        let made = &mut self.shared().made[class];
        *made += 1;
        *made - 1
    }
}
