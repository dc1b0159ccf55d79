//! The program inside the machine: makes or recovers a pool, reports its contents, and writes until
//! the power goes.

mod board;
mod boot;
mod commit;
mod demand;
mod lines;
mod port;
mod writer;

use anyhow::{Context, Result, bail};
use indelible::{MediumKind, Pool, PoolOptions, Severity};
use indelible_rig::model::{Model, fingerprint};
use indelible_rig::program::OBJECTS;
use port::{Mark, say};
use std::collections::BTreeMap;
use std::path::Path;
use writer::Writer;

const POOL: u64 = 24 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let path = arguments.next().unwrap_or_default();
    let done = match task.as_str() {
        "ready" => {
            say("ready");
            Ok(())
        }
        "watch" => {
            port::mark(Mark::Watch);
            boot::reseed(std::env::var("RIG_boot").unwrap_or_default().as_bytes())
        }
        "lines" => lines::lines(Path::new(&path)),
        "demand" => demand::run(Path::new(&path)),
        "commit" => commit::run(Path::new(&path), arguments),
        "make" => make(Path::new(&path)),
        "run" => run(Path::new(&path)),
        _ => Err(anyhow::anyhow!("no such task")),
    };
    if let Err(error) = done {
        say(&format!("error {error:#}"));
    }
}

fn number(name: &str) -> Result<u64> {
    let text = std::env::var(format!("RIG_{name}")).with_context(|| format!("{name} is missing"))?;
    text.parse().with_context(|| format!("{name} is no number"))
}

/// Another medium would make the rig useless.
fn expected() -> MediumKind {
    match std::env::var("RIG_medium").as_deref() {
        Ok("devdax") => MediumKind::DevDax,
        _ => MediumKind::Dax,
    }
}

fn make(path: &Path) -> Result<()> {
    let pool = Pool::format(path, POOL)?;
    for (name, size) in OBJECTS {
        pool.create(name, size)?;
    }
    let doctor = indelible::doctor(Some(path));
    for fact in &doctor.facilities {
        say(&format!("fact {}: {}", fact.name, fact.found));
    }
    say("made");
    Ok(())
}

fn run(path: &Path) -> Result<()> {
    let (seed, from, to) = (number("seed")?, number("from")?, number("to")?);
    check(path, "before recovery")?;
    let pool = Pool::open(path)?;
    if pool.medium() != expected() {
        bail!("the pool is taken for {:?}", pool.medium());
    }
    let names: Vec<String> = pool.list().map(|stat| Ok(stat?.name)).collect::<Result<_>>()?;
    let mut writer = Writer::new(pool, seed);
    writer.attach(&names)?;
    let found = fingerprint(writer.bytes());
    let Some(number_found) = matching(seed, from, to, &found) else {
        say(&format!(
            "violation no state from {from} to {to} is {found}{}",
            nearest(seed, from, to, &writer)
        ));
        return Ok(());
    };
    say(&format!("rung {}", writer.rung()));
    say(&format!("recovered {}", writer.recovered()));
    let pool = writer.detach()?;
    drop(pool);
    check(path, "after recovery")?;
    say(&format!("state {number_found} {found}"));

    let steps = number("steps")?;
    if steps > 0 {
        let mut writer = Writer::new(Pool::open(path)?, seed);
        writer.attach(&names)?;
        port::mark(Mark::Go);
        let go = || writer.run(number_found + 1..=number_found + steps);
        broken(go)?;
    }
    say("end");
    Ok(())
}

fn matching(seed: u64, from: u64, to: u64, found: &str) -> Option<u64> {
    let mut model = Model::new(seed).at(from);
    while model.fingerprint() != found {
        if model.number >= to {
            return None;
        }
        model.advance();
    }
    Some(model.number)
}

fn nearest(seed: u64, from: u64, to: u64, writer: &Writer) -> String {
    let found: BTreeMap<&str, &[u8]> = writer.bytes().collect();
    let mut out = String::new();
    for number in from..=to {
        let model = Model::new(seed).at(number);
        out += &format!("; from {number}:");
        for (name, bytes) in &model.objects {
            match found.get(name) {
                Some(there) if there == bytes => {}
                Some(there) => {
                    let differ: Vec<_> = bytes
                        .iter()
                        .zip(*there)
                        .enumerate()
                        .filter(|(_, (a, b))| a != b)
                        .map(|(at, _)| at)
                        .collect();
                    let ends = (differ.first(), differ.last());
                    out += &format!(" {name} in {} bytes within {ends:?}", differ.len());
                }
                None => out += &format!(" {name} is missing"),
            }
        }
    }
    out
}

fn check(path: &Path, when: &str) -> Result<()> {
    let report = indelible::check(path, &PoolOptions::new(), &mut |_, _| {})?;
    for finding in report.findings.iter().filter(|finding| finding.severity != Severity::Note) {
        say(&format!("violation check {when}: {finding:?}"));
    }
    Ok(())
}

#[cfg(not(feature = "mutants"))]
fn broken(go: impl FnOnce() -> Result<()>) -> Result<()> {
    go()
}

#[cfg(feature = "mutants")]
fn broken(go: impl FnOnce() -> Result<()>) -> Result<()> {
    use indelible_store::Mutant;
    let mutant = match std::env::var("RIG_mutant").as_deref() {
        Ok("NoWriteBack") => Mutant::NoWriteBack,
        Ok("NoFence") => Mutant::NoFence,
        Ok("ApplyFirst") => Mutant::ApplyFirst,
        Ok("AcknowledgedUnflushed") => Mutant::AcknowledgedUnflushed,
        other => bail!("no such mutant: {other:?}"),
    };
    indelible_store::with_mutant(mutant, go)
}
