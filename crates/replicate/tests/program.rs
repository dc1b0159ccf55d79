//! The program with outputs that cannot be written, a pool that goes, and times without an end.

use crate::support::Place;
use indelible::Pool;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn replicate<const N: usize>(arguments: [&str; N]) -> Command {
    // One that never ends fails.
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_pmo-replicate")]).args(arguments);
    command
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn closed() -> Stdio {
    std::io::pipe().unwrap().1.into()
}

#[track_caller]
fn ends(command: &mut Command, code: i32, says: &str) {
    let output: Output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(code) && said.contains(says), "{output:?}");
    assert!(!says.is_empty() || said.is_empty(), "{output:?}");
}

/// A pool with an object, and a folder for segments.
fn made(place: &Place) -> (String, String) {
    Pool::format(&place.pool, 16 << 20).unwrap().create("a", 4096).unwrap();
    (place.pool.to_str().unwrap().into(), format!("file://{}", place.path("store").display()))
}

#[test]
fn outputs_that_cannot_be_written_end_no_run_by_a_panic() {
    let place = Place::new();
    let (pool, store) = made(&place);
    for stderr in [full, closed] {
        ends(replicate(["run", &pool, &store, "--once"]).stderr(stderr()), 0, "");
        ends(replicate(["run", "/no/pool", &store, "--once"]).stderr(stderr()), 1, "");
        ends(replicate(["run", "/no/pool", &store, "--once", "--json"]).stderr(stderr()), 1, "");
    }
    ends(replicate(["run", &pool, &store, "--once", "--json"]).stdout(full()), 8, "standard output");
    ends(replicate(["run", &pool, &store, "--once", "--json"]).stdout(closed()), 0, "");
    ends(replicate(["status", &store, "--moments"]).stdout(full()), 8, "standard output");
    ends(replicate(["status", &store, "--moments"]).stdout(closed()), 0, "");
    let new = place.path("new.pmo");
    let new = new.to_str().unwrap();
    ends(replicate(["restore", &store, new]).stdout(full()), 8, "standard output");
    std::fs::remove_file(new).unwrap();
    ends(replicate(["restore", &store, new]).stdout(closed()), 0, "");
}

#[test]
fn a_run_ends_once_its_pool_is_deleted() {
    let place = Place::new();
    let (pool, store) = made(&place);
    let mut command = replicate(["run", &pool, &store, "--tick", "0.01"]);
    let mut run = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the whole pool") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    std::fs::remove_file(&pool).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3), "{rest}");
    assert!(rest.contains("error: ") && rest.contains("deleted") && !rest.contains("again"), "{rest}");
}

#[test]
fn times_beyond_ten_years_are_refused() {
    for (option, seconds) in [("--tick", "1e19"), ("--lease", "1.8e19"), ("--tick", "NaN"), ("--tick", "-1")]
    {
        let option = format!("{option}={seconds}");
        ends(&mut replicate(["run", "pool", "file:///store", &option]), 2, "ten years");
    }
}

#[test]
fn snapshots_of_users_with_the_prefix_stay_and_are_shipped() {
    let place = Place::new();
    let (pool, store) = made(&place);
    let names = ["pmo-replica.monday", "pmo-replica.0011223344556677.1", "pmo-replica.0011223344556677.1.x"];
    let opened = Pool::open(&pool).unwrap();
    names.iter().for_each(|name| opened.snapshot("a", name, b"").unwrap());
    // A killed run's.
    let left = "pmo-replica.0011223344556677.1.0";
    opened.snapshot("a", left, b"").unwrap();
    drop(opened);
    ends(replicate(["run", &pool, &store, "--once", "--quiet"]).stdout(full()), 0, "");
    let new = place.path("new.pmo");
    ends(&mut replicate(["restore", &store, new.to_str().unwrap(), "--quiet"]), 0, "");
    for path in [place.pool.as_path(), &new] {
        let found = Pool::open(path).unwrap();
        names.iter().for_each(|name| drop(found.stat(name).unwrap()));
        assert!(found.stat(left).is_err());
    }
}

#[test]
fn a_run_says_where_it_goes_on_or_why_not() {
    let place = Place::new();
    let (pool, store) = made(&place);
    ends(&mut replicate(["run", &pool, &store, "--once", "--keep"]), 0, "1.1: the whole pool");
    ends(&mut replicate(["run", &pool, &store, "--once"]), 0, "going on from 1.1");
    let names: Vec<String> = Pool::open(&pool).unwrap().list().map(|stat| stat.unwrap().name).collect();
    assert_eq!(names, ["a"]);
    let why = "the whole pool is shipped: the pool has no snapshots of an earlier run";
    ends(&mut replicate(["run", &pool, &store, "--once"]), 0, why);
}
