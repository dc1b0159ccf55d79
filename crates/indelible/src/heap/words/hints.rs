//! Places where free blocks may be, and where roots may. In memory alone, and not to be relied on:
//! each is looked up in a transaction. No root is missing among the places of roots.
//!
//! Threads look at different places first, so that their transactions seldom meet in a line of
//! allocation bytes.

use crate::heap::layout::CLASSES;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Groups of threads that look at the same place first.
const GROUPS: usize = 16;

/// The place where a thread allocates: a span's page, and the block behind the one that it got
/// last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) page: u64,
    pub(super) block: u64,
}

/// See the module.
pub(crate) struct Hints {
    /// For each class: page and block, or 0.
    spots: Box<[[AtomicU64; CLASSES]; GROUPS]>,
    /// The lowest and the highest offset of a root.
    bounds: [AtomicU64; 2],
    /// Whether the roots were looked at that the heap had before this attachment.
    looked: AtomicBool,
    shared: Mutex<Shared>,
}

struct Shared {
    /// Spans with free blocks, by page.
    spans: [BTreeSet<u64>; CLASSES],
    /// The first unsearched chunk.
    unseen: u64,
    /// Offsets at which roots begin, or did, or will if their transactions commit.
    roots: BTreeSet<u64>,
    /// Spans made of each class, which decides how long the next is.
    made: [usize; CLASSES],
}

impl Default for Hints {
    fn default() -> Self {
        let spots = [const { [const { AtomicU64::new(0) }; CLASSES] }; GROUPS];
        let spans = [const { BTreeSet::new() }; CLASSES];
        let shared = Shared { spans, unseen: 0, roots: BTreeSet::new(), made: [0; CLASSES] };
        let bounds = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Hints { spots: Box::new(spots), bounds, looked: AtomicBool::new(false), shared: Mutex::new(shared) }
    }
}

/// The group of the calling thread.
fn group() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Relaxed) % GROUPS;
    }
    // While the thread ends it has none.
    OWN.try_with(|own| *own).unwrap_or(0)
}

impl Hints {
    fn shared(&self) -> MutexGuard<'_, Shared> {
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

    /// A span of the class that may have free blocks, for the calling thread alone if threads are
    /// few.
    pub(super) fn take(&self, class: usize) -> Option<u64> {
        let mut shared = self.shared();
        let taken = |page: u64| self.spots.iter().any(|group| group[class].load(Relaxed) >> 16 == page);
        let page = shared.spans[class].iter().copied().find(|page| !taken(*page))?;
        shared.spans[class].remove(&page);
        Some(page)
    }

    /// A span has free blocks.
    pub(super) fn offer(&self, class: usize, page: u64) {
        self.shared().spans[class].insert(page);
    }

    /// The next unsearched chunk, of so many.
    pub(super) fn unseen(&self, chunks: u64) -> Option<u64> {
        let mut shared = self.shared();
        let next = shared.unseen;
        (next < chunks).then(|| {
            shared.unseen += 1;
            next
        })
    }

    /// A root begins at an offset, unless its transaction is undone.
    pub(super) fn add_root(&self, offset: u64) {
        self.shared().roots.insert(offset);
        self.bounds[0].fetch_min(offset, SeqCst);
        self.bounds[1].fetch_max(offset, SeqCst);
    }

    /// These are the roots that the heap had before.
    pub(super) fn add_roots(&self, offsets: &[u64]) {
        offsets.iter().for_each(|offset| self.add_root(*offset));
        self.looked.store(true, SeqCst);
    }

    /// Whether a root may begin in these bytes. `None`: the roots were not looked at yet.
    pub(super) fn may_have_root(&self, bytes: Range<u64>) -> Option<bool> {
        if !self.looked.load(SeqCst) {
            return None;
        }
        let [low, high] = [0, 1].map(|end| self.bounds[end].load(SeqCst));
        let between = bytes.start <= high && low < bytes.end;
        Some(between && self.shared().roots.range(bytes).next().is_some())
    }

    /// How many spans of the class were made before this one.
    pub(super) fn count_made(&self, class: usize) -> usize {
        let made = &mut self.shared().made[class];
        *made += 1;
        *made - 1
    }
}
