//! Checks whole histories of 2 to 8 threads: each transaction, aborted or not, is redone by
//! sequence number.

use crate::support::{Arena, Remembering, Rule, stm};
use indelible_stm::{Abort, Direct, Thread, Transaction};
use indelible_testing::Seeded;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    Found(usize, Vec<u8>),
    Stored(usize, Vec<u8>),
}

#[derive(Debug)]
struct Try {
    sequence: Option<u64>,
    snapshot: u64,
    durable_from: Option<u64>,
    steps: Vec<Step>,
}

impl Try {
    fn place(&self) -> u64 {
        self.sequence.map_or(self.snapshot, |sequence| sequence.saturating_sub(1))
    }

    fn redo(&self, bytes: &mut [u8], last: &mut [u64]) -> Result<(), String> {
        for step in &self.steps {
            match step {
                Step::Found(at, found)
                    if last[*at..at + found.len()].iter().max()
                        > self.durable_from.as_ref().or(Some(&u64::MAX)) =>
                {
                    return Err(format!("at {at}, a later commit was read than {:?}", self.durable_from));
                }
                Step::Found(at, found) if bytes[*at..at + found.len()] != found[..] => {
                    let right = &bytes[*at..at + found.len()];
                    return Err(format!(
                        "{:?}: at {at} is {right:?}, and found was {found:?}",
                        self.sequence
                    ));
                }
                Step::Found(..) => {}
                Step::Stored(at, stored) => {
                    bytes[*at..at + stored.len()].copy_from_slice(stored);
                    last[*at..at + stored.len()].fill(self.sequence.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}

fn program(
    tx: &mut Transaction<'_, '_, Direct, Remembering>,
    arena: &Arena,
    random: &mut fastrand::Rng,
    steps: &mut Vec<Step>,
) -> Result<(), Abort<()>> {
    let readers = random.u8(..3) == 0;
    for _ in 0..random.usize(1..12) {
        let at = random.usize(..arena.len());
        let count = random.usize(1..=(arena.len() - at).min(24));
        if !readers && random.bool() {
            let bytes: Vec<u8> = (0..count).map(|_| random.u8(..)).collect();
            // SAFETY: the bytes are in the arena.
            unsafe { tx.store_bytes(arena.at(at), &bytes)? };
            steps.push(Step::Stored(at, bytes));
        } else {
            let mut bytes = vec![0; count];
            // SAFETY: as above.
            unsafe { tx.load_bytes(arena.at(at), &mut bytes)? };
            steps.push(Step::Found(at, bytes));
        }
        if random.u8(..4) == 0 {
            std::thread::yield_now();
        }
    }
    if random.u8(..8) == 0 { Err(Abort::Cancel(())) } else { Ok(()) }
}

fn tries(
    thread: &mut Thread<Direct, Remembering>,
    arena: &Arena,
    random: &mut fastrand::Rng,
    count: usize,
) -> Vec<Try> {
    let mut tries = Vec::new();
    for _ in 0..count {
        let mut current: Option<Try> = None;
        let result = thread.atomically(|tx| {
            tries.extend(current.take());
            let mut steps = Vec::new();
            let result = program(tx, arena, random, &mut steps);
            current = Some(Try { sequence: None, snapshot: tx.snapshot(), durable_from: None, steps });
            result
        });
        if let (Ok(((), receipt)), Some(current)) = (&result, &mut current) {
            current.sequence = receipt.sequence();
            current.durable_from = Some(receipt.durable_from());
        }
        tries.extend(current);
    }
    tries
}

pub fn check(seed: u64, threads: usize, count: usize, words: usize, rule: Rule) -> Result<(), String> {
    let arena = Arena::new(words);
    let stm = stm(4, Direct, Remembering::default(), rule);
    let mut all: Vec<Try> = std::thread::scope(|scope| {
        let (arena, stm) = (&arena, &stm);
        let run = |number: usize| {
            move || {
                let mut random = fastrand::Rng::with_seed(seed * 100 + number as u64);
                tries(&mut Arc::clone(stm).thread(), arena, &mut random, count)
            }
        };
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(run(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    // At the same place, committed ones come last.
    all.sort_by_key(|one| (one.place(), one.sequence.is_some()));
    let (mut bytes, mut last) = (vec![0; arena.len()], vec![0; arena.len()]);
    for one in &all {
        match one.sequence {
            Some(_) => one.redo(&mut bytes, &mut last)?,
            None => one.redo(&mut bytes.clone(), &mut last.clone())?,
        }
    }
    if bytes != arena.bytes() {
        return Err("the memory is not as the transactions leave it".into());
    }
    if rule.is_none() {
        stm.sink().dense();
        assert_eq!(stm.sink().redone(&arena), bytes, "the sink was told something else");
    }
    Ok(())
}

#[test]
fn histories_of_many_threads_are_serial_and_opaque() {
    let mut random = Seeded::new(7);
    // Miri needs a second for a millisecond's work.
    let (most, count) = if cfg!(miri) { (3, 8) } else { (8, 150) };
    for threads in 2..=most {
        for words in [4, 16, 64, 300] {
            let seed = random.u64(..1 << 40);
            check(seed, threads, count, words, None)
                .unwrap_or_else(|error| panic!("{threads} threads, {words} words, seed {seed}: {error}"));
        }
    }
}
