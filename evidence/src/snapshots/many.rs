use super::times::timed;
use anyhow::{Result, ensure};
use indelible::{Object, Pool};
use indelible_record::add;
use std::collections::BTreeMap;

const OBJECT: &str = "kept often";
const PAGE: usize = 4096;
const LOOKS: usize = 500;

fn name(round: u64) -> String {
    format!("round {round}")
}

fn words(round: u64) -> [u64; 2] {
    let before = round.saturating_sub(1);
    if round.is_multiple_of(2) { [round, before] } else { [before, round] }
}

fn has(bytes: &[u8], round: u64) -> Result<()> {
    let found = [0, PAGE].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default()));
    ensure!(found == words(round), "after round {round} the pages have {found:?}");
    Ok(())
}

pub(super) fn many(
    pool: &Pool,
    count: u64,
    rng: &mut fastrand::Rng,
    counts: &mut BTreeMap<String, u64>,
    word: &str,
) -> Result<()> {
    let before = pool.info()?.objects;
    let mut object = pool.create_attached(OBJECT, 2 * PAGE as u64)?;
    let ((), made) = timed(|| (0..count).try_for_each(|round| keep(pool, &mut object, round)))?;
    object.detach()?;
    let mut rounds: Vec<u64> = (0..count).collect();
    rng.shuffle(&mut rounds);
    compare(pool, &rounds)?;
    let kept = rounds.split_off(rounds.len() / 2);
    rounds.iter().try_for_each(|round| pool.destroy(&name(*round)))?;
    let object = pool.attach(OBJECT)?;
    let (_, merged) = timed(|| Ok(pool.collect(&mut |_, _| {})?))?;
    object.detach()?;
    compare(pool, &kept)?;
    kept.iter().try_for_each(|round| pool.destroy(&name(*round)))?;
    pool.collect(&mut |_, _| {})?;
    has(pool.attach_read(OBJECT)?.as_slice(), count - 1)?;
    pool.destroy(OBJECT)?;
    pool.collect(&mut |_, _| {})?;
    let after = pool.info()?.objects;
    ensure!(after == before, "{before} objects before, {after} once all are gone");
    add(counts, &format!("{word}: snapshots of one object at once"), count);
    add(counts, &format!("{word}: to make them, each after a psync, ms"), (made / 1000.0) as u64);
    add(counts, &format!("{word}: to merge what half of them leave, ms"), (merged / 1000.0) as u64);
    Ok(())
}

fn keep(pool: &Pool, object: &mut Object, round: u64) -> Result<()> {
    let at = (round % 2) as usize * PAGE;
    object.range_mut(at..at + 8).copy_from_slice(&round.to_le_bytes());
    object.psync()?;
    Ok(pool.snapshot(OBJECT, &name(round), b"")?)
}

fn compare(pool: &Pool, rounds: &[u64]) -> Result<()> {
    rounds.iter().take(LOOKS).try_for_each(|round| has(pool.attach_read(&name(*round))?.as_slice(), *round))
}
