use crate::word_stm::error::Conflict;
use crate::word_stm::memory::{Damaged, Memory};
use crate::word_stm::sink::Volatile;
use crate::word_stm::stm::Stm;
use crate::word_stm::thread::Thread;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use loom::thread;
use std::sync::Arc;

struct Words([AtomicU64; 2], bool);

// SAFETY: relaxed loads and stores of a word for each address.
#[allow(unsafe_code)]
unsafe impl Memory for Words {
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        Ok(self.0[address / 64].load(Relaxed))
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        assert_eq!(bits, u64::MAX);
        self.0[address / 64].store(value, Relaxed);
    }

    fn in_place(&self, _: usize) -> bool {
        self.1
    }
}

fn memory() -> Arc<Stm<Words, Volatile>> {
    Stm::with_stripes(1, Words([AtomicU64::new(0), AtomicU64::new(0)], false), Volatile)
}

fn memory_in_place() -> Arc<Stm<Words, Volatile>> {
    Stm::with_stripes(1, Words([AtomicU64::new(0), AtomicU64::new(0)], true), Volatile)
}

type Member = Thread<Words, Volatile>;

#[allow(unsafe_code)]
fn get(member: &mut Member, word: usize) -> Result<u64, Conflict> {
    // SAFETY: one of the two words.
    unsafe { member.running().expect("a transaction").load((word * 64) as *const u64) }
}

#[allow(unsafe_code)]
fn set(member: &mut Member, word: usize, value: u64) -> Result<(), Conflict> {
    // SAFETY: one of the two words.
    unsafe { member.running().expect("a transaction").store((word * 64) as *mut u64, value) }
}

fn attempt<R>(
    stm: &Arc<Stm<Words, Volatile>>,
    body: impl FnOnce(&mut Member) -> Result<R, Conflict>,
) -> Option<(Option<u64>, R)> {
    let mut member = stm.thread();
    member.begin().expect("the only transaction of this thread");
    let result = body(&mut member);
    let Ok(result) = result else {
        member.abort(false);
        return None;
    };
    let receipt = member.commit().ok()?.expect("the outermost");
    Some((receipt.sequence(), result))
}

pub(crate) fn a_transaction_sees_one_state() {
    one_state(memory());
}

pub(crate) fn a_transaction_sees_one_state_in_place() {
    one_state(memory_in_place());
}

pub(crate) fn undone_stores_are_never_seen() {
    let stm = memory_in_place();
    let other = stm.clone();
    let writer = thread::spawn(move || {
        attempt(&other, |tx| {
            set(tx, 0, 1)?;
            Err::<(), _>(Conflict)
        })
    });
    attempt(&stm, |tx| {
        assert_eq!(get(tx, 0)?, 0, "a store that was taken back");
        Ok(())
    });
    writer.join().unwrap();
    assert_eq!(attempt(&stm, |tx| get(tx, 0)).map(|(_, seen)| seen), Some(0));
}

fn one_state(stm: Arc<Stm<Words, Volatile>>) {
    let other = stm.clone();
    let writer = thread::spawn(move || {
        attempt(&other, |tx| {
            set(tx, 0, 1)?;
            set(tx, 1, 1)
        })
    });
    attempt(&stm, |tx| {
        let seen = (get(tx, 0)?, get(tx, 1)?);
        assert_eq!(seen.0, seen.1, "two states at once");
        Ok(())
    });
    writer.join().unwrap();
}

pub(crate) fn no_skew() {
    let stm = memory();
    let other = stm.clone();
    let take = |stm: &Arc<Stm<Words, Volatile>>, own: usize| {
        attempt(stm, |tx| {
            let free = get(tx, 1 - own)? == 0;
            set(tx, own, u64::from(free))?;
            Ok(free)
        })
    };
    let second = thread::spawn(move || take(&other, 1));
    let first = take(&stm, 0);
    let took = |result: Option<(Option<u64>, bool)>| result.is_some_and(|(_, took)| took);
    assert!(!(took(first) && took(second.join().unwrap())), "both have it");
}

pub(crate) fn changes_are_kept() {
    let stm = memory();
    let other = stm.clone();
    let add = |stm: &Arc<Stm<Words, Volatile>>| {
        attempt(stm, |tx| {
            let before = get(tx, 0)?;
            set(tx, 0, before + 1)
        })
    };
    let second = thread::spawn(move || add(&other));
    let first = add(&stm);
    let count = u64::from(first.is_some()) + u64::from(second.join().unwrap().is_some());
    let (_, sum) = attempt(&stm, |tx| get(tx, 0)).expect("no other thread is there");
    assert_eq!(sum, count);
    assert!(stm.now() >= count);
}

pub(crate) fn numbers_follow_reads() {
    let stm = memory();
    let other = stm.clone();
    let writer = thread::spawn(move || attempt(&other, |tx| set(tx, 0, 1)));
    let copied = attempt(&stm, |tx| {
        let seen = get(tx, 0)?;
        set(tx, 1, seen + 1)?;
        Ok(seen)
    });
    if let (Some((number, seen)), Some((written, ()))) = (copied, writer.join().unwrap()) {
        assert_eq!(seen == 1, number > written, "number {number:?} saw {seen}, which {written:?} stored");
    }
}

pub(crate) fn alone_is_alone() {
    let stm = memory();
    let inside = Arc::new(AtomicUsize::new(0));
    let (other, others) = (stm.clone(), inside.clone());
    let writer = thread::spawn(move || {
        attempt(&other, |tx| {
            others.store(1, Relaxed);
            let done = set(tx, 0, 1);
            others.store(0, Relaxed);
            done
        })
    });
    let mut member = stm.thread();
    let mut alone = member.alone().expect("the only transaction of this thread");
    assert_eq!(inside.load(Relaxed), 0, "a transaction runs beside it");
    let number = alone.sequence();
    assert_eq!(inside.load(Relaxed), 0, "a transaction began beside it");
    drop(alone);
    let written = writer.join().unwrap().and_then(|(written, ())| written);
    assert!(written.is_some_and(|written| written != number), "nothing is in its way");
}

pub(crate) fn an_epoch_has_whole_commits() {
    let stm = memory();
    let other = stm.clone();
    let writer = thread::spawn(move || {
        attempt(&other, |tx| {
            set(tx, 0, 1)?;
            set(tx, 1, 1)
        })
    });
    let mut member = stm.thread();
    let alone = member.alone().expect("the only transaction of this thread");
    let last = stm.now();
    let words = [0, 1].map(|word: usize| stm.memory().0[word].load(Relaxed));
    drop(alone);
    let written = writer.join().unwrap().and_then(|(written, ())| written).expect("nothing is in its way");
    let expected = u64::from(written <= last);
    assert_eq!(words, [expected; 2], "commit {written} beside an epoch up to {last}");
}
