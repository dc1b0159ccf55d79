//! `pmo ls` of held objects, and after deaths (S0.11, S0.25, S0.26).

use crate::common::{Holder, PMO, Rig, Run};
use std::io::{Read, Write};
use std::process::Command;

#[test]
#[ignore = "a process that other tests start"]
fn writer() {
    let Some(path) = std::env::var_os("PMO_TEST_POOL") else {
        return;
    };
    let pool = indelible::Pool::open(path).expect("the pool");
    let mut object = pool.attach("a").expect("the object");
    object.range_mut(0..7).copy_from_slice(b"psynced");
    object.psync().expect("psynced");
    object.range_mut(0..4).copy_from_slice(b"torn");
    println!("holding");
    std::io::stdout().flush().expect("said");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn start_writer(rig: &Rig) -> Holder {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "states::writer", "--ignored", "--nocapture"]).env("PMO_TEST_POOL", &rig.pool);
    Holder::start(command, "holding")
}

fn rig() -> Rig {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    rig
}

#[test]
fn a_copy_of_a_pool_in_use_is_noted_and_the_pool_itself_is_not() {
    let rig = rig();
    let writer = start_writer(&rig);
    let check = |path: &std::path::Path| Run::of(Command::new(PMO).arg("check").arg(path), b"");
    let copy = rig.path("copy.pmo");
    std::fs::copy(&rig.pool, &copy).expect("copied");
    let noted = check(&copy);
    assert!(
        noted.out.contains("may be a copy of a pool in use") && noted.out.contains("`pmo backup`"),
        "{noted:?}"
    );
    assert!(!noted.out.contains("is gone"), "{noted:?}");
    let run = |words: &[&str]| Run::of(Command::new(PMO).args([words[0]]).arg(&copy).args(&words[1..]), b"");
    assert!(run(&["stat", "a"]).fine().out.contains("this may be a copy of a pool in use"));
    assert_eq!(run(&["stat", "a", "--json"]).fine().json()["living_writer"], writer.pid());
    let tried = rig.path("tried.pmo");
    std::fs::copy(&copy, &tried).expect("copied");
    let attached = Run::of(Command::new(PMO).arg("attach-check").arg(&tried).arg("a"), b"");
    assert!(attached.err.contains("if it is a copy of a pool in use"), "{attached:?}");
    let writing = rig.pmo(["stat"], ["a"]).fine();
    assert!(!writing.out.contains("copy of a pool"), "{writing:?}");
    let original = check(&rig.pool);
    assert!(!original.out.contains("may be a copy"), "{original:?}");
    drop(writer);
    let later = check(&copy);
    assert!(!later.out.contains("may be a copy"), "{later:?}");
}

#[test]
fn a_reader_is_shown() {
    let rig = rig();
    let held = rig.hold("a", false);
    assert_eq!(rig.line("a"), format!("R {} pmo 4 KiB a", held.pid()));
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("state    R, attached for reading"));
    rig.pmo(["attach-check"], ["a"]).fine();
    rig.pmo(["cat"], ["a"]).fine();
    for command in [vec!["attach-check"], vec!["rm"]] {
        let write = command == ["attach-check"];
        let after: &[&str] = if write { &["a", "--write"] } else { &["a"] };
        rig.pmo(command, after).fails(4, "held by");
    }
    rig.pmo(["mv"], ["a", "b"]).fails(4, "held by");
    rig.pmo(["resize"], ["a", "8K"]).fails(4, "held by");
    held.release();
    assert_eq!(rig.line("a"), "D - 4 KiB a");
}

#[test]
fn all_readers_are_shown() {
    let rig = rig();
    let mut held: Vec<_> = (0..3).map(|_| rig.hold("a", false)).collect();
    held.sort_by_key(Holder::pid);
    let pids: Vec<_> = held.iter().map(Holder::pid).collect();
    let all = format!("{} pmo; {} pmo; {} pmo", pids[0], pids[1], pids[2]);
    assert_eq!(rig.line("a"), format!("R {all} 4 KiB a"));
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains(&all));
    for json in [
        rig.pmo(["stat", "--json"], ["a"]).fine().json(),
        rig.pmo(["ls", "--json"], [""; 0]).fine().json()[0].clone(),
    ] {
        assert_eq!(json["holder"]["pid"].as_u64(), Some(pids[0].into()));
        let others = json["other_readers"].as_array().expect("a list");
        let others: Vec<_> = others.iter().map(|other| other["pid"].as_u64()).collect();
        assert_eq!(others, [Some(pids[1].into()), Some(pids[2].into())]);
        assert!(json["unseen_readers"].is_null());
    }
    let run = rig.pmo(["rm"], ["a"]).fails(4, "held by process");
    for pid in &pids {
        assert!(run.err.contains(&format!("process {pid}")), "{run:?}");
    }
    held.into_iter().for_each(Holder::release);
    assert_eq!(rig.line("a"), "D - 4 KiB a");
}

#[test]
fn a_writer_is_shown() {
    let rig = rig();
    let held = rig.hold("a", true);
    assert_eq!(rig.line("a"), format!("W {} pmo 4 KiB a", held.pid()));
    let json = rig.pmo(["ls", "--json"], [""; 0]).fine().json();
    let expected = serde_json::json!([{
        "name": "a", "state": "W", "holder": {"pid": held.pid(), "command": "pmo"}, "needs_recovery": false, "size": 4096,
        "own": 4096,
    }]);
    assert_eq!(json, expected);
    let run = rig.pmo(["attach-check"], ["a"]).fails(4, "held by process");
    assert!(run.err.contains(&held.pid().to_string()), "{run:?}");
    rig.feed("put", ["a"], b"x").fails(4, "as writer");
    rig.pmo(["check"], [""; 0]).fine();
    rig.pmo(["repair"], [""; 0]).fails(4, "");
    held.release();
    assert_eq!(rig.line("a"), "D - 4 KiB a");
}

#[test]
fn cat_shows_the_last_psync_beside_the_writer() {
    let rig = rig();
    let writer = start_writer(&rig);
    assert_eq!(rig.pmo(["cat"], ["a", "--length", "7"]).fine().out, "psynced");
    assert_eq!(rig.pmo(["cat"], ["a", "--offset", "4", "--length", "3"]).fine().out, "ced");
    rig.pmo(["cat"], ["a", "--offset", "8K"]).fails(2, "has 4096 bytes");
    assert!(rig.line("a").starts_with(&format!("W {}", writer.pid())), "it is still the writer");
    writer.release();
}

#[test]
fn psyncs_are_counted_beside_the_writer() {
    let rig = rig();
    let psyncs = || rig.pmo(["stat", "--json"], ["a"]).fine().json()["psyncs"].as_u64();
    assert_eq!(psyncs(), Some(0));
    let writer = start_writer(&rig);
    assert_eq!(psyncs(), Some(1));
    let text = rig.pmo(["metrics"], ["a"]).fine().out;
    assert!(
        text.lines().any(|line| line.starts_with("pmo_object_psyncs_total{") && line.ends_with(" 1")),
        "{text}"
    );
    writer.kill();
    assert_eq!(psyncs(), Some(1), "recovery brings it in place");
}

#[test]
fn a_stopped_writer_is_shown_and_waited_for_no_longer_than_asked() {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    let rig = rig();
    let held = rig.hold("a", true);
    let pid = Pid::from_raw(held.pid().cast_signed()).expect("a process ID");
    kill_process(pid, Signal::STOP).expect("a child of this process");
    waitpid(Some(pid), WaitOptions::UNTRACED).expect("it stops");
    assert_eq!(rig.line("a"), format!("W {} pmo, stopped 4 KiB a", held.pid()));
    let json = rig.pmo(["ls", "--json"], [""; 0]).fine().json();
    assert_eq!(json[0]["holder"], serde_json::json!({"pid": held.pid(), "command": "pmo", "stopped": true}));
    rig.pmo(["rm"], ["a", "--wait", "0.01"]).fails(4, "which is stopped");
    rig.pmo(["rm"], ["a", "--wait", "soon"]).fails(2, "not a number of seconds");
    rig.pmo(["rm"], ["a", "--wait", "-1"]).fails(2, "");
    kill_process(pid, Signal::CONT).expect("a child of this process");
    held.release();
    rig.pmo(["rm"], ["a", "--wait", "60"]).fine();
}

#[test]
fn a_writer_killed_before_its_first_psync_is_shown_and_recovered() {
    let rig = rig();
    rig.feed("put", ["a"], b"before").fine();
    let held = rig.hold("a", true);
    held.kill();
    assert_eq!(rig.line("a"), "W needs recovery 4 KiB a");
    let json = rig.pmo(["ls", "--json"], [""; 0]).fine().json();
    assert_eq!((json[0]["needs_recovery"].as_bool(), json[0]["holder"].is_null()), (Some(true), true));
    let run = rig.pmo(["attach-check"], ["a"]).fine();
    assert!(run.out.contains("recovery  its last writer had died"), "{run:?}");
    assert_eq!(rig.line("a"), "D - 4 KiB a");
    assert!(rig.pmo(["cat"], ["a"]).fine().raw.starts_with(b"before"));
}

// S0.28
#[test]
fn a_writer_killed_after_a_psync_is_shown_and_its_psync_completed() {
    let rig = rig();
    let held = start_writer(&rig);
    assert!(rig.line("a").starts_with(&format!("W {} ", held.pid())));
    held.kill();
    assert_eq!(rig.line("a"), "C needs recovery 4 KiB a");
    let run = rig.pmo(["stat"], ["a"]).fine();
    assert!(run.out.contains("completes its last psync"), "{run:?}");
    let run = rig.pmo(["check", "--json"], [""; 0]).fine().json();
    assert_eq!((run["clean"].as_bool(), run["waiting"].as_u64()), (Some(true), Some(1)));
    let run = rig.pmo(["attach-check", "--json"], ["a", "--write"]).fine().json();
    assert_eq!(run["recovered"].as_bool(), Some(true));
    assert!(run["recovered_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{run}");
    assert_eq!(rig.line("a"), "D - 4 KiB a");
    assert!(rig.pmo(["cat"], ["a"]).fine().raw.starts_with(b"psynced\0"));
}

#[test]
fn repair_recovers_too() {
    let rig = rig();
    start_writer(&rig).kill();
    let run = rig.pmo(["repair", "--json"], [""; 0]).fine().json();
    assert_eq!(run["repaired"].as_bool(), Some(true), "{run}");
    assert_eq!(rig.line("a"), "D - 4 KiB a");
    assert!(rig.pmo(["cat"], ["a"]).fine().raw.starts_with(b"psynced\0"));
}
