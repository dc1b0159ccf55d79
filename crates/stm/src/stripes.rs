//! The stripes: for each cache line a shared word with the sequence number of its last commit, or
//! its owner.

use super::sync::{AtomicU64, Ordering};

pub(crate) const LINE: usize = 64;

/// Free: the last commit's sequence number. Owned: bit 63; the owner in bits 32 to 62; below the
/// newest of the owner's lines on the stripe. So an owned stripe exceeds every number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State(u64);

const OWNED: u64 = 1 << 63;

impl State {
    #[inline]
    pub(crate) const fn free(sequence: u64) -> State {
        State(sequence)
    }

    #[inline]
    pub(crate) const fn owned(owner: u32, line: u32) -> State {
        State(OWNED | (owner as u64) << 32 | line as u64)
    }

    #[inline]
    pub(crate) const fn is_owned(self) -> bool {
        self.0 >= OWNED
    }

    #[inline]
    pub(crate) const fn is_owner(self, owner: u32) -> bool {
        self.0 >> 32 == OWNED >> 32 | owner as u64
    }

    #[inline]
    pub(crate) const fn line(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) const fn sequence(self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
pub(crate) struct Stripes {
    words: Box<[AtomicU64]>,
    bits: u32,
}

impl Stripes {
    pub(crate) fn new(bits: u32) -> Self {
        Stripes { words: (0..1_usize << bits).map(|_| AtomicU64::new(0)).collect(), bits }
    }

    /// Adjacent lines have adjacent stripes; the upper bits are folded in, so that starts of large
    /// objects do not share one.
    #[inline]
    pub(crate) fn of(&self, address: usize) -> usize {
        let line = address / LINE;
        (line ^ line >> self.bits) & (self.words.len() - 1)
    }

    #[inline]
    pub(crate) fn look(&self, stripe: usize) -> State {
        State(self.words[stripe].load(Ordering::Acquire))
    }

    /// Whether the stripe is unchanged. A fence in front orders it after the reads.
    #[inline]
    pub(crate) fn is_still(&self, stripe: usize, seen: State) -> bool {
        self.words[stripe].load(Ordering::Relaxed) == seen.0
    }

    #[inline]
    pub(crate) fn take(&self, stripe: usize, seen: State, own: State) -> bool {
        self.words[stripe].compare_exchange(seen.0, own.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Names another line of the same owner. Only the owner reads it.
    #[inline]
    pub(crate) fn rename(&self, stripe: usize, own: State) {
        self.words[stripe].store(own.0, Ordering::Relaxed);
    }

    /// Releases an owned stripe. A thread that sees this sees all stores to its lines.
    #[inline]
    pub(crate) fn release(&self, stripe: usize, state: State) {
        self.words[stripe].store(state.0, Ordering::Release);
    }
}
