//! Memory that transactions change in place.

use crate::support::{Arena, Rule, stm};
use indelible_stm::{Abort, Checkpoint, Damaged, Direct, Error, Memory, Stm, Volatile};
use indelible_testing::Seeded;
use std::sync::{Arc, Mutex, OnceLock, Weak};

struct InPlace;

// SAFETY: as `Direct`, which it uses.
unsafe impl Memory for InPlace {
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { Direct.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        unsafe { Direct.store(address, value, bits) };
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }
}

fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().expect("no panic"))
}

#[test]
fn random_programs_in_place_agree_with_bytes_and_go_back_to_checkpoints() {
    let mut random = Seeded::new(46);
    for round in 0..if cfg!(miri) { 5 } else { 300 } {
        let arena = Arena::new(1 + random.usize(..120));
        let stm = stm(random.u32(..8), InPlace, Volatile, None);
        let mut thread = stm.thread();
        let mut model = vec![0; arena.len()];
        for _ in 0..random.usize(..20) {
            let (mut next, cancel) = (model.clone(), random.u8(..3) == 0);
            let result = thread.atomically(|tx| {
                let mut kept: Option<(Checkpoint, Vec<u8>)> = None;
                for _ in 0..random.usize(..40) {
                    let at = random.usize(..arena.len());
                    let len = random.usize(..=(arena.len() - at).min(100));
                    match random.usize(..8) {
                        0 => kept = Some((tx.checkpoint(), next.clone())),
                        1 => {
                            if let Some((checkpoint, bytes)) = &kept {
                                tx.restore(checkpoint);
                                next.clone_from(bytes);
                            }
                        }
                        2..=4 => {
                            let bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
                            // SAFETY: the bytes are in the arena.
                            unsafe { tx.store_bytes(arena.at(at), &bytes)? };
                            next[at..at + len].copy_from_slice(&bytes);
                        }
                        _ => {
                            let mut bytes = vec![0; len];
                            // SAFETY: the bytes are in the arena.
                            unsafe { tx.load_bytes(arena.at(at), &mut bytes)? };
                            assert_eq!(bytes, next[at..at + len]);
                        }
                    }
                    assert_eq!(arena.bytes(), next, "plain code sees something else");
                }
                if cancel { Err(Abort::Cancel(())) } else { Ok(()) }
            });
            match result {
                Ok(_) => model = next,
                Err(error) => assert_eq!((error, cancel), (Error::Cancelled(()), true)),
            }
            assert_eq!(arena.bytes(), model, "round {round}");
        }
    }
}

/// Memory in which, during a load, another transaction stores to the word and is undone.
#[derive(Clone, Default)]
struct Undoing(Arc<Asked>);

#[derive(Default)]
struct Asked {
    stm: OnceLock<Weak<Stm<Undoing, Volatile>>>,
    /// The word, and whether the other one is undone early, by a third.
    at: Mutex<Option<(usize, bool)>>,
}

// SAFETY: as `Direct`, which it uses.
unsafe impl Memory for Undoing {
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        let asked = self.0.at.lock().unwrap().take_if(|(at, _)| *at == address);
        if let Some((_, meets)) = asked {
            let stm = self.0.stm.get().and_then(Weak::upgrade).expect("the memory is in use");
            return elsewhere(|| {
                let mut thread = stm.thread();
                thread.begin().expect("no other transaction of this thread");
                let mut running = thread.running().expect("begun");
                // SAFETY: the same word.
                unsafe { running.store(address as *mut u64, 9) }.expect("no other owner");
                // SAFETY: as above.
                let seen = unsafe { Direct.load(address) };
                if meets {
                    running.restart_alone();
                }
                thread.abort(false);
                seen
            });
        }
        // SAFETY: the caller's promise.
        unsafe { Direct.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        unsafe { Direct.store(address, value, bits) };
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }
}

fn undone_while_read(meets: bool, rule: Rule) -> Result<(), String> {
    let (words, memory) = (Arena::new(16), Undoing::default());
    let stm = stm(6, memory.clone(), Volatile, rule);
    memory.0.stm.set(Arc::downgrade(&stm)).expect("set once");
    *memory.0.at.lock().unwrap() = Some((words.at(64).addr(), meets));
    let done = stm.thread().atomically(|tx| -> Result<u64, Abort<()>> {
        // SAFETY: the word is in the arena.
        Ok(unsafe { tx.load(words.at(64).cast::<u64>()) }?)
    });
    match done {
        Ok((0, _)) => Ok(()),
        other => Err(format!("a store that was undone was read: {other:?}")),
    }
}

pub fn undone(rule: Rule) -> Result<(), String> {
    undone_while_read(false, rule)
}

pub fn doomed(rule: Rule) -> Result<(), String> {
    undone_while_read(true, rule)
}

#[test]
fn stores_that_are_undone_are_never_read() {
    undone(None).unwrap();
    doomed(None).unwrap();
}

#[test]
fn no_transaction_sees_two_states_at_once_in_place() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 3000 };
    let (words, stm) = (Arena::new(16 * 8), stm(6, InPlace, Volatile, None));
    let work = |number: u64| {
        let (mut thread, mut random) = (stm.thread(), fastrand::Rng::with_seed(number));
        for _ in 0..ROUNDS {
            let at = |pair: usize, word: usize| words.at((2 * pair + word) * 64).cast::<u64>();
            let (one, other, cancel) = (random.usize(..4), random.usize(..4), random.bool());
            let done = thread.atomically(|tx| {
                // SAFETY: a word of the arena.
                let first = unsafe { tx.load(at(one, 0)) }?;
                // SAFETY: as above.
                let second = unsafe { tx.load(at(one, 1)) }?;
                assert_eq!(first, second, "two states");
                let value = if cancel { u64::MAX } else { first + 1 };
                // SAFETY: as above.
                unsafe { tx.store(at(other, 1), value) }?;
                if random.u8(..4) == 0 {
                    std::thread::yield_now();
                }
                // SAFETY: as above.
                unsafe { tx.store(at(other, 0), value) }?;
                assert_ne!(first, u64::MAX, "a store that was taken back");
                if cancel { Err(Abort::Cancel(())) } else { Ok(()) }
            });
            assert!(matches!(done, Ok(_) | Err(Error::Cancelled(()))));
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        (0..4).for_each(|number| drop(scope.spawn(move || work(number))));
    });
}
