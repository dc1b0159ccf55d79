//! The table of stripes: for each cache line of the address space a word, shared with other lines,
//! that has the sequence number of the last commit to it, or its owner.

use super::sync::{AtomicU64, Ordering};

/// Bytes of a line: the unit of conflicts, and of logging.
pub(crate) const LINE: usize = 64;

/// The content of a stripe's word.
///
/// Free: the sequence number of the last commit. Owned: bit 63; the owner in bits 32 to 62; in the
/// others the newest of the owner's lines that are on the stripe. So an owned stripe is beyond
/// every number.
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

    /// The owner's line, in an owned stripe.
    #[inline]
    pub(crate) const fn line(self) -> u32 {
        self.0 as u32
    }

    /// The sequence number, in a free stripe.
    #[inline]
    pub(crate) const fn sequence(self) -> u64 {
        self.0
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Stripes {
    words: Box<[AtomicU64]>,
    /// Binary digits of the number of stripes.
    bits: u32,
}

impl Stripes {
    /// One of 2 to the power of `bits` stripes.
    pub(crate) fn new(bits: u32) -> Self {
        Stripes { words: (0..1_usize << bits).map(|_| AtomicU64::new(0)).collect(), bits }
    }

    /// The stripe of an address. Lines that follow each other have stripes that do; the upper bits
    /// are folded in, so that the beginnings of large objects do not all share one.
    #[inline]
    pub(crate) fn of(&self, address: usize) -> usize {
        let line = address / LINE;
        (line ^ line >> self.bits) & (self.words.len() - 1)
    }

    #[inline]
    pub(crate) fn look(&self, stripe: usize) -> State {
        State(self.words[stripe].load(Ordering::Acquire))
    }

    /// Whether the stripe is still as it was seen. A fence before it orders it behind the reads
    /// since.
    #[inline]
    pub(crate) fn is_still(&self, stripe: usize, seen: State) -> bool {
        self.words[stripe].load(Ordering::Relaxed) == seen.0
    }

    /// Takes a free stripe. `false`: it is not as it was seen.
    #[inline]
    pub(crate) fn take(&self, stripe: usize, seen: State, own: State) -> bool {
        self.words[stripe].compare_exchange(seen.0, own.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Names another line of the same owner's. Only the owner reads it.
    #[inline]
    pub(crate) fn rename(&self, stripe: usize, own: State) {
        self.words[stripe].store(own.0, Ordering::Relaxed);
    }

    /// Gives an owned stripe back. A thread that sees this sees all stores to its lines.
    #[inline]
    pub(crate) fn release(&self, stripe: usize, state: State) {
        self.words[stripe].store(state.0, Ordering::Release);
    }
}
