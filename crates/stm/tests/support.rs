//! Memory for tests, recording sinks, and broken rules.

use indelible_stm::{Direct, Memory, Sink, Stm, WriteSet};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[cfg(feature = "__mutants")]
pub type Rule = Option<indelible_stm::Mutant>;
#[cfg(not(feature = "__mutants"))]
pub type Rule = Option<std::convert::Infallible>;

pub fn stm<M: Memory, S: Sink>(bits: u32, memory: M, sink: S, rule: Rule) -> Arc<Stm<M, S>> {
    #[cfg(feature = "__mutants")]
    return Stm::with_mutant(bits, memory, sink, rule);
    #[cfg(not(feature = "__mutants"))]
    {
        assert!(rule.is_none());
        Stm::with_stripes(bits, memory, sink)
    }
}

pub fn sound<S: Sink>(sink: S) -> Arc<Stm<Direct, S>> {
    Stm::with_stripes(10, Direct, sink)
}

pub struct Arena(Box<[AtomicU64]>);

impl Arena {
    pub fn new(words: usize) -> Self {
        Arena((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len() * 8
    }

    pub fn at(&self, byte: usize) -> *mut u8 {
        assert!(byte <= self.len());
        self.0.as_ptr().cast::<u8>().cast_mut().wrapping_add(byte)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// (address, changed bytes).
    Committed(Vec<(usize, Vec<u8>)>),
    Skipped,
}

#[derive(Default)]
pub struct Remembering {
    pub told: Mutex<BTreeMap<u64, Told>>,
    twice: Mutex<Vec<u64>>,
    pub acknowledged: Mutex<Vec<Option<u64>>>,
    pub refuses: AtomicU64,
    pub stored: AtomicU64,
}

pub const REFUSE_COMMIT: u64 = 1;
pub const REFUSE_ACKNOWLEDGEMENT: u64 = 2;
pub const PANIC_IN_COMMIT: u64 = 3;
pub const PANIC_IN_STORED: u64 = 4;
pub const PANIC_IN_ACKNOWLEDGEMENT: u64 = 5;
pub const PANIC_IN_SKIPPED: u64 = 6;

impl Remembering {
    pub fn ask(&self, what: u64) {
        self.refuses.store(what, Ordering::Relaxed);
    }

    fn asked(&self, what: u64) -> bool {
        self.refuses.load(Ordering::Relaxed) == what
    }

    fn tell(&self, sequence: u64, told: Told) {
        if self.told.lock().unwrap().insert(sequence, told).is_some() {
            // A panic here would come within an abort.
            self.twice.lock().unwrap().push(sequence);
        }
    }

    /// Number of told transactions; numbers must be unique and without gaps.
    pub fn dense(&self) -> u64 {
        let told = self.told.lock().unwrap();
        assert_eq!(self.twice.lock().unwrap()[..], [], "told twice");
        assert!(told.keys().copied().eq(1..=told.len() as u64), "{:?}", told.keys());
        told.len() as u64
    }

    pub fn redone(&self, arena: &Arena) -> Vec<u8> {
        let mut bytes = vec![0; arena.len()];
        for told in self.told.lock().unwrap().values() {
            let Told::Committed(runs) = told else { continue };
            for (address, run) in runs {
                let at = address - arena.at(0).addr();
                bytes[at..at + run.len()].copy_from_slice(run);
            }
        }
        bytes
    }
}

pub fn runs(writes: &WriteSet) -> Vec<(usize, Vec<u8>)> {
    let mut runs = Vec::new();
    for line in writes.lines() {
        let bytes: Vec<u8> = line.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let of_line = line.ranges().map(|range| (line.address() + range.start, bytes[range].to_vec()));
        runs.extend(of_line);
    }
    runs
}

impl Sink for Remembering {
    type Own = ();
    type Error = &'static str;

    fn commit(&self, (): &mut (), sequence: u64, writes: &WriteSet) -> Result<(), &'static str> {
        assert!(!self.asked(PANIC_IN_COMMIT), "asked to panic");
        if self.asked(REFUSE_COMMIT) {
            self.tell(sequence, Told::Skipped);
            return Err("refused");
        }
        self.tell(sequence, Told::Committed(runs(writes)));
        Ok(())
    }

    fn stored(&self, (): &mut (), _: u64) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        assert!(!self.asked(PANIC_IN_STORED), "asked to panic");
    }

    fn skipped(&self, (): &mut (), sequence: u64) {
        self.tell(sequence, Told::Skipped);
        assert!(!self.asked(PANIC_IN_SKIPPED), "asked to panic");
    }

    fn acknowledge(&self, (): &mut (), receipt: indelible_stm::Receipt) -> Result<(), &'static str> {
        self.acknowledged.lock().unwrap().push(receipt.sequence());
        assert!(!self.asked(PANIC_IN_ACKNOWLEDGEMENT), "asked to panic");
        if self.asked(REFUSE_ACKNOWLEDGEMENT) { Err("the disk failed") } else { Ok(()) }
    }
}

#[derive(Default)]
#[repr(align(128))]
pub struct Apart(pub indelible_stm::TxWord);
