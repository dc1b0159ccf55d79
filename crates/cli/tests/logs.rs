//! Shared objects and logs in the shell.

use crate::common::Rig;
use indelible::Pool;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn s2_06_a_shared_object_is_made_shown_and_refused() {
    let rig = Rig::new();
    rig.pmo(["create"], ["jobs", "64K", "--class", "shared"]).fine();
    let stat = rig.pmo(["stat"], ["jobs", "--json"]).fine().json();
    assert_eq!((&stat["class"], &stat["volatile"]), (&"shared".into(), &true.into()));
    rig.pmo(["cat"], ["jobs"]).fails(2, "the pool has none of them");
    rig.feed("put", ["jobs"], b"x").fails(2, "it is shared");
    rig.pmo(["snapshot"], ["jobs", "--as", "kept"]).fails(2, "the pool has none of them");
    rig.pmo(["resize"], ["jobs", "128K"]).fails(2, "the pool has none of them");
    rig.pmo(["create"], ["durable", "4K"]).fine();
    rig.pmo(["set"], ["durable", "--class", "shared"]).fails(2, "it is not volatile");
    rig.pmo(["create"], ["scratch", "4K", "--volatile"]).fine();
    rig.pmo(["set"], ["scratch", "--class", "shared"]).fine();
    rig.pmo(["set"], ["scratch", "--class", "psync"]).fine();
    let pool = Pool::open(&rig.pool).unwrap();
    let held = pool.attach_shared("jobs").unwrap();
    rig.pmo(["rm"], ["jobs"]).fails(4, "held by process");
    rig.pmo(["rm"], ["jobs", "--later"]).fine();
    drop(held);
    rig.pmo(["gc"], [""; 0]).fine();
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s2_27_a_log_is_shown_and_followed() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut log = pool.open_log("events", b"").unwrap();
    for text in [&b"started"[..], b"two\nlines", b"\xff\xfe"] {
        log.append(text).unwrap();
    }
    log.psync().unwrap();
    let run = rig.pmo(["log"], ["events"]).fine();
    assert_eq!(run.out, "started\ntwo\\u{a}lines\n\u{fffd}\u{fffd}\n");
    let run = rig.pmo(["log"], ["events", "--from", "1", "--json"]).fine();
    let lines: Vec<serde_json::Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let none = serde_json::Value::Null;
    assert_eq!((&lines[0]["number"], &lines[0]["text"]), (&1.into(), &"two\nlines".into()));
    assert_eq!((&lines[1]["hex"], &lines[1]["text"], &lines[1]["queue"]), (&"fffe".into(), &none, &none));
    rig.pmo(["create"], ["other", "4K"]).fine();
    rig.feed("put", ["other"], b"x").fine();
    rig.pmo(["log"], ["other"]).fails(1, "it begins with other bytes");
    rig.pmo(["log"], ["absent"]).fails(5, "no such object");

    let mut command = rig.command(["log"]);
    let mut following =
        command.args(["events", "--follow", "--from", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "\u{fffd}\u{fffd}");
    for number in 0..5 {
        log.append(format!("more {number}").as_bytes()).unwrap();
        log.psync().unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), format!("more {number}"));
    }
    following.kill().unwrap();
    following.wait().unwrap();
}
