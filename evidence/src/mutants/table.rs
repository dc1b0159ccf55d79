//! The table: a line for each mutant, a column for each layer.

use super::Mutants;
use super::layers::{BENEATH, LAYERS, SEED, Verdict};
use super::programs::{PROGRAMS, RIG, rig};
use crate::crashes::Pools;
use anyhow::{Result, bail};
use indelible_record::{Mode, Record, add};
use indelible_store::{Mutant, with_mutant};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A mutant, or the protocol as it is, and what each layer that was run said.
#[derive(Serialize)]
struct Line {
    mutant: String,
    rule: &'static str,
    /// By layer: what was wrong, if anything.
    verdicts: BTreeMap<&'static str, Option<String>>,
}

impl Line {
    fn noticed(&self) -> bool {
        self.by() > 0
    }

    /// Layers that noticed it.
    fn by(&self) -> usize {
        self.verdicts.values().flatten().count()
    }

    fn mark(&self, layer: &str) -> &'static str {
        match self.verdicts.get(layer) {
            None => "-",
            Some(None) => ".",
            Some(Some(_)) => "x",
        }
    }
}

/// The columns, and what each does.
fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    let layers = LAYERS.iter().map(|layer| (layer.name, layer.what));
    let programs = PROGRAMS.iter().map(|program| (program.name, program.what));
    layers.chain(programs).chain([(RIG, "power cuts of emulated machines, as last recorded")])
}

/// A panic is a verdict too: no layer panics on the protocol as it is.
fn verdict(layer: usize, pools: &Pools) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| (LAYERS[layer].run)(pools))).unwrap_or_else(|_| Err("panicked".into()))
}

/// Runs every layer and program against a mutant, or against the protocol as it is.
fn line(mutant: Option<Mutant>, long: bool, pools: &Pools, bar: &ProgressBar) -> Result<Line> {
    let mut verdicts = BTreeMap::new();
    let beneath = mutant.is_some_and(|mutant| BENEATH.contains(&mutant));
    for (at, layer) in LAYERS.iter().enumerate().filter(|_| !beneath) {
        let said = match mutant {
            Some(mutant) => with_mutant(mutant, || verdict(at, pools)),
            None => verdict(at, pools),
        };
        verdicts.insert(layer.name, said.err());
        bar.inc(1);
    }
    for program in PROGRAMS.iter().filter(|_| long) {
        verdicts.insert(program.name, program.verdict(mutant)?.err());
        bar.inc(1);
    }
    let name = mutant.map_or_else(|| "the protocol as it is".to_owned(), |mutant| format!("{mutant:?}"));
    Ok(Line { mutant: name, rule: mutant.map_or("", Mutant::rule), verdicts })
}

/// All lines, that of the protocol as it is first: before any other, as it makes the pools that all start from.
fn lines(chosen: &[Mutant], how: &Mutants) -> Result<Vec<Line>> {
    let width = LAYERS.len() + if how.long { PROGRAMS.len() } else { 0 };
    let bar = ProgressBar::new(((chosen.len() + 1) * width) as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} verdicts, {elapsed}, {eta} left")?);
    let pools = Pools::new();
    let control = line(None, how.long, &pools, &bar);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..how.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = chosen.get(number) else { break };
                    let line = line(Some(*mutant), how.long, &pools, &bar);
                    done.lock().expect("nobody panicked").insert(number, line);
                }
            });
        }
    });
    bar.finish_and_clear();
    let lines = done.into_inner().expect("nobody panicked").into_values();
    [control].into_iter().chain(lines).collect()
}

pub(super) fn run(how: &Mutants) -> Result<()> {
    let chosen: Vec<Mutant> = Mutant::ALL
        .iter()
        .copied()
        .filter(|mutant| how.only.is_empty() || how.only.contains(&format!("{mutant:?}")))
        .collect();
    if chosen.is_empty() {
        bail!("no such mutant: {}", how.only.join(", "));
    }
    let begin = Instant::now();
    // Panics are verdicts here.
    std::panic::set_hook(Box::new(|_| {}));
    let lines = lines(&chosen, how);
    let _ = std::panic::take_hook();
    let mut lines = lines?;
    let control = lines.remove(0);
    let rig = rig();
    for line in &mut lines {
        if let Some(said) = rig.get(&line.mutant) {
            line.verdicts.insert(RIG, said.clone().err());
        }
    }
    if how.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        print(&lines, how.why);
    }
    if control.noticed() {
        bail!("layers that find fault with the protocol as it is: {:#?}", control.verdicts);
    }
    let beneath = |line: &Line| BENEATH.iter().any(|mutant| format!("{mutant:?}") == line.mutant);
    let (left, here): (Vec<&Line>, Vec<&Line>) =
        lines.iter().partition(|line| beneath(line) && !line.verdicts.contains_key(RIG));
    let (caught, missed): (Vec<&Line>, Vec<&Line>) = here.into_iter().partition(|line| line.noticed());
    let names = |lines: &[&Line]| lines.iter().map(|line| line.mutant.clone()).collect::<Vec<_>>();
    if how.only.is_empty() {
        let (mode, long) = if how.long { (Mode::Long, " --long") } else { (Mode::Short, "") };
        let command =
            format!("cargo run --release -p indelible-evidence --features mutants -- mutants{long}");
        let mut record = Record::new("mutants", mode, command, SEED);
        add(&mut record.counts, "deliberate faults", lines.len() as u64);
        add(&mut record.counts, "deliberate faults noticed", caught.len() as u64);
        add(&mut record.counts, "deliberate faults left to cargo xtask power-cut", left.len() as u64);
        let alone = caught.iter().filter(|line| line.by() == 1).count();
        add(&mut record.counts, "deliberate faults noticed by one layer alone", alone as u64);
        for (name, what) in columns() {
            let by = lines.iter().filter(|line| line.mark(name) == "x").count();
            add(&mut record.counts, &format!("noticed by {name}: {what}"), by as u64);
        }
        for line in &lines {
            let row = line.verdicts.iter().map(|(layer, said)| ((*layer).to_owned(), said.is_some()));
            record.table.insert(line.mutant.clone(), row.collect());
        }
        (record.caught, record.missed) = (names(&caught), names(&missed));
        record.seconds = begin.elapsed().as_secs_f64();
        record.save()?;
    }
    if !missed.is_empty() {
        bail!("noticed by no layer: {}", names(&missed).join(", "));
    }
    Ok(())
}

fn print(lines: &[Line], why: bool) {
    columns().for_each(|(name, what)| println!("{name:>9}  {what}"));
    println!("\nx noticed   . not noticed   - not run\n");
    print!("{:<22}", "");
    columns().for_each(|(name, _)| print!("{name:>9}"));
    println!();
    for line in lines {
        print!("{:<22}", line.mutant);
        columns().for_each(|(name, _)| print!("{:>9}", line.mark(name)));
        println!("  {}", line.rule);
        for (layer, cause) in line.verdicts.iter().filter(|_| why) {
            if let Some(cause) = cause {
                let line = cause.lines().next().unwrap_or_default();
                println!("    {layer}: {}", line.chars().take(160).collect::<String>());
            }
        }
    }
}
