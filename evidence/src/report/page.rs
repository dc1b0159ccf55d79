//! The page: a text with places for figures. Each figure comes from a record; where there is none, the page
//! says so.

use crate::record::{Mode, Record};
use anyhow::Result;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const TEMPLATE: &str = include_str!("page.md");
const NOT_RUN: &str = "not run";

/// The campaigns there are, and what they do.
const LAYERS: [(&str, &str); 8] = [
    ("crashes", "power cuts of a simulated medium: every image of short programs, samples of long ones"),
    ("mutants", "deliberate protocol faults, and which layer notices them"),
    ("kills", "real processes that share a pool die of SIGKILL"),
    ("faults", "each system call on a pool fails once, in each way"),
    ("hostile", "pools that were damaged on purpose"),
    ("power-cut", "emulated machines with persistent memory lose power"),
    ("fuzz", "coverage-guided fuzzing of every decoder and of whole pools"),
    ("tools", "Miri, loom, AddressSanitizer, ThreadSanitizer"),
];

/// Mutant → layers that notice it.
pub(super) type Noticed = BTreeMap<String, BTreeSet<String>>;

pub(super) fn render(records: &[Record], noticed: &Noticed) -> String {
    let mut out = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        out += before;
        let (place, after) = after.split_once("}}").unwrap_or((after, ""));
        out += &match place {
            "layers" => layers(records),
            "mutants" => mutants(records, noticed),
            "counts" => counts(records),
            _ => {
                place.split_once(": ").map_or_else(String::new, |(layer, what)| figure(records, layer, what))
            }
        };
        rest = after;
    }
    out + rest
}

/// The record of the campaign, rather than of the short run.
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
    out
}

fn mutants(records: &[Record], noticed: &Noticed) -> String {
    let Some(record) = record(records, "mutants") else { return format!("{NOT_RUN}.") };
    let mut out = format!("{} caught, {} missed.", record.caught.len(), record.missed.len());
    if noticed.is_empty() {
        let _ = write!(out, "\n\nCaught: {}.", record.caught.join(", "));
        return out;
    }
    let columns: BTreeSet<&String> = noticed.values().flatten().collect();
    let cells = |row: &mut dyn Iterator<Item = String>| row.collect::<Vec<_>>().join(" | ");
    let _ = write!(out, "\n\n| fault | {} |", cells(&mut columns.iter().map(ToString::to_string)));
    let _ = write!(out, "\n|---|{}|", cells(&mut columns.iter().map(|_| ":-:".to_owned())).replace(' ', ""));
    for (mutant, layers) in noticed {
        let mark = |layer: &&String| if layers.contains(*layer) { "x" } else { "" }.to_owned();
        let _ = write!(out, "\n| {mutant} | {} |", cells(&mut columns.iter().map(mark)));
    }
    out
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

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// What the record of the mutants says beyond other records, if it does: `table`, by mutant, the layers
/// that notice it, as a list or as the keys of an object.
pub(super) fn mutants_table(folder: &Path) -> Result<Noticed> {
    let mut noticed = Noticed::new();
    for mode in ["short", "long"] {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("mutants-{mode}.json"))) else { continue };
        let record: Value = serde_json::from_str(&text)?;
        noticed.extend(table(&record["table"]));
    }
    Ok(noticed)
}

fn table(table: &Value) -> Noticed {
    let layers = |value: &Value| match value {
        Value::Array(names) => names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        Value::Object(names) => names.keys().cloned().collect(),
        _ => BTreeSet::new(),
    };
    match table {
        Value::Object(rows) => rows.iter().map(|(mutant, row)| (mutant.clone(), layers(row))).collect(),
        Value::Array(rows) => {
            let rows = rows
                .iter()
                .filter_map(|row| Some((row["mutant"].as_str()?.to_owned(), layers(&row["noticed"]))));
            rows.collect()
        }
        _ => Noticed::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
    }

    #[test]
    fn the_page_is_what_the_records_say() {
        let folder = root().join("docs/evidence");
        let page = std::fs::read_to_string(root().join("docs/evidence.md")).unwrap();
        let made = render(&Record::all(&folder).unwrap(), &mutants_table(&folder).unwrap());
        assert!(page == made, "run: pmo-evidence report --from docs/evidence --write docs/evidence.md");
    }

    #[test]
    fn what_was_not_run_is_not_invented() {
        let empty = render(&[], &Noticed::new());
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
        let record = |mode, rounds| Record {
            layer: "kills".into(),
            mode,
            command: "x".into(),
            seed: 1,
            seconds: 1.0,
            counts: BTreeMap::from([("rounds".to_owned(), rounds)]),
            caught: Vec::new(),
            missed: Vec::new(),
        };
        let records = [record(Mode::Short, 50), record(Mode::Long, 5_000_001)];
        assert_eq!(figure(&records, "kills", "rounds"), "5,000,001");
        assert_eq!(figure(&records, "kills", "other"), "not counted");
        assert_eq!(figure(&records, "fuzz", "rounds"), NOT_RUN);
    }

    #[test]
    fn the_table_of_mutants_is_read_in_either_form() {
        let one = serde_json::json!({"apply first": ["images", "kills"]});
        let other =
            serde_json::json!([{"mutant": "apply first", "noticed": {"images": "torn", "kills": "gone"}}]);
        assert_eq!(table(&one), table(&other));
        assert_eq!(table(&one)["apply first"].len(), 2);
        assert!(table(&Value::Null).is_empty());
    }
}
