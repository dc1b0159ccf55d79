//! `cargo xtask tools`: Miri, loom, the protocol's models and the sanitizers, each on suitable
//! code. SAFETY.md names the rest.

use crate::command::{Result, cargo};
use crate::nightly;
use indelible_record::{Mode, Record, add, build_folder};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Tests of store, heap, collections and transactional memory that Miri runs in minutes.
const INTERPRETED: [&[&str]; 3] = [
    &["-p", "indelible-store", "--lib", "--test", "interpreted"],
    &["-p", "indelible", "--test", "interpreted"],
    &["-p", "indelible-stm", "--test", "main", "--", "detectors::", "history::", "model::"],
];
/// Addresses in objects are numbers.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance";
/// The half with unsafe code, without tests whose child must die of SIGSEGV, which AddressSanitizer
/// replaces by a report.
const ADDRESS: &[&str] = &[
    "-p",
    "indelible",
    "--lib",
    "--tests",
    "--",
    "--skip=foreign_faults_reach_the_earlier_handler",
    "--skip=a_fork_inherits_neither_memory_nor_locks",
    "--skip=a_jump_into_an_object_dies_as_without_us",
    "--skip=s0_15_access_after_detach_is_a_fault",
    "--skip=an_access_to_closed_pages_is_a_fault",
    "--skip=a_fork_reads_no_zeros_where_pages_are_missing",
    // Tests that leave no room for AddressSanitizer's own mappings.
    "--skip=cannot_be_mapped",
    // A test that compares compiled code.
    "--skip=other_fields_compile_to_the_instructions_of_a_plain_struct",
];
/// Tests that do not map objects at fixed addresses.
const THREAD: [&[&str]; 2] = [
    &["-p", "indelible-store", "--lib", "--test", "interpreted"],
    &["-p", "indelible-store", "--test", "main", "--", "contract_locks::", "regressions::"],
];

pub(crate) const ALL: [&str; 5] = ["miri", "loom", "protocol", "address", "thread"];
const MODELS: [&str; 6] = ["test", "-p", "indelible-protocol", "--features", "stateright", "--"];

pub(crate) fn small_models() -> Result {
    let mut command = cargo(&MODELS);
    command.args(["--nocapture", "--test-threads=1"]);
    run_tests(command, &mut BTreeMap::new())
}

pub(crate) fn run(names: &[String]) -> Result {
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = if named.is_empty() { &ALL[..] } else { &named };
    let mut failed = Vec::new();
    for tool in chosen {
        println!("\n== {tool}");
        let begin = Instant::now();
        let mut record = Record::new(tool, Mode::Short, format!("cargo xtask tools {tool}"), 0);
        if let Err(error) = tests(tool, &mut record.counts) {
            eprintln!("{tool}: {error}");
            add(&mut record.counts, "violations", 1);
            failed.push(*tool);
        }
        record.seconds = begin.elapsed().as_secs_f64();
        record.print();
        record.save().map_err(|error| format!("{error:#}"))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn tests(tool: &str, counts: &mut BTreeMap<String, u64>) -> Result {
    let commands = match tool {
        "miri" => {
            nightly::components(&["miri", "rust-src"])?;
            INTERPRETED.map(interpreted).into()
        }
        "loom" => vec![cargo(&["test", "--release", "-p", "indelible-models", "--", "--nocapture"])],
        "protocol" => {
            let mut command = cargo(&[&["test", "--release"][..], &MODELS[1..]].concat());
            command.args(["--include-ignored", "--nocapture", "--test-threads=1"]);
            vec![command]
        }
        sanitizer => {
            nightly::components(&["rust-src"])?;
            let tests = if sanitizer == "address" { &[ADDRESS][..] } else { &THREAD };
            tests.iter().map(|tests| sanitized(sanitizer, tests)).collect()
        }
    };
    for command in commands {
        run_tests(command, counts)?;
    }
    Ok(())
}

/// Identities are random, records are dated, and simulated deaths leak.
fn interpreted(tests: &[&str]) -> Command {
    let mut command = nightly::cargo(&["miri", "test"]);
    command.args(tests).env("MIRIFLAGS", FLAGS);
    command
}

fn run_tests(command: Command, counts: &mut BTreeMap<String, u64>) -> Result {
    let before = counts.get("tests passed").copied().unwrap_or(0);
    let mut add = |what: &str, number: u64| add(counts, what, number);
    nightly::watch(command, |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["test", "result:", _, passed, "passed;", failed, "failed;", ignored, ..] => {
                add("tests passed", passed.parse().unwrap_or(0));
                add("tests failed", failed.parse().unwrap_or(0));
                add("tests ignored", ignored.parse().unwrap_or(0));
            }
            [states, "states", "in", ..] => add("states", states.parse().unwrap_or(0)),
            [orders, "orders", "in", ..] => add("orders", orders.parse().unwrap_or(0)),
            _ => {}
        }
    })?;
    // A filter that finds nothing passes, too.
    let ran = counts.get("tests passed").is_some_and(|count| *count > before);
    if ran { Ok(()) } else { Err("no test was run".into()) }
}

fn sanitized(sanitizer: &str, tests: &[&str]) -> Command {
    let mut command = nightly::cargo(&["test", "-Zbuild-std", "--target", HOST, "--no-fail-fast"]);
    command.args(tests).env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
    command.env("CARGO_TARGET_DIR", build_folder().join(sanitizer));
    // Simulated deaths leak.
    command.env("ASAN_OPTIONS", "detect_leaks=0:allow_user_segv_handler=1");
    command
}
