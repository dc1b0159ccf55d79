//! The table: a line for each mutant, a column for each layer.

use super::Mutants;
use super::layers::{ELSEWHERE, LAYERS, Verdict};
use crate::crashes::Pools;
use crate::record::{Mode, Record};
use anyhow::{Result, bail};
use indelible_store::{Mutant, with_mutant};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A mutant, and what each layer said that noticed it.
#[derive(Serialize)]
struct Line {
    mutant: String,
    rule: &'static str,
    /// By layer: what was wrong.
    noticed: BTreeMap<&'static str, String>,
    /// The command that notices it, if no layer here can.
    elsewhere: Option<&'static str>,
}

/// A panic is a verdict too: no layer panics on the protocol as it is.
fn verdict(layer: usize, pools: &Pools) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| (LAYERS[layer].run)(pools))).unwrap_or_else(|_| Err("panicked".into()))
}

fn line(mutant: Mutant, pools: &Pools, bar: &ProgressBar) -> Line {
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == mutant).map(|(_, command)| *command);
    let mut noticed = BTreeMap::new();
    let layers = if elsewhere.is_some() { &[] } else { LAYERS };
    for (at, layer) in layers.iter().enumerate() {
        if let Err(cause) = with_mutant(mutant, || verdict(at, pools)) {
            noticed.insert(layer.name, cause);
        }
        bar.inc(1);
    }
    Line { mutant: format!("{mutant:?}"), rule: mutant.rule(), noticed, elsewhere }
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
    let bar = ProgressBar::new(((chosen.len() + 1) * LAYERS.len()) as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} verdicts, {elapsed}, {eta} left")?);
    // Panics are verdicts here.
    std::panic::set_hook(Box::new(|_| {}));
    let pools = Pools::new();
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let control = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..how.threads.max(1) {
            scope.spawn(|| {
                loop {
                    // Number 0 is the protocol as it is.
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number == 0 {
                        for (at, layer) in LAYERS.iter().enumerate() {
                            if let Err(cause) = verdict(at, &pools) {
                                let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
                                control.push(format!("{}: {cause}", layer.name));
                            }
                            bar.inc(1);
                        }
                        continue;
                    }
                    let Some(mutant) = chosen.get(number - 1) else { break };
                    let line = line(*mutant, &pools, &bar);
                    lines.lock().unwrap_or_else(PoisonError::into_inner).insert(number, line);
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    bar.finish_and_clear();
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect::<Vec<_>>();
    let control = control.into_inner().unwrap_or_else(PoisonError::into_inner);
    if how.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        print(&lines, how.why);
    }
    if !control.is_empty() {
        bail!("layers that find fault with the protocol as it is:\n{}", control.join("\n"));
    }
    let (left, here): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.elsewhere.is_some());
    let (missed, caught): (Vec<&Line>, Vec<&Line>) =
        here.into_iter().partition(|line| line.noticed.is_empty());
    let names = |lines: &[&Line]| lines.iter().map(|line| line.mutant.clone()).collect::<Vec<_>>();
    if how.only.is_empty() {
        let mut counts = BTreeMap::from([
            ("deliberate faults".to_owned(), lines.len() as u64),
            ("deliberate faults noticed".to_owned(), caught.len() as u64),
            ("deliberate faults left to cargo xtask power-cut".to_owned(), left.len() as u64),
            ("violations".to_owned(), 0),
        ]);
        for layer in LAYERS {
            let by = lines.iter().filter(|line| line.noticed.contains_key(layer.name)).count();
            counts.insert(format!("noticed by: {}", layer.what), by as u64);
        }
        Record {
            layer: "mutants".into(),
            mode: Mode::Short,
            command: "cargo run --release -p indelible-evidence --features mutants -- mutants".into(),
            seed: super::layers::SEED,
            seconds: begin.elapsed().as_secs_f64(),
            counts,
            caught: names(&caught),
            missed: names(&missed),
        }
        .save()?;
    }
    if !missed.is_empty() {
        bail!("noticed by no layer: {}", names(&missed).join(", "));
    }
    Ok(())
}

fn print(lines: &[Line], why: bool) {
    for layer in LAYERS {
        println!("{:>8}  {}", layer.name, layer.what);
    }
    println!();
    print!("{:<22}", "");
    LAYERS.iter().for_each(|layer| print!("{:>8}", layer.name));
    println!();
    for line in lines {
        print!("{:<22}", line.mutant);
        for layer in LAYERS {
            print!(
                "{:>8}",
                if line.elsewhere.is_some() {
                    ""
                } else if line.noticed.contains_key(layer.name) {
                    "x"
                } else {
                    "."
                }
            );
        }
        println!("  {}{}", line.rule, line.elsewhere.map_or(String::new(), |by| format!(" ({by})")));
        for (layer, cause) in line.noticed.iter().filter(|_| why) {
            println!("    {layer}: {}", cause.lines().next().unwrap_or_default());
        }
    }
}
