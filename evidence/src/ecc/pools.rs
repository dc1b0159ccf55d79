//! Damages words with check words in files of pools between two runs; transactions of the next run
//! read right values, or report a lost word.

use anyhow::{Context, Result, anyhow, bail};
use fastrand::Rng;
use indelible::{CreateOptions, Error, ErrorKind, Pool, TxCell, TxObject};
use indelible_record::add;
use indelible_stm::ecc::{Beyond, check_word, repair};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::TempDir;

const WORDS: usize = 2048;
const DAMAGED: usize = 64;

type Table = [TxCell<u64>; WORDS];
type Counts = BTreeMap<String, u64>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Repaired,
    Lost,
}

pub(super) fn run(rounds: u64, codewords: &[u128], seed: u64, counts: &mut Counts) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    for folder in [TempDir::new_in("/var/tmp").or_else(|_| TempDir::new())?, TempDir::new_in("/dev/shm")?] {
        let path = folder.path().join("ecc.pmo");
        let pool = Pool::format(&path, 16 << 20)?;
        pool.create_with("words", &CreateOptions::new(8 * WORDS as u64).ecc(true))?;
        let mut values: Vec<u64> = (0..WORDS).map(|_| random.u64(..)).collect();
        store(&attach(&pool)?, (0..WORDS).map(|nth| (nth, values[nth])))?;
        drop(pool);
        for round in 0..rounds {
            let fates = damage(&path, codewords, &mut random)?;
            let pool = Pool::open(&path)?;
            let wrong = if round % 2 == 0 {
                read(&pool, &mut values, &fates, &mut random, counts)?
            } else {
                scrub(&pool, &values, &fates, counts)?
            };
            add(counts, "violations", wrong);
            add(counts, "runs on damaged pools", 1);
        }
    }
    Ok(())
}

fn attach(pool: &Pool) -> Result<TxObject<Table>> {
    Ok(pool.attach_transactional("words")?)
}

fn store(object: &TxObject<Table>, words: impl Iterator<Item = (usize, u64)> + Clone) -> Result<()> {
    let stored: Result<(), Error> = object
        .transaction(|tx| words.clone().try_for_each(|(nth, value)| tx.write(&object.root()[nth], value)));
    Ok(stored?)
}

fn damage(path: &Path, codewords: &[u128], random: &mut Rng) -> Result<BTreeMap<usize, Fate>> {
    let offset = Pool::open(path)?.stat("words")?.offset;
    let file = OpenOptions::new().read(true).write(true).open(path).context("cannot open the pool's file")?;
    let mut fates = BTreeMap::new();
    while fates.len() < DAMAGED {
        let nth = random.usize(..WORDS);
        if fates.contains_key(&nth) {
            continue;
        }
        let at = offset + 16 * nth as u64;
        let bits = match random.u8(..16) {
            0 => half(codewords[random.usize(..codewords.len())], random),
            1 => u128::MAX << random.u32(..64),
            _ => some_bits(random),
        };
        let mut pair = [0; 16];
        file.read_exact_at(&mut pair, at)?;
        let bits = if random.u8(..4) == 0 && bits >> 64 != 0 { bits >> 64 << 64 } else { bits };
        fates.insert(nth, fate(codewords, bits)?);
        flip(&file, at, pair, bits)?;
    }
    Ok(fates)
}

fn some_bits(random: &mut Rng) -> u128 {
    let (mut bits, count) = (0_u128, random.u32(1..=7));
    while bits.count_ones() < count {
        bits |= 1 << random.u32(..128);
    }
    bits
}

fn half(codeword: u128, random: &mut Rng) -> u128 {
    let mut half = codeword;
    while half.count_ones() > 7 {
        half &= !(1 << random.u32(..128));
    }
    half
}

/// No promise covers more than 7 bits; the damages made here are known to be noticed.
fn fate(codewords: &[u128], bits: u128) -> Result<Fate> {
    let known = |codeword: &u128| codeword & bits == bits;
    match bits.count_ones() {
        ..=6 => Ok(Fate::Repaired),
        7 => Ok(if codewords.iter().any(known) { Fate::Lost } else { Fate::Repaired }),
        _ => match repair((bits >> 64) as u64, check_word(0) ^ bits as u64) {
            Err(Beyond::TooManyFlips) => Ok(Fate::Lost),
            other => Err(anyhow!("a damage that is taken for another one: {bits:#x} {other:?}")),
        },
    }
}

fn flip(file: &File, at: u64, pair: [u8; 16], bits: u128) -> Result<()> {
    let mut flipped = [0; 16];
    let halves = [((bits >> 64) as u64).to_le_bytes(), (bits as u64).to_le_bytes()].concat();
    flipped.iter_mut().zip(pair).zip(halves).for_each(|((into, byte), bits)| *into = byte ^ bits);
    Ok(file.write_all_at(&flipped, at)?)
}

fn read(
    pool: &Pool,
    values: &mut [u64],
    fates: &BTreeMap<usize, Fate>,
    random: &mut Rng,
    counts: &mut Counts,
) -> Result<u64> {
    let object = attach(pool)?;
    let mut wrong = 0;
    for (nth, value) in values.iter().enumerate() {
        let found = object.transaction(|tx| tx.read(&object.root()[nth]));
        let outcome = match (found, fates.get(&nth)) {
            (Ok(found), None) if found == *value => continue,
            (Ok(found), Some(Fate::Repaired)) if found == *value => {
                "damaged words that transactions repaired"
            }
            (Err(error), Some(Fate::Lost)) if error.kind() == ErrorKind::Damaged => {
                "damaged words that transactions refused"
            }
            (found, _) => {
                eprintln!("word {nth}, which was {value:#x}: {found:?}");
                wrong += 1;
                continue;
            }
        };
        add(counts, outcome, 1);
    }
    let lost = fates.iter().filter(|(_, fate)| **fate == Fate::Lost).map(|(nth, _)| *nth);
    let changed: Vec<usize> = lost.chain((0..50).map(|_| random.usize(..WORDS))).collect();
    changed.iter().for_each(|nth| values[*nth] = random.u64(..));
    store(&object, changed.iter().map(|nth| (*nth, values[*nth])))?;
    Ok(wrong)
}

fn scrub(pool: &Pool, values: &[u64], fates: &BTreeMap<usize, Fate>, counts: &mut Counts) -> Result<u64> {
    let found = pool.scrub("words", b"", &mut |_, _| {})?;
    let lost: Vec<u64> =
        fates.iter().filter(|(_, fate)| **fate == Fate::Lost).map(|(nth, _)| 8 * *nth as u64).collect();
    let repaired = (fates.len() - lost.len()) as u64;
    add(counts, "damaged words that a scrub repaired", found.repaired);
    add(counts, "damaged words that a scrub named", found.lost.len() as u64);
    let mut wrong = u64::from(found.lost != lost) + u64::from(found.repaired != repaired);
    let object = attach(pool)?;
    let anew = lost.iter().map(|offset| *offset as usize / 8);
    store(&object, anew.map(|nth| (nth, values[nth])))?;
    for (nth, value) in values.iter().enumerate() {
        wrong += u64::from(object.transaction(|tx| tx.read(&object.root()[nth])).ok() != Some(*value));
    }
    if object.repairs().repaired > 0 {
        bail!("a scrub left words to be repaired");
    }
    Ok(wrong)
}
