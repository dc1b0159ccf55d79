use super::Mutants;
use super::common::{SEED, Verdict};
use super::demand::{DEMAND_TESTS, watch};
use super::layers::{BENEATH, LAYERS};
use super::programs::{PROGRAMS, RECORDED, recorded};
use crate::crashes::Pools;
use anyhow::{Result, bail};
use indelible_record::{Mode, Record, add};
use indelible_store::{Mutant, with_mutant};
use indelible_testing::rules::RULE_TESTS;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

#[derive(Serialize)]
struct Line {
    mutant: String,
    rule: &'static str,
    verdicts: BTreeMap<&'static str, Option<String>>,
    tests: BTreeMap<&'static str, Option<String>>,
}

const TESTS: &str = "tests";
const LEAST: usize = 2;

impl Line {
    fn noticed(&self) -> bool {
        self.by() > 0
    }

    fn by(&self) -> usize {
        self.verdicts.values().chain(self.tests.values()).flatten().count()
    }

    fn found(&self, column: &str) -> Option<bool> {
        if column == TESTS {
            return (!self.tests.is_empty()).then(|| self.tests.values().any(Option::is_some));
        }
        self.verdicts.get(column).map(Option::is_some)
    }

    fn mark(&self, column: &str) -> &'static str {
        match self.found(column) {
            None => "-",
            Some(false) => ".",
            Some(true) => "x",
        }
    }

    fn is_left_to_others(&self) -> bool {
        let beneath = BENEATH.iter().any(|mutant| format!("{mutant:?}") == self.mutant);
        beneath && self.by() < LEAST && !self.verdicts.contains_key("rig")
    }
}

fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    let layers = LAYERS.iter().map(|layer| (layer.name, layer.what));
    let programs = PROGRAMS.iter().map(|program| (program.name, program.what));
    let recorded = RECORDED.iter().map(|other| (other.name, other.what));
    [(TESTS, "scenarios made for the rule")].into_iter().chain(layers).chain(programs).chain(recorded)
}

fn verdict(mutant: Option<Mutant>, run: impl Fn() -> Verdict) -> Verdict {
    let run = || catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked".into()));
    match mutant {
        Some(mutant) => with_mutant(mutant, run),
        None => run(),
    }
}

fn line(mutant: Option<Mutant>, long: bool, pools: &Pools, bar: &ProgressBar) -> Result<Line> {
    let name = mutant.map_or_else(|| "the protocol as it is".to_owned(), |mutant| format!("{mutant:?}"));
    let rule = mutant.map_or("", Mutant::rule);
    let mut line = Line { mutant: name, rule, verdicts: BTreeMap::new(), tests: BTreeMap::new() };
    let tests = RULE_TESTS.iter().chain(DEMAND_TESTS);
    for test in tests.filter(|test| mutant.is_none_or(|mutant| test.watches.contains(&mutant))) {
        line.tests.insert(test.name, verdict(mutant, test.run).err());
    }
    bar.inc(1);
    for layer in LAYERS.iter().filter(|layer| mutant.is_none_or(|mutant| layer.reaches(mutant))) {
        if long || mutant.is_none() || line.by() < LEAST {
            line.verdicts.insert(layer.name, verdict(mutant, || (layer.run)(pools)).err());
        }
        bar.inc(1);
    }
    for program in
        PROGRAMS.iter().filter(|program| long || mutant.is_some_and(|mutant| program.is_for(mutant)))
    {
        line.verdicts.insert(program.name, program.verdict(mutant)?.err());
        bar.inc(1);
    }
    Ok(line)
}

fn lines(chosen: &[Mutant], how: &Mutants) -> Result<Vec<Line>> {
    let width = 1 + LAYERS.len() + if how.long { PROGRAMS.len() } else { 0 };
    let bar = ProgressBar::new(((chosen.len() + 1) * width) as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} verdicts, {elapsed}, {eta} left")?);
    let pools = Pools::new();
    let control = line(None, how.long, &pools, &bar)?;
    if control.noticed() {
        let wrong = control.verdicts.iter().chain(&control.tests);
        let wrong: Vec<_> = wrong.filter_map(|(name, said)| Some((name, said.as_ref()?))).collect();
        bail!("detectors that find fault with the protocol as it is: {wrong:#?}");
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..how.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = chosen.get(number) else { break };
                    let line = line(Some(*mutant), how.long, &pools, &bar);
                    done.lock().expect("no thread panicked").insert(number, line);
                }
            });
        }
    });
    bar.finish_and_clear();
    let lines = done.into_inner().expect("no thread panicked").into_values();
    lines.collect()
}

pub(super) fn run(how: &Mutants) -> Result<()> {
    let on_demand = Mutant::ON_DEMAND.iter().filter(|mutant| watch(**mutant));
    let chosen: Vec<Mutant> = Mutant::PROTOCOL
        .iter()
        .chain(on_demand)
        .copied()
        .filter(|mutant| how.only.is_empty() || how.only.contains(&format!("{mutant:?}")))
        .collect();
    if chosen.is_empty() {
        bail!("no such mutant: {}", how.only.join(", "));
    }
    let begin = Instant::now();
    std::panic::set_hook(Box::new(|_| {}));
    let lines = lines(&chosen, how);
    let _ = std::panic::take_hook();
    let mut lines = lines?;
    for other in RECORDED {
        let said = recorded(other);
        for line in &mut lines {
            if let Some(said) = said.get(&line.mutant) {
                line.verdicts.insert(other.name, said.clone().err());
            }
        }
    }
    if how.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        print(&lines, how.why);
    }
    let (left, here): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.is_left_to_others());
    let (caught, missed): (Vec<&Line>, Vec<&Line>) = here.into_iter().partition(|line| line.noticed());
    let names = |lines: &[&Line]| lines.iter().map(|line| line.mutant.clone()).collect::<Vec<_>>();
    let wrong = short_of_detectors(&lines);
    if how.only.is_empty() {
        let (mode, long) = if how.long { (Mode::Long, " --long") } else { (Mode::Short, "") };
        let command =
            format!("cargo run --release -p indelible-evidence --features mutants -- mutants{long}");
        let mut record = Record::new("mutants", mode, command, SEED);
        add(&mut record.counts, "deliberate faults", lines.len() as u64);
        add(&mut record.counts, "deliberate faults noticed", caught.len() as u64);
        add(&mut record.counts, "deliberate faults left to cargo xtask power-cut", left.len() as u64);
        add(&mut record.counts, "violations", wrong.len() as u64);
        let least = lines.iter().filter(|line| line.by() >= LEAST).count();
        add(&mut record.counts, "deliberate faults noticed by two detectors or more", least as u64);
        for (name, what) in columns() {
            let by = lines.iter().filter(|line| line.found(name) == Some(true)).count();
            add(&mut record.counts, &format!("noticed by {name}: {what}"), by as u64);
        }
        for line in &lines {
            let row = columns().filter_map(|(name, _)| Some((name.to_owned(), line.found(name)?)));
            record.table.insert(line.mutant.clone(), row.collect());
            record.detectors.insert(line.mutant.clone(), line.by() as u64);
        }
        (record.caught, record.missed) = (names(&caught), names(&missed));
        record.seconds = begin.elapsed().as_secs_f64();
        record.save()?;
    }
    for line in &left {
        println!(
            "{}: {} of {LEAST} detectors; the others are left to cargo xtask power-cut",
            line.mutant,
            line.by()
        );
    }
    if !wrong.is_empty() {
        bail!("too few detectors: {}", wrong.join(", "));
    }
    Ok(())
}

fn short_of_detectors(lines: &[Line]) -> Vec<String> {
    let few = lines.iter().filter(|line| line.by() < LEAST && !line.is_left_to_others());
    few.map(|line| format!("{} ({} of {LEAST})", line.mutant, line.by())).collect()
}

fn print(lines: &[Line], why: bool) {
    columns().for_each(|(name, what)| println!("{name:>10}  {what}"));
    println!("\nx noticed   . not noticed   - not run\n");
    print!("{:<22}", "");
    columns().for_each(|(name, _)| print!("{name:>10}"));
    println!("  by");
    for line in lines {
        print!("{:<22}", line.mutant);
        columns().for_each(|(name, _)| print!("{:>10}", line.mark(name)));
        println!("{:>4}  {}", line.by(), line.rule);
        for (layer, cause) in line.verdicts.iter().chain(&line.tests).filter(|_| why) {
            if let Some(cause) = cause {
                let line = cause.lines().next().unwrap_or_default();
                println!("    {layer}: {}", line.chars().take(160).collect::<String>());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mutant: &str, verdicts: &[(&'static str, bool)], tests: &[(&'static str, bool)]) -> Line {
        let said = |said: &[(&'static str, bool)]| {
            said.iter().map(|(name, noticed)| (*name, noticed.then(|| "wrong".to_owned()))).collect()
        };
        Line { mutant: mutant.into(), rule: "", verdicts: said(verdicts), tests: said(tests) }
    }

    #[test]
    fn a_mutant_with_fewer_than_two_detectors_is_named() {
        let lines = [
            line("ApplyFirst", &[("images", true), ("kills", false)], &[("a test", true)]),
            line("NotDurable", &[("images", true), ("random", true)], &[]),
            line("AnySequence", &[("images", false)], &[("one test", true), ("another", true)]),
            line("SplitPsync", &[("images", true), ("random", false)], &[("a test", false)]),
            line("NoZeroing", &[("images", false)], &[]),
        ];
        assert_eq!(short_of_detectors(&lines), ["SplitPsync (1 of 2)", "NoZeroing (0 of 2)"]);
        assert_eq!(short_of_detectors(&lines[..3]), [""; 0]);
    }

    #[test]
    fn only_what_another_campaign_did_not_record_is_left_to_it() {
        let without = line("NoFence", &[("processor", true)], &[]);
        assert!(without.is_left_to_others() && short_of_detectors(&[without]).is_empty());
        let missed = line("NoFence", &[("processor", true), ("rig", false)], &[]);
        assert_eq!(short_of_detectors(&[missed]), ["NoFence (1 of 2)"]);
        let here = line("ApplyFirst", &[("images", true)], &[]);
        assert!(!here.is_left_to_others());
    }

    #[test]
    fn a_column_that_was_not_run_is_not_a_detector() {
        let line = line("ApplyFirst", &[("images", true), ("kills", false)], &[("a", false), ("b", true)]);
        let marks = ["tests", "images", "kills", "rig"].map(|column| line.mark(column));
        assert_eq!((marks, line.by()), (["x", "x", ".", "-"], 2));
    }
}
