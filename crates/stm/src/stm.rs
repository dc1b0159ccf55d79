//! A transactional memory: the threads' shared state.

use super::clock::Clock;
use super::gate::Gate;
use super::memory::{Direct, Memory};
use super::mutant::Broken;
use super::sink::{Sink, Volatile};
use super::stripes::Stripes;
use super::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// 2 MiB; lines 16 MiB apart share a stripe.
const BITS: u32 = 18;

/// Transactions of several threads over `M`'s words, reported to `S`.
///
/// All transactions that share data belong to one of these, with one order of sequence numbers.
#[derive(Debug)]
pub struct Stm<M: Memory = Direct, S: Sink = Volatile> {
    pub(crate) clock: Clock,
    pub(crate) stripes: Stripes,
    pub(crate) gate: Gate,
    /// The last exclusive number, whose changes no stripe shows.
    alone: AtomicU64,
    pub(crate) memory: M,
    pub(crate) sink: S,
    pub(crate) broken: Broken,
}

impl<M: Memory, S: Sink> Stm<M, S> {
    /// Makes one with 262,144 stripes.
    pub fn new(memory: M, sink: S) -> Arc<Self> {
        Self::with_stripes(BITS, memory, sink)
    }

    /// Makes one with 2^`bits` stripes. Fewer cause more false conflicts.
    ///
    /// # Panics
    ///
    /// `bits` is above 30.
    pub fn with_stripes(bits: u32, memory: M, sink: S) -> Arc<Self> {
        Arc::new(Self::build(bits, memory, sink, Broken::default()))
    }

    /// Makes one that breaks a rule.
    #[cfg(feature = "__mutants")]
    pub fn with_mutant(bits: u32, memory: M, sink: S, mutant: Option<super::mutant::Mutant>) -> Arc<Self> {
        Arc::new(Self::build(bits, memory, sink, Broken(mutant)))
    }

    fn build(bits: u32, memory: M, sink: S, broken: Broken) -> Self {
        assert!(bits <= 30, "2 to the power of {bits} are too many stripes; 30 is the most");
        Stm {
            clock: Clock::new(),
            stripes: Stripes::new(bits),
            gate: Gate::new(),
            alone: AtomicU64::new(0),
            memory,
            sink,
            broken,
        }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The largest sequence number taken.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Waits until no transaction runs that began before commit `sequence` and has not seen it:
    /// unlinked data are then the caller's own. A transaction must not call it.
    pub fn quiesce(&self, sequence: u64) {
        self.gate.quiesce(sequence);
    }

    /// Call it first in a fork's child: no transaction begins or commits there any more. One atomic
    /// store.
    pub fn forked(&self) {
        self.gate.fork();
    }

    pub(crate) fn alone_until(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }

    pub(crate) fn number_alone(&self) -> u64 {
        let sequence = self.clock.tick();
        self.alone.store(sequence, Ordering::Relaxed);
        sequence
    }
}
