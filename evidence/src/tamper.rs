//! Tampering without a key: changes pools with sealed objects as an attacker would, with fitting
//! checksums.
//!
//! A reader or writer with an object's keys gets its bytes or an error: never the bytes of another
//! object, sealed or not.

use anyhow::{Context, Result, bail};
use clap::Args;
use indelible::{CreateOptions, MediumKind, Pool, PoolOptions, SealKey, SignKey};
use indelible_record::{Mode, Record, add};
use indelible_store::table::Located;
use indelible_testing::tamper::{EXCHANGES, FIELDS, forge_field, say_identity, void_table_lane};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

const SIZE: u64 = 3 * 4096;
const NAMES: [&str; 5] = ["a", "b", "c", "copy", "plain"];
const ORIGIN: &str = "a";

#[derive(Args)]
pub(crate) struct Tamper {
    /// Many pools
    #[arg(long)]
    long: bool,
    /// Pools to make and to change [default: 40, or 20000 with --long]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
}

impl Tamper {
    pub(crate) fn run(&self) -> Result<()> {
        let (mode, usual) = if self.long { (Mode::Long, 20_000) } else { (Mode::Short, 40) };
        let (rounds, seed) = (self.rounds.unwrap_or(usual), self.seed.unwrap_or_else(|| fastrand::u64(..)));
        let long = if self.long { " --long" } else { "" };
        let command = format!("pmo-evidence tamper{long} --rounds {rounds} --seed {seed}");
        println!("tamper: seed {seed}");
        let mut record = Record::new("tamper", mode, command, seed);
        let begin = Instant::now();
        add(&mut record.counts, "violations", 0);
        for round in 0..rounds {
            self::round(&mut fastrand::Rng::with_seed(seed ^ (round << 20)), &mut record.counts)
                .with_context(|| format!("round {round}"))?;
        }
        record.seconds = begin.elapsed().as_secs_f64();
        record.print();
        record.save()?;
        match record.counts["violations"] {
            0 => Ok(()),
            count => bail!("{count} violations\nagain: {}", record.command),
        }
    }
}

struct Keys {
    reading: SealKey,
    writing: SealKey,
}

impl Keys {
    fn new(signed: bool) -> Result<Keys> {
        let (seal, sign) = (SealKey::file(vec![0x5a; 32])?, SignKey::file(vec![0x3c; 32])?);
        Ok(match signed {
            true => {
                Keys { reading: seal.clone().verified_by(sign.verify_key()), writing: seal.signed_by(&sign)? }
            }
            false => Keys { reading: seal.clone(), writing: seal },
        })
    }
}

fn options() -> PoolOptions {
    PoolOptions::new().medium(MediumKind::File).fault_in(false)
}

fn byte_of(name: &str) -> u8 {
    let of = if name == "copy" { ORIGIN } else { name };
    of.as_bytes()[0]
}

fn make(path: &Path, keys: &Keys) -> Result<BTreeMap<&'static str, Located>> {
    let pool = options().format(path, 2 << 20)?;
    for name in ["a", "b", "c", "plain"] {
        let how = CreateOptions::new(SIZE);
        let how = if name == "plain" { how } else { how.sealed(&keys.writing, "") };
        let mut object = pool.create_attached_with(name, &how)?;
        object.as_mut_slice().fill(byte_of(name));
        object.psync()?;
        object.detach()?;
    }
    // Page by page: with a base, the key page would be there.
    pool.copy_to(ORIGIN, b"", &pool, "copy", &mut |_, _| {})?;
    NAMES.into_iter().map(|name| Ok((name, pool.store().find(name)?))).collect()
}

fn round(rng: &mut fastrand::Rng, counts: &mut BTreeMap<String, u64>) -> Result<()> {
    let folder = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" })?;
    let path = folder.path().join("t.pmo");
    let keys = Keys::new(rng.bool())?;
    let objects = make(&path, &keys)?;
    let sound = std::fs::read(&path)?;
    let changes = EXCHANGES.len() + FIELDS.len() + 1;
    for change in 0..changes {
        let mut bytes = sound.clone();
        let (one, other) = (rng.usize(..NAMES.len()), rng.usize(1..NAMES.len()));
        let [one, other] = [one, (one + other) % NAMES.len()].map(|at| &objects[NAMES[at]]);
        let emptied = rng.bool();
        if emptied {
            void_table_lane(&mut bytes);
        }
        let what = if let Some((what, exchange)) = EXCHANGES.get(change) {
            exchange(&mut bytes, one, other);
            format!("exchanged {what}")
        } else if let Some((what, forge)) = FIELDS.get(change - EXCHANGES.len()) {
            forge_field(&mut bytes, one, |entry| forge(entry, &other.entry, rng.u64(..)));
            format!("forged {what}")
        } else {
            renamed(&path, &mut bytes, [one, other])?;
            "exchanged names".to_owned()
        };
        std::fs::write(&path, &bytes)?;
        add(counts, &what, 1);
        add(
            counts,
            if emptied { "with the table's lane emptied" } else { "with the table's lane as it was" },
            1,
        );
        look(&path, &keys, &what, counts)?;
    }
    Ok(())
}

fn renamed(path: &Path, bytes: &mut Vec<u8>, objects: [&Located; 2]) -> Result<()> {
    let sealed = objects.into_iter().filter(|object| object.is_sealed());
    let say = |bytes: &mut [u8], is| sealed.clone().for_each(|object| say_identity(bytes, object, is));
    say(bytes, false);
    std::fs::write(path, &bytes[..])?;
    let pool = options().open(path)?;
    let [one, other] = objects.map(|object| object.entry.name());
    for (name, new) in [(&*one, "x"), (&*other, &*one), ("x", &*other)] {
        pool.rename(name, new, b"")?;
    }
    drop(pool);
    *bytes = std::fs::read(path)?;
    say(bytes, true);
    Ok(())
}

fn look(path: &Path, keys: &Keys, what: &str, counts: &mut BTreeMap<String, u64>) -> Result<()> {
    let Ok(pool) = options().open(path) else {
        add(counts, "pools that were refused", 1);
        return Ok(());
    };
    for name in NAMES {
        let as_copy = |key: &SealKey| match name {
            "copy" => key.clone().sealed_as(ORIGIN),
            _ => key.clone(),
        };
        let (reading, writing) = (as_copy(&keys.reading), as_copy(&keys.writing));
        let shown = [
            shown(&pool, name, &reading, false),
            shown(&pool, name, &writing, true),
            pool.attach_snapshot_sealed_anywhere(name, b"", &reading)
                .map(|object| object.as_slice().to_vec()),
        ];
        for shown in shown {
            match shown {
                Err(_) => add(counts, "refused", 1),
                Ok(bytes) if name != "plain" && bytes.iter().all(|byte| *byte == byte_of(name)) => {
                    add(counts, "as it was sealed", 1);
                }
                Ok(bytes) => {
                    add(counts, "violations", 1);
                    eprintln!("{what}: {name} shows {:?}", bytes.first().map(|byte| char::from(*byte)));
                }
            }
        }
    }
    Ok(())
}

fn shown(pool: &Pool, name: &str, key: &SealKey, writing: bool) -> indelible::Result<Vec<u8>> {
    if !writing {
        let object = pool.attach_read_sealed(name, b"", key)?;
        object.prefault(0..object.len())?;
        return Ok(object.as_slice().to_vec());
    }
    let object = pool.attach_sealed(name, b"", key)?;
    object.prefault(0..object.len())?;
    let bytes = object.as_slice().to_vec();
    object.detach()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(rounds: u64) -> u64 {
        let mut counts = BTreeMap::new();
        for seed in 0..rounds {
            round(&mut fastrand::Rng::with_seed(seed), &mut counts).unwrap();
        }
        assert!(counts["refused"] > 0 && counts["as it was sealed"] > 0, "{counts:?}");
        counts.get("violations").copied().unwrap_or(0)
    }

    #[test]
    fn nothing_is_shown_that_was_not_sealed_under_its_name() {
        assert_eq!(violations(3), 0);
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn names_that_nobody_compares_are_noticed() {
        let mutant = indelible_store::Mutant::IdentityUnchecked;
        assert!(indelible_store::with_mutant(mutant, || violations(3)) > 0);
    }
}
