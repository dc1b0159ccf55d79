//! Promises of the memory, under many threads or in one order of steps; `mutants.rs` shows each a
//! broken rule.

use crate::support::{Apart, Remembering, Rule, stm};
use indelible_stm::{
    Abort, Damaged, Direct, Error, Memory, Sink, Stm, Transaction, TxWord, Volatile, WriteSet,
};
use std::sync::{Arc, OnceLock};

/// Miri needs a second for a millisecond's work.
const SLOWER: u64 = if cfg!(miri) { 50 } else { 1 };

fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().expect("no panic"))
}

fn set_all<'env, S: Sink>(stm: &Arc<Stm<Direct, S>>, words: &[&'env TxWord], value: u64) {
    let stored = |tx: &mut Transaction<'_, 'env, Direct, S>| -> Result<(), Abort<()>> {
        words.iter().try_for_each(|word| tx.set(word, value))?;
        Ok(())
    };
    assert!(stm.thread().atomically(stored).is_ok());
}

pub fn bank(threads: u64, rounds: u64, rule: Rule) -> Result<(), String> {
    const MONEY: u64 = 100;
    let accounts: Vec<TxWord> = (0..16).map(|_| TxWord::new(MONEY)).collect();
    let stm = stm(3, Direct, Volatile, rule);
    let sum_in = |tx: &mut Transaction<'_, '_, Direct, Volatile>| -> Result<u64, Abort<()>> {
        let mut sum = 0_u64;
        for account in &accounts {
            sum = sum.wrapping_add(tx.get(account)?);
        }
        Ok(sum)
    };
    let work = |number: u64| {
        let (mut thread, mut random) = (stm.thread(), fastrand::Rng::with_seed(number));
        for _ in 0..rounds {
            let (from, to) = (random.usize(..accounts.len()), random.usize(..accounts.len()));
            let moved = thread.atomically(|tx| {
                let left = tx.get(&accounts[from])?.checked_sub(1).ok_or(Abort::Cancel(()))?;
                tx.set(&accounts[from], left)?;
                std::thread::yield_now();
                let before = tx.get(&accounts[to])?;
                tx.set(&accounts[to], before + 1)?;
                Ok(())
            });
            assert!(matches!(moved, Ok(_) | Err(Error::Cancelled(()))));
            let (sum, _) = thread.atomically(sum_in).expect("not cancelled");
            if sum != 16 * MONEY {
                return Err(format!("a transaction saw {sum} in all"));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    match accounts.into_iter().map(TxWord::into_inner).sum::<u64>() {
        1600 => Ok(()),
        sum => Err(format!("there are {sum} in all")),
    }
}

/// Two words are always equal, also to transactions that will abort.
pub fn equal_words(threads: u64, rounds: u64, rule: Rule) -> Result<(), String> {
    let pairs: Vec<(Apart, Apart)> = (0..4).map(|_| Default::default()).collect();
    let stm = stm(6, Direct, Volatile, rule);
    let work = |number: u64| {
        let (mut thread, mut random) = (stm.thread(), fastrand::Rng::with_seed(number));
        let mut wrong = None;
        for _ in 0..rounds {
            let (one, other) = (&pairs[random.usize(..4)], &pairs[random.usize(..4)]);
            let done = thread.atomically(|tx| -> Result<(), Abort<()>> {
                let first = tx.get(&one.0.0)?;
                if random.u8(..4) == 0 {
                    std::thread::yield_now();
                }
                let second = tx.get(&one.1.0)?;
                if first != second {
                    wrong = Some(format!("a transaction saw {first} and {second}"));
                }
                tx.set(&other.1.0, first + 1)?;
                tx.set(&other.0.0, second + 1)?;
                Ok(())
            });
            assert!(done.is_ok());
        }
        wrong.map_or(Ok(()), Err)
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

/// If two transactions each read a word that the other changes, one sees the other's change.
pub fn skew(rule: Rule) -> Result<(), String> {
    let (Apart(one), Apart(other)) = &(Apart::default(), Apart::default());
    let stm = stm(6, Direct, Volatile, rule);
    let mut tries = 0;
    let taken = stm.thread().atomically(|tx| -> Result<bool, Abort<()>> {
        tries += 1;
        let free = tx.get(other)? == 0;
        if tries == 1 {
            elsewhere(|| set_all(&stm, &[other], 1));
        }
        if free {
            tx.set(one, 1)?;
        }
        Ok(free)
    });
    let (taken, _) = taken.map_err(|error| format!("{error:?}"))?;
    if taken { Err("both were taken".into()) } else { Ok(()) }
}

/// A transaction that has read one word sees no later state of another.
pub fn torn_view(rule: Rule) -> Result<(), String> {
    let (Apart(one), Apart(other)) = &(Apart::default(), Apart::default());
    let stm = stm(6, Direct, Volatile, rule);
    let (mut tries, mut wrong) = (0, Ok(()));
    let done = stm.thread().atomically(|tx| -> Result<(), Abort<()>> {
        tries += 1;
        let first = tx.get(one)?;
        if tries == 1 {
            elsewhere(|| set_all(&stm, &[one, other], 1));
        }
        let second = tx.get(other)?;
        if first != second {
            wrong = Err(format!("it saw {first} and {second}"));
        }
        Ok(())
    });
    assert!(done.is_ok());
    wrong
}

/// Each commit's number is told once, without gaps.
pub fn numbers(rule: Rule) -> Result<(), String> {
    let word = TxWord::new(0);
    let stm = stm(3, Direct, Volatile, rule);
    let mut thread = stm.thread();
    for expected in 1..=3 {
        let done = thread.atomically(|tx| -> Result<(), Abort<()>> { Ok(tx.set(&word, expected)?) });
        let (_, receipt) = done.map_err(|error| format!("{error:?}"))?;
        if receipt.sequence() != Some(expected) {
            return Err(format!("commit {expected} has the number {:?}", receipt.sequence()));
        }
    }
    Ok(())
}

/// Memory in which a transaction reads each word before it changes.
#[derive(Clone, Default)]
struct Watched(Arc<Watching>);

#[derive(Default)]
struct Watching {
    stm: OnceLock<std::sync::Weak<Stm<Watched, Volatile>>>,
    seen: std::sync::Mutex<Vec<u64>>,
}

// SAFETY: as `Direct`, which it uses.
unsafe impl Memory for Watched {
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { Direct.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        let stm = self.0.stm.get().and_then(std::sync::Weak::upgrade).expect("the memory is in use");
        let seen = elsewhere(|| {
            let mut thread = stm.thread();
            thread.begin().expect("no other transaction of this thread");
            // SAFETY: the same word.
            let seen = unsafe { thread.running().expect("begun").load(address as *const u64) };
            thread.abort(false);
            seen
        });
        self.0.seen.lock().unwrap().extend(seen);
        // SAFETY: the caller's promise.
        unsafe { Direct.store(address, value, bits) };
    }
}

/// Words cannot be read while a commit changes memory.
pub fn half_stored(rule: Rule) -> Result<(), String> {
    let words = crate::support::Arena::new(16);
    let watching = Watched::default();
    let stm = stm(6, watching.clone(), Volatile, rule);
    watching.0.stm.set(Arc::downgrade(&stm)).expect("set once");
    let done = stm.thread().atomically(|tx| -> Result<(), Abort<()>> {
        // SAFETY: both are in the arena.
        unsafe { tx.store(words.at(0).cast(), 1_u64)? };
        // SAFETY: as above.
        unsafe { tx.store(words.at(64).cast(), 1_u64)? };
        Ok(())
    });
    assert!(done.is_ok());
    match &watching.0.seen.lock().unwrap()[..] {
        [] => Ok(()),
        seen => Err(format!("{seen:?} were read in the middle of a commit")),
    }
}

#[test]
fn the_sink_is_told_before_memory_changes() {
    struct Looking(Arc<TxWord>);
    impl Sink for Looking {
        type Own = ();
        type Error = ();
        fn commit(&self, (): &mut (), sequence: u64, _: &WriteSet) -> Result<(), ()> {
            // SAFETY: the word exists; it is read as transactions do.
            let value = unsafe { Direct.load((&raw const *self.0).expose_provenance()) };
            assert_eq!(value, Ok(sequence - 1));
            Ok(())
        }
    }
    let word = Arc::new(TxWord::new(0));
    let stm = Stm::with_stripes(3, Direct, Looking(word.clone()));
    for value in 1..=3 {
        set_all(&stm, &[&word], value);
    }
}

#[test]
fn money_is_neither_made_nor_lost() {
    for threads in [2, 8] {
        bank(threads, 300 / SLOWER, None).unwrap();
    }
}

#[test]
fn no_transaction_sees_two_states_at_once() {
    for threads in [2, 8] {
        equal_words(threads, 1000 / SLOWER, None).unwrap();
    }
    torn_view(None).unwrap();
}

#[test]
fn of_two_that_exclude_each_other_one_is_aborted() {
    skew(None).unwrap();
}

#[test]
fn commits_are_numbered_from_one() {
    numbers(None).unwrap();
}

#[test]
fn nobody_reads_half_a_commit() {
    half_stored(None).unwrap();
}

#[test]
fn a_transaction_that_always_conflicts_runs_alone_at_last() {
    let word = TxWord::new(0);
    let stm = stm(3, Direct, Remembering::default(), None);
    let mut tries = 0;
    let done = stm.thread().atomically(|tx| -> Result<(), Abort<()>> {
        tries += 1;
        let value = tx.get(&word)?;
        if !tx.is_alone() {
            elsewhere(|| set_all(&stm, &[&word], 1));
        }
        tx.set(&word, value + 1)?;
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!(tries, 17);
    assert_eq!(word.into_inner(), 2);
}

#[test]
fn threads_that_all_change_the_same_get_on() {
    const ROUNDS: u64 = 50 / SLOWER;
    let words: Vec<TxWord> = (0..32).map(|_| TxWord::new(0)).collect();
    let stm = stm(10, Direct, Volatile, None);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (words, stm) = (&words, &stm);
            scope.spawn(move || {
                let (mut thread, mut random) = (stm.thread(), fastrand::Rng::with_seed(number));
                for _ in 0..ROUNDS {
                    let mut order: Vec<usize> = (0..words.len()).collect();
                    random.shuffle(&mut order);
                    let done = thread.atomically(|tx| -> Result<(), Abort<()>> {
                        for at in &order {
                            let value = tx.get(&words[*at])?;
                            tx.set(&words[*at], value + 1)?;
                        }
                        Ok(())
                    });
                    assert!(done.is_ok());
                }
            });
        }
    });
    assert!(words.into_iter().all(|word| word.into_inner() == 8 * ROUNDS));
}
