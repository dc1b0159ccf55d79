//! Transactions on words with check words: a reader repairs a damaged word, or names it.

use indelible_stm::ecc::{check_word, is_whole, repair};
use indelible_stm::{Abort, Conflict, Damaged, Error, Memory, Stm, Thread, Transaction, Volatile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Pairs(Vec<[AtomicU64; 2]>);

// SAFETY: relaxed loads and stores of a word and its check word, which only this memory has.
unsafe impl Memory for Pairs {
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        let [word, check] = self.pair(address);
        if is_whole(word, check) { Ok(word) } else { Err(Damaged) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        assert_eq!(bits, u64::MAX, "a part of a word with a check word");
        let [word, check] = &self.0[address / 8];
        word.store(value, Relaxed);
        check.store(check_word(value), Relaxed);
    }

    fn is_checked(&self, _: usize) -> bool {
        true
    }

    unsafe fn repaired(&self, address: usize) -> Option<u64> {
        let [word, check] = self.pair(address);
        repair(word, check).ok().map(|found| found.word)
    }
}

impl Pairs {
    fn pair(&self, address: usize) -> [u64; 2] {
        self.0[address / 8].each_ref().map(|half| half.load(Relaxed))
    }

    fn damage(&self, nth: usize, word: u64, check: u64) {
        self.0[nth][0].fetch_xor(word, Relaxed);
        self.0[nth][1].fetch_xor(check, Relaxed);
    }

    fn is_whole(&self, nth: usize) -> bool {
        let [word, check] = self.pair(8 * nth);
        is_whole(word, check)
    }
}

fn words(count: u64) -> Arc<Stm<Pairs, Volatile>> {
    let pair = |nth| [AtomicU64::new(nth), AtomicU64::new(check_word(nth))];
    Stm::with_stripes(4, Pairs((0..count).map(pair).collect()), Volatile)
}

type Running<'t, 'e> = Transaction<'t, 'e, Pairs, Volatile>;

fn at(byte: usize) -> *mut u8 {
    std::ptr::without_provenance_mut(byte)
}

fn load(tx: &mut Running<'_, '_>, nth: usize) -> Result<u64, Conflict> {
    // SAFETY: one of the words.
    unsafe { tx.load(at(8 * nth).cast::<u64>()) }
}

fn store(tx: &mut Running<'_, '_>, byte: usize, bytes: &[u8]) -> Result<(), Conflict> {
    // SAFETY: bytes of the words.
    unsafe { tx.store_bytes(at(byte), bytes) }
}

fn read(
    thread: &mut Thread<Pairs, Volatile>,
    nth: usize,
) -> Result<(u64, Option<u64>), Error<(), std::convert::Infallible>> {
    thread.atomically(|tx| Ok(load(tx, nth)?)).map(|(value, receipt)| (value, receipt.sequence()))
}

/// More wrong bits than can be repaired.
const LOST: (u64, u64) = (0xffff_0000_ffff_0f0f, 0x1234_5678_9abc_def0);

#[test]
fn s1_13_a_reader_of_a_damaged_word_commits_its_repair() {
    let stm = words(64);
    let mut thread = stm.thread();
    stm.memory().damage(5, 0b1011 << 30, 1);
    assert_eq!(read(&mut thread, 5).unwrap(), (5, Some(1)));
    assert!(stm.memory().is_whole(5));
    assert_eq!(read(&mut thread, 5).unwrap(), (5, None));
}

#[test]
fn a_repair_is_a_change_like_others() {
    let stm = words(64);
    let mut thread = stm.thread();
    stm.memory().damage(9, 1, 0);
    let undone = thread.atomically(|tx| {
        assert_eq!(load(tx, 9)?, 9);
        Err::<(), _>(Abort::Cancel(()))
    });
    assert_eq!(undone, Err(Error::Cancelled(())));
    assert!(!stm.memory().is_whole(9));
    // A hint may be anything; the load is right, before and after a change of the line.
    let (seen, _) = thread
        .atomically(|tx| {
            store(tx, 8 * 8, &[1])?;
            Ok::<_, Abort<()>>([load(tx, 8)?, load(tx, 9)?, load(tx, 9)?])
        })
        .unwrap();
    assert_eq!(seen, [1, 9, 9]);
    assert!(stm.memory().is_whole(9));
}

#[test]
fn s1_14_a_part_of_a_word_is_stored_with_the_rest_as_it_was() {
    let stm = words(64);
    let mut thread = stm.thread();
    stm.memory().damage(17, 1 << 63, 0);
    stm.memory().damage(18, 1, 1 << 33);
    let stored = thread.atomically(|tx| Ok::<_, Abort<()>>(store(tx, 17 * 8 + 4, &[0xab; 6])?));
    stored.unwrap();
    let expected = [17 | 0xabab_abab << 32, 0xabab];
    assert_eq!([17, 18].map(|nth| read(&mut thread, nth).unwrap()), expected.map(|value| (value, None)));
}

#[test]
fn s1_14_a_lost_word_is_named() {
    let stm = words(64);
    let mut thread = stm.thread();
    stm.memory().damage(33, LOST.0, LOST.1);
    assert_eq!(read(&mut thread, 33), Err(Error::Lost(33 * 8)));
    let mut runs = 0;
    let swallowed = thread.atomically(|tx| {
        runs += 1;
        store(tx, 0, &[7])?;
        let lost = load(tx, 33).is_err();
        Ok::<_, Abort<()>>((lost, tx.lost()))
    });
    assert_eq!((swallowed, runs), (Err(Error::Lost(33 * 8)), 1));
    assert_eq!(read(&mut thread, 0).unwrap().0, 0);
    let part = thread.atomically(|tx| Ok::<_, Abort<()>>(store(tx, 33 * 8, &[1])?));
    assert_eq!(part, Err(Error::Lost(33 * 8)));
    thread.atomically(|tx| Ok::<_, Abort<()>>(store(tx, 33 * 8, &[1; 8])?)).unwrap();
    assert_eq!(read(&mut thread, 33).unwrap().0, 0x0101_0101_0101_0101);
    let text = Error::<std::fmt::Error, std::fmt::Error>::Lost(0x108).to_string();
    assert!(text.contains("0x108"), "{text}");
}

#[test]
fn words_that_are_being_stored_are_not_damaged() {
    let stm = words(8);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let stm = &stm;
            scope.spawn(move || {
                let mut member = stm.thread();
                for round in 0..5_000_u64 {
                    let value = (round << 8 | thread).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let both = member.atomically(|tx| {
                        let seen = [load(tx, 1)?, load(tx, 6)?];
                        store(tx, 8, &value.to_le_bytes())?;
                        store(tx, 48, &value.to_le_bytes())?;
                        Ok::<_, Abort<()>>(seen)
                    });
                    let [one, six] = both.unwrap().0;
                    assert!(one == six || (one, six) == (1, 6));
                }
            });
        }
    });
    assert!((0..8).all(|nth| stm.memory().is_whole(nth)));
}
