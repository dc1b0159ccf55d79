//! A transactional memory: the state that its threads share.

use super::clock::Clock;
use super::gate::Gate;
use super::memory::{Direct, Memory};
use super::mutant::Broken;
use super::sink::{Sink, Volatile};
use super::stripes::Stripes;
use super::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// Stripes that there are by default, as a power of two: 2 MiB of them, lines 16 MiB apart share
/// one.
const BITS: u32 = 18;

/// Transactions of several threads over the words that `M` has, told to `S`.
///
/// All transactions that share data belong to one of these, and so do all sequence numbers.
#[derive(Debug)]
pub struct Stm<M: Memory = Direct, S: Sink = Volatile> {
    pub(crate) clock: Clock,
    pub(crate) stripes: Stripes,
    pub(crate) gate: Gate,
    /// The last number that a thread took alone, whose changes no stripe knows of.
    alone: AtomicU64,
    pub(crate) memory: M,
    pub(crate) sink: S,
    pub(crate) broken: Broken,
}

impl<M: Memory, S: Sink> Stm<M, S> {
    /// One with 262,144 stripes.
    pub fn new(memory: M, sink: S) -> Arc<Self> {
        Self::with_stripes(BITS, memory, sink)
    }

    /// One of 2 to the power of `bits` stripes. Fewer take less memory, and let more transactions
    /// meet that have nothing in common.
    ///
    /// # Panics
    ///
    /// If `bits` is above 30.
    pub fn with_stripes(bits: u32, memory: M, sink: S) -> Arc<Self> {
        Arc::new(Self::build(bits, memory, sink, Broken::default()))
    }

    /// One that breaks a rule.
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

    /// The largest sequence number that was taken.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Waits until no transaction runs that began before commit number `sequence` and has not seen
    /// it. Data that this commit took out of shared structures are the caller's own then, without
    /// transactions. Not to be called by a transaction, which it would wait for.
    pub fn quiesce(&self, sequence: u64) {
        self.gate.quiesce(sequence);
    }

    /// In the child of a fork, as the first thing: no transaction begins or commits here any more.
    /// One atomic store.
    pub fn forked(&self) {
        self.gate.fork();
    }

    pub(crate) fn alone_until(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }

    /// Takes a number for a thread that is alone.
    pub(crate) fn number_alone(&self) -> u64 {
        let sequence = self.clock.tick();
        // Readers begin after the gate was opened.
        self.alone.store(sequence, Ordering::Relaxed);
        sequence
    }
}
