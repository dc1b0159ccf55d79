//! The page: a text with places for figures from records; missing ones are marked.

use indelible_record::{Mode, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const TEMPLATE: &str = include_str!("page.md");
const NOT_RUN: &str = "not run";
const OTHERS: [&str; 4] = ["disks", "faults", "kills", "rig"];

const RECORDED: [(&str, &str); 2] = [("disks", "disks"), ("rig", "power-cut")];

const LAYERS: [(&str, &str); 22] = [
    ("crashes", "power cuts of a simulated medium: every image of short programs, samples of long ones"),
    (
        "on-demand",
        "power cuts and deaths in programs of objects on demand, with calls of other processes between any two operations",
    ),
    ("mutants", "deliberate protocol faults, and which detectors notice them (x; .: they do not)"),
    ("kills", "real processes that share a pool die of SIGKILL"),
    ("commands", "commands of `pmo` die of SIGKILL before a system call, and at random moments"),
    (
        "snapshots",
        "snapshots, copies and readers of an object of 64 GiB beside its writer, under SIGKILL, and their cost",
    ),
    ("disks", "power cuts and failures of a disk below ext4, xfs and btrfs"),
    ("stores", "every way to store to an object, with every tracking, under SIGKILL"),
    ("messages", "senders of messages, and the collector that logs them, die of SIGKILL"),
    (
        "retention",
        "programs of several versions convert, migrate, extend and reset the same data, under SIGKILL",
    ),
    ("faults", "each system call on a pool fails once, in each way"),
    ("ecc", "words and their check words are damaged: repaired, or refused where there are two explanations"),
    ("hostile", "pools that were damaged on purpose"),
    ("tamper", "sealed objects exchanged and forged without a key, then read with their keys"),
    ("power-cut", "emulated machines with persistent memory lose power"),
    ("power-guard", "the same machines while processes commit on demand, with a guard and without"),
    ("fuzz", "coverage-guided fuzzing of every decoder and of whole pools"),
    ("miri", "the store half, interpreted, with every undefined behaviour an error"),
    ("loom", "code that threads share, in every order of its steps"),
    ("protocol", "the rules of three protocols, in every state of small scopes, and each rule broken"),
    ("address", "the mapped half's tests under AddressSanitizer"),
    ("thread", "the store half's tests of several threads under ThreadSanitizer"),
];

pub(super) fn render(records: &[Record]) -> String {
    let mut out = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        out += before;
        let (place, after) = after.split_once("}}").unwrap_or((after, ""));
        out += &match place {
            "layers" => layers(records),
            "mutants" => mutants(records),
            "counts" => counts(records),
            _ => {
                place.split_once(": ").map_or_else(String::new, |(layer, what)| figure(records, layer, what))
            }
        };
        rest = after;
    }
    out + rest
}

fn record<'a>(records: &'a [Record], layer: &str) -> Option<&'a Record> {
    records.iter().filter(|record| record.layer == layer).max_by_key(|record| record.mode)
}

fn figure(records: &[Record], layer: &str, what: &str) -> String {
    match record(records, layer) {
        None => NOT_RUN.to_owned(),
        Some(record) => {
            record.counts.get(what).map_or_else(|| "not counted".to_owned(), |count| grouped(*count))
        }
    }
}

fn layers(records: &[Record]) -> String {
    let mut out = "| campaign | what | run | violations | command |\n|---|---|---|---:|---|".to_owned();
    for (layer, what) in LAYERS {
        let _ = match record(records, layer) {
            None => write!(out, "\n| {layer} | {what} | {NOT_RUN} | | |"),
            Some(record) => {
                let mode = if record.mode == Mode::Long { "long" } else { "short" };
                let (violations, command) = (figure(records, layer, "violations"), &record.command);
                let seconds = grouped(record.seconds.round() as u64);
                write!(out, "\n| {layer} | {what} | {mode}, {seconds} s | {violations} | `{command}` |")
            }
        };
    }
    for (layer, _) in LAYERS {
        if let Some(note) = record(records, layer).and_then(|record| record.note.as_ref()) {
            let _ = write!(out, "\n\nOf {layer}: {note}");
        }
    }
    out
}

fn mutants(records: &[Record]) -> String {
    let Some(record) = record(records, "mutants") else { return format!("{NOT_RUN}.") };
    let record = &with_verdicts_of_others(record, records);
    let mut out =
        format!("{} caught, {} missed. {}", record.caught.len(), record.missed.len(), fewest(record));
    let mut columns: BTreeSet<&str> =
        record.table.values().flat_map(BTreeMap::keys).map(String::as_str).collect();
    columns.extend(OTHERS);
    let cells = |row: &mut dyn Iterator<Item = &str>| row.collect::<Vec<_>>().join(" | ");
    let _ = write!(out, "\n\n| fault | {} |", cells(&mut columns.iter().copied().chain(["detectors"])));
    let rule = cells(&mut columns.iter().map(|_| ":-:").chain(["---:"])).replace(' ', "");
    let _ = write!(out, "\n|---|{rule}|");
    for (mutant, row) in &record.table {
        let mark = |layer: &&str| match row.get(*layer) {
            None => NOT_RUN,
            Some(false) => ".",
            Some(true) => "x",
        };
        let by = detectors(record, mutant).to_string();
        let _ = write!(out, "\n| {mutant} | {} |", cells(&mut columns.iter().map(mark).chain([by.as_str()])));
    }
    out
}

fn with_verdicts_of_others(record: &Record, records: &[Record]) -> Record {
    let mut all = record.clone();
    for (column, layer) in RECORDED {
        let Some(other) = self::record(records, layer) else { continue };
        let named =
            |names: &[String], mutant: &str| names.iter().any(|n| n.split(' ').next() == Some(mutant));
        for (mutant, row) in &mut all.table {
            let (caught, missed) = (named(&other.caught, mutant), named(&other.missed, mutant));
            if row.contains_key(column) || !(caught || missed) {
                continue;
            }
            row.insert(column.to_owned(), !missed);
            if let Some(count) = all.detectors.get_mut(mutant) {
                *count += u64::from(!missed);
            }
        }
    }
    all
}

fn detectors(record: &Record, mutant: &str) -> u64 {
    let row = record.table.get(mutant);
    let columns = || row.map_or(0, |row| row.values().filter(|noticed| **noticed).count() as u64);
    record.detectors.get(mutant).copied().unwrap_or_else(columns)
}

fn fewest(record: &Record) -> String {
    let few: Vec<&str> =
        record.table.keys().filter(|mutant| detectors(record, mutant) < 2).map(String::as_str).collect();
    match few[..] {
        [] => "Two detectors or more noticed each.".to_owned(),
        _ => format!("Fewer than two detectors noticed {} of them: {}.", few.len(), few.join(", ")),
    }
}

fn counts(records: &[Record]) -> String {
    let mut out = Vec::new();
    for (layer, _) in LAYERS {
        let mut part = format!("### {layer}\n\n");
        match record(records, layer) {
            None => part += "Not run.",
            Some(record) => {
                part += "| | count |\n|---|---:|";
                for (what, count) in &record.counts {
                    let _ = write!(part, "\n| {what} | {} |", grouped(*count));
                }
            }
        }
        out.push(part);
    }
    out.join("\n\n")
}

fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
    }

    #[test]
    fn the_page_is_what_the_records_say() {
        let folder = root().join("docs/evidence");
        let page = std::fs::read_to_string(root().join("docs/evidence.md")).unwrap();
        let made = render(&Record::all(&folder).unwrap());
        assert!(page == made, "run: pmo-evidence report --from docs/evidence --write docs/evidence.md");
    }

    #[test]
    fn a_campaign_without_a_record_has_no_figures() {
        let empty = render(&[]);
        assert!(!empty.contains("{{"));
        let (_, promises) = empty.split_once("line by line").unwrap();
        let (promises, _) = promises.split_once("## Counts").unwrap();
        let figures: Vec<&str> = promises.lines().filter(|line| line.starts_with('|')).collect();
        for line in figures.iter().skip(2) {
            let (_, how_often) = line.trim_end_matches(" |").rsplit_once(" | ").unwrap();
            assert!(how_often.contains(NOT_RUN) || how_often.starts_with("see "), "{how_often}");
            assert!(!how_often.contains(|c: char| c.is_ascii_digit()), "{how_often}");
        }
    }

    #[test]
    fn figures_come_from_the_long_record_of_their_layer() {
        let record = |mode, rounds| {
            let counts = BTreeMap::from([("rounds".to_owned(), rounds)]);
            Record { counts, ..Record::new("kills", mode, "x".into(), 1) }
        };
        let records = [record(Mode::Short, 50), record(Mode::Long, 5_000_001)];
        assert_eq!(figure(&records, "kills", "rounds"), "5,000,001");
        assert_eq!(figure(&records, "kills", "other"), "not counted");
        assert_eq!(figure(&records, "fuzz", "rounds"), NOT_RUN);
    }

    #[test]
    fn the_table_of_mutants_says_what_was_not_run() {
        let row = |layers: &[(&str, bool)]| layers.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect();
        let mut record = Record::new("mutants", Mode::Long, String::new(), 1);
        record.table.insert("ApplyFirst".into(), row(&[("images", true), ("kills", false)]));
        record.table.insert("NoFence".into(), row(&[("kills", false), ("rig", true)]));
        let table = mutants(&[record]);
        assert!(table.contains("| fault | disks | faults | images | kills | rig | detectors |"), "{table}");
        assert!(table.contains("| ApplyFirst | not run | not run | x | . | not run | 1 |"), "{table}");
        assert!(table.contains("| NoFence | not run | not run | not run | . | x | 1 |"), "{table}");
        assert!(
            table.contains("Fewer than two detectors noticed 2 of them: ApplyFirst, NoFence."),
            "{table}"
        );
    }

    #[test]
    fn verdicts_of_campaigns_that_were_run_apart_count() {
        let mut record = Record::new("mutants", Mode::Long, String::new(), 1);
        for mutant in ["NoFence", "NoWriteBack", "ApplyFirst"] {
            record.table.insert(mutant.into(), BTreeMap::from([("tests".to_owned(), true)]));
            record.detectors.insert(mutant.into(), 1);
        }
        let mut rig = Record::new("power-cut", Mode::Long, String::new(), 1);
        rig.caught = vec!["NoFence on 6.1 devdax".into(), "NoWriteBack on 6.1 devdax".into()];
        rig.missed = vec!["NoWriteBack on 6.12 devdax".into()];
        let table = mutants(&[record, rig]);
        assert!(
            table.contains("Fewer than two detectors noticed 2 of them: ApplyFirst, NoWriteBack."),
            "{table}"
        );
        assert!(table.contains("| NoFence | not run | not run | not run | x | x | 2 |"), "{table}");
        assert!(table.contains("| NoWriteBack | not run | not run | not run | . | x | 1 |"), "{table}");
    }

    #[test]
    fn a_layer_with_several_detectors_counts_as_many() {
        let mut record = Record::new("mutants", Mode::Short, String::new(), 1);
        record.table.insert("ReadUnchecked".into(), BTreeMap::from([("tests".to_owned(), true)]));
        record.detectors.insert("ReadUnchecked".into(), 2);
        let table = mutants(&[record]);
        assert!(table.contains("Two detectors or more noticed each."), "{table}");
        assert!(
            table.contains("| ReadUnchecked | not run | not run | not run | not run | x | 2 |"),
            "{table}"
        );
    }
}
