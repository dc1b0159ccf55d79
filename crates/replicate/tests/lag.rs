//! The lag, as `pmo metrics` and `pmo replicate status` show it.

use crate::support::Place;
use indelible::Pool;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(program: &Path, place: &Place, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).env("XDG_RUNTIME_DIR", place.folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The figure of the line that begins so.
#[track_caller]
fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
    line.unwrap_or_else(|| panic!("{name}: {text}")).rsplit(' ').next().unwrap().parse().unwrap()
}

fn psync(pool: &Pool, byte: u8) {
    let mut object = pool.attach("a").unwrap();
    object.as_mut_slice().fill(byte);
    object.psync().unwrap();
    object.detach().unwrap();
}

#[test]
fn s2_23_metrics_and_status_show_the_lag_of_a_run() {
    let own = Path::new(env!("CARGO_BIN_EXE_pmo-replicate"));
    let pmo = own.with_file_name("pmo");
    if !pmo.is_file() {
        indelible_testing::not_tested("the lag in metrics: `cargo build -p indelible-cli` makes pmo");
        return;
    }
    let place = Place::new();
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    pool.create("a", 5000).unwrap();
    let path = place.pool.to_str().unwrap();
    let store = format!("file://{}", place.path("store").display());
    let metrics = || output(&pmo, &place, &["metrics", path]);
    let none = |text: &str| {
        assert_eq!(figure(text, "pmo_replica_runs"), 0.0);
        assert!(!text.contains("pmo_replica_lag_seconds{"), "{text}");
    };
    none(&metrics());
    let mut command = Command::new(own);
    command.args(["run", path, &store, "--tick", "3600"]);
    command.env("XDG_RUNTIME_DIR", place.folder.path()).stderr(Stdio::piped());
    let mut run = Running(command.spawn().unwrap());
    let mut said = BufReader::new(run.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the whole pool") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    // The account follows the line.
    let text = loop {
        let text = metrics();
        if text.contains("pmo_replica_lag_psyncs{") {
            break text;
        }
    };
    assert_eq!(figure(&text, "pmo_replica_runs"), 1.0);
    assert!(text.contains(&format!("store=\"{store}\",pid=\"{}\"", run.0.id())), "{text}");
    let status = || output(own, &place, &["status", &store]);
    let shows = format!("process {} ships {path}: all changes until", run.0.id());
    assert!(status().contains(&shows), "{}", status());
    let json = output(own, &place, &["status", &store, "--json"]);
    assert!(json.contains(&format!(r#""run":{{"process":{}"#, run.0.id())), "{json}");
    // The run waits for its next tick, in an hour.
    (1..=3).for_each(|byte| psync(&pool, byte));
    let behind = loop {
        let text = metrics();
        if figure(&text, "pmo_replica_lag_seconds") > 0.2 {
            break text;
        }
    };
    assert_eq!(figure(&behind, "pmo_replica_lag_psyncs"), 3.0);
    drop(run);
    // Killed: its account is no more.
    none(&metrics());
    assert!(status().contains("no run of this machine and user"), "{}", status());
}
