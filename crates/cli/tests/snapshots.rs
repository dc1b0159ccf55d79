//! Snapshots: rollback, comparison, thinning, reads beside writers.

use crate::common::{self, Rig};
use indelible::collections::PVec;
use indelible::{Heap, Pool};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn changed() -> Rig {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], &[1; 12_288]).fine();
    rig.pmo(["snapshot"], ["a", "--as", "then"]).fine();
    rig.feed("put", ["a", "--offset", "5000"], &[2; 100]).fine();
    rig
}

#[test]
fn s2_02_an_object_goes_back_to_its_snapshot() {
    let rig = changed();
    rig.pmo(["create"], ["b", "4K"]).fine();
    rig.pmo(["rollback"], ["a", "b"]).fails(5, "\"b\" is no snapshot of it");
    rig.pmo(["rollback"], ["a", "absent"])
        .fails(5, "\"absent\" is no snapshot of it: there is no such object");
    rig.pmo(["rollback"], ["absent", "then"]).fails(5, "no such object");
    rig.pmo(["rollback"], ["then", "then"]).fails(6, "read-only");
    let held = rig.hold("a", true);
    rig.pmo(["rollback"], ["a", "then"]).fails(4, "as writer");
    held.release();
    let run = rig.pmo(["rollback"], ["a", "then"]).fine();
    assert_eq!(run.out, "object \"a\" is as object \"then\" has it: 12 KiB\n");
    assert_eq!(rig.pmo(["cat"], ["a"]).fine().raw, [1; 12_288]);
    let json = rig.pmo(["rollback"], ["a", "then", "--json"]).fine().json();
    assert_eq!((&json["name"], &json["own"], &json["extent"]), (&"a".into(), &0.into(), &12_288.into()));
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s2_02_objects_are_compared_page_by_page() {
    let rig = changed();
    let run = rig.pmo(["diff"], ["then", "a"]).fine();
    assert_eq!(run.out, "4 KiB at 4096\n1 of 3 pages differ in object \"then\" and object \"a\"\n");
    assert!(rig.pmo(["diff"], ["a", "a"]).fine().out.starts_with("0 of 3 pages"));
    rig.pmo(["resize"], ["a", "5000", "--shrink"]).fine();
    let json = rig.pmo(["diff"], ["then", "a", "--json"]).fine().json();
    let expected = serde_json::json!({
        "older_size": 12_288, "newer_size": 5000, "pages": 2, "bytes": 8192,
        "ranges": [{"offset": 4096, "length": 8192}],
        "roots": null,
    });
    assert_eq!(json, expected);
    rig.pmo(["diff"], ["then", "absent"]).fails(5, "cannot compare object \"absent\"");
    let held = rig.hold("a", true);
    assert!(rig.pmo(["diff"], ["then", "a"]).fine().out.contains("2 of 3 pages"));
    held.release();
}

#[test]
fn s2_02_roots_that_differ_are_named() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    for name in ["same", "grown", "stored", "gone", "retyped"] {
        heap.root_or_default::<PVec<'_, u64>>(name).unwrap().extend([1, 2, 3]);
    }
    heap.psync().unwrap();
    pool.snapshot("words", "then", b"").unwrap();
    assert_eq!(rig.pmo(["diff"], ["then", "words", "--json"]).fine().json()["roots"], serde_json::json!([]));
    heap.root_or_default::<PVec<'_, u64>>("grown").unwrap().extend(0..1000);
    heap.root_or_default::<PVec<'_, u64>>("stored").unwrap()[1] = 7;
    heap.root_or_default::<PVec<'_, u64>>("new").unwrap();
    for name in ["gone", "retyped"] {
        heap.remove_root(name).unwrap();
    }
    heap.root_or_default::<PVec<'_, u32>>("retyped").unwrap();
    heap.psync().unwrap();
    drop(heap);
    let json = rig.pmo(["diff"], ["then", "words", "--json"]).fine().json();
    let expected = serde_json::json!([
        {"name": "grown", "change": "changed", "type": "PVec<u64>"},
        {"name": "new", "change": "added", "type": "PVec<u64>"},
        {"name": "retyped", "change": "retyped", "type": "PVec<u32>", "was": "PVec<u64>"},
        {"name": "stored", "change": "changed", "type": "PVec<u64>"},
        {"name": "gone", "change": "removed", "type": "PVec<u64>"},
    ]);
    assert_eq!(json["roots"], expected);
    let run = rig.pmo(["diff"], ["then", "words"]).fine();
    for line in ["root grown differs: PVec<u64>", "root gone was removed: PVec<u64>", "was PVec<u64>"] {
        assert!(run.out.contains(line), "{run:?}");
    }
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn pages_of_an_objects_own_are_counted() {
    let rig = changed();
    let own = |name: &str| rig.pmo(["stat"], [name, "--json"]).fine().json()["own"].as_u64().unwrap();
    assert_eq!((own("a"), own("then")), (4096, 12_288));
    let listed = rig.pmo(["ls"], ["--columns", "own,name", "--sort", "own", "--no-header"]).fine();
    assert_eq!(listed.out, "12 KiB  then\n 4 KiB  a\n");
    let rows = rig.pmo(["ls"], ["a", "--json"]).fine().json();
    assert_eq!(rows[0]["own"], 4096);
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("own      4 KiB (4096 bytes)"));
    rig.pmo(["rm"], ["then"]).fine();
    rig.pmo(["gc"], [""; 0]).fine();
    assert_eq!(own("a"), 12_288);
}

#[test]
fn s2_02_old_snapshots_go_by_a_policy() {
    let rig = changed();
    let days: Vec<String> = (10..20).map(|day| format!("a@2025-03-{day}T03:00:00Z")).collect();
    let others = ["a@yesterday", "a@2025-03-10T03:00:00Z.old", "ab@2025-03-10T03:00:00Z"];
    for name in days.iter().map(String::as_str).chain(others) {
        rig.pmo(["snapshot"], ["a", "--as", name]).fine();
    }
    rig.pmo(["create"], ["a@2025-03-09T03:00:00Z", "4K"]).fine();
    let names = || -> Vec<String> {
        let rows = rig.pmo(["ls"], ["--json"]).fine().json();
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = names();
    let would = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--dry-run"]).fine();
    assert_eq!(would.out.lines().count(), 9, "{would:?}");
    assert_eq!(names(), before);
    let held = rig.hold(&days[4], false);
    let json = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--json"]).fine().json();
    let gone: Vec<&str> =
        json["destroyed"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let expected: Vec<&str> = days.iter().filter(|day| **day != days[4]).map(String::as_str).collect();
    assert_eq!(gone, expected);
    let made = json["made"][0].as_str().unwrap().to_owned();
    held.release();
    let again = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h,900w:1w"]).fine();
    assert!(again.out.starts_with("kept object \"a\" as object \"a@20"), "{again:?}");
    let left = names();
    assert!(left.contains(&days[4]) && left.contains(&"then".to_owned()), "{left:?}");
    assert!(others.iter().all(|name| left.iter().any(|left| left == name)), "{left:?}");
    let fresh: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    // At the turn of an hour each is the newest of its own.
    assert!(fresh.len() == 1 && *fresh[0] != made || fresh.len() == 2, "{left:?}");
    assert_eq!(left.len(), before.len() - 9 + fresh.len(), "{left:?}");
    rig.pmo(["snapshot"], ["a", "--keep", "24h"]).fails(2, "\"24h\" has no period");
    rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--as", "b"]).fails(2, "cannot be used with");
    rig.pmo(["snapshot"], ["a", "--dry-run"]).fails(2, "--keep");
    rig.pmo(["snapshot"], ["absent", "--keep", "24h:1h", "--dry-run"]).fails(5, "no such object");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s2_02_two_merge_at_once_beside_a_writer() {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], &[1; 40_960]).fine();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut expected = vec![1; 40_960];
    for round in 0..10_u8 {
        for number in 0..4 {
            pool.snapshot("a", &format!("s{number}"), b"").unwrap();
            let mut a = pool.attach("a").unwrap();
            let at = usize::from(round) * 4096 + number;
            a.range_mut(at..at + 1).fill(round);
            expected[at] = round;
            a.psync().unwrap();
            a.detach().unwrap();
        }
        let mut a = pool.attach("a").unwrap();
        (0..4).for_each(|number| pool.destroy(&format!("s{number}")).unwrap());
        let both = [(); 2]
            .map(|()| rig.command(["gc"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        for (nth, byte) in expected.iter_mut().enumerate().take(20) {
            *byte = round + 100;
            a.range_mut(nth..nth + 1).fill(*byte);
            a.psync().unwrap();
        }
        for gc in both {
            let output = gc.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {output:?}");
        }
        assert!(a.as_slice() == expected, "round {round}");
        a.detach().unwrap();
        assert!(rig.pmo(["cat"], ["a"]).fine().raw == expected, "round {round}");
    }
    drop(pool);
    rig.pmo(["gc"], [""; 0]).fine();
    let json = rig.pmo(["stat"], ["--json"]).fine().json();
    assert_eq!(json["objects"], 1);
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s2_04_objects_are_copied_and_moved_between_pools() {
    let rig = changed();
    let other = rig.path("other.pmo");
    let to = other.to_str().unwrap();
    common::pmo(["format", to, "--size", "16M"]).fine();
    let run = rig.pmo(["cp"], ["then", "again"]).fine();
    assert_eq!(run.out, "copied object \"then\" as object \"again\": 12 KiB\n");
    assert_eq!(rig.pmo(["cat"], ["again"]).fine().raw, [1; 12_288]);
    rig.pmo(["cp"], ["a", "again"]).fails(7, "exists");
    rig.pmo(["cp"], ["absent", "b"]).fails(5, "no such object");
    let held = rig.hold("a", true);
    rig.pmo(["cp"], ["a", "b", "--to", to]).fine();
    rig.pmo(["mv"], ["a", "--to", to]).fails(4, "as writer");
    held.release();
    let now = rig.pmo(["cat"], ["a"]).fine().raw;
    assert_eq!(common::pmo(["cat", to, "b"]).fine().raw, now);
    rig.pmo(["cp"], ["a", "b", "--to", to]).fails(7, "cannot create object \"b\"");
    let from = rig.pool.to_str().unwrap();
    let (object, pool) = (format!("{from}:a"), format!("{to}:"));
    common::pmo(["cp", &object, &format!("{to}:c")]).fine();
    common::pmo(["cp", &object, &pool]).fine();
    for name in ["a", "c"] {
        assert_eq!(common::pmo(["cat", to, name]).fine().raw, now);
    }
    common::pmo(["rm", to, "a", "c"]).fine();
    common::pmo(["cp", from, "a", &pool]).fails(2, "looks like the pool that is to get it");
    common::pmo(["cp", "absent:a", &pool]).fails(2, "absent:a does not begin with the path of a pool");
    common::pmo(["cp", from, "a", "--to", to]).fails(2, "the name of the copy is missing");
    rig.pmo(["mv"], ["then", "--to", to]).fails(6, "read-only");
    rig.pmo(["mv"], ["a", "--to", rig.pool.to_str().unwrap()]).fails(2, "that it is in");
    rig.pmo(["mv"], ["a", "b", "--to", to]).fails(2, "cannot be used with");
    let id = |pool: &str, name: &str| common::pmo(["stat", pool, name, "--json"]).fine().json()["id"].clone();
    let before = id(rig.pool.to_str().unwrap(), "a");
    rig.pmo(["mv"], ["a", "--to", to]).fine();
    assert_eq!((id(to, "a"), common::pmo(["cat", to, "a"]).fine().raw), (before, now));
    rig.pmo(["stat"], ["a"]).fails(5, "no such object");
    assert_eq!(rig.pmo(["cat"], ["then"]).fine().raw, [1; 12_288]);
    for pool in [rig.pool.to_str().unwrap(), to] {
        assert_eq!(common::pmo(["check", pool]).code, Some(0));
    }
}

#[test]
fn a_move_that_was_cut_short_says_what_to_do() {
    let rig = changed();
    std::fs::copy(&rig.pool, rig.path("before.pmo")).unwrap();
    let (other, before) = (rig.path("other.pmo"), rig.path("before.pmo"));
    let (to, from) = (other.to_str().unwrap(), before.to_str().unwrap());
    common::pmo(["format", to, "--size", "16M"]).fine();
    rig.pmo(["mv"], ["a", "--to", to]).fine();
    let run = common::pmo(["mv", from, "a", "--to", to]).fails(7, "exists");
    assert!(run.err.contains("it is in both pools") && run.err.contains("ends the move"), "{run:?}");
}

/// docs/cookbook/snapshots.md.
#[test]
fn the_page_of_the_cookbook_is_true() {
    let page = include_str!("../../../docs/cookbook/snapshots.md");
    let commands = common::run_page(page);
    assert!(commands > 15, "{commands}");
}

#[test]
fn top_counts_psyncs_and_names_holders() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut busy = pool.create_attached("busy", 4096).unwrap();
    pool.create("idle", 8192).unwrap();
    let text = rig.pmo(["top"], ["--once", "--interval", "0.01"]).fine().out;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let headings = [
        "STATE", "PSYNCS/S", "BYTES/S", "DIRTY", "LAG", "PENDING", "PSYNCS", "OWN", "SIZE", "NAME", "HOLDER",
    ];
    assert_eq!(lines[0], headings);
    assert_eq!(
        lines[2],
        ["D", "0.0", "0", "B", "-", "0", "B", "-", "0", "8", "KiB", "8", "KiB", "idle", "-"]
    );
    let mut command = rig.command(["top"]);
    command.args(["--json", "--interval", "0.05"]).stdout(Stdio::piped());
    let mut top = command.spawn().unwrap();
    let mut seen = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut looks = 0;
    let row = loop {
        busy.as_mut_slice()[0] ^= 1;
        busy.psync().unwrap();
        let rows: serde_json::Value = serde_json::from_str(&seen.next().unwrap().unwrap()).unwrap();
        let rate = |key: &str| rows[0][key].as_f64().unwrap();
        let (psyncs, bytes) = (rate("psyncs_per_second"), rate("bytes_per_second"));
        if psyncs > 0.0 && (bytes - 64.0 * psyncs).abs() < 0.01 * bytes {
            break rows[0].clone();
        }
        looks += 1;
        assert!(looks < 200, "{rows}");
    };
    assert_eq!((&row["name"], &row["state"]), (&"busy".into(), &"W".into()));
    assert_eq!(row["holder"]["pid"], std::process::id());
    assert!(row["psyncs"].as_u64().unwrap() > 0);
    top.kill().unwrap();
    top.wait().unwrap();
    rig.pmo(["top"], ["--interval", "0"]).fails(2, "from 0.01 seconds to a day");
    rig.pmo(["top"], ["--once", "absent", "--interval", "0.01"]).fine();
}

#[test]
fn top_and_metrics_show_dirty_pages_and_lag() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut object = pool.create_attached("busy", 64 * 4096).unwrap();
    let found = |key: &str| {
        rig.pmo(["top"], ["--once", "--json", "--interval", "0.01"]).fine().json()[0][key].clone()
    };
    let metric = |name: &str| {
        let text = rig.pmo(["metrics"], ["busy"]).fine().out;
        let line = text.lines().find(|line| line.starts_with(&format!("pmo_object_{name}{{")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    assert_eq!((found("lag"), metric("lag_bytes"), metric("lag_psyncs")), (0.into(), Some(0), Some(0)));
    for round in 1..=3 {
        object.as_mut_slice()[..65].fill(round);
        object.psync().unwrap();
    }
    assert_eq!((found("lag"), metric("lag_bytes"), metric("lag_psyncs")), (384.into(), Some(384), Some(3)));
    let dirty = |pages: u64| {
        assert_eq!((found("dirty"), metric("dirty_bytes")), ((pages * 4096).into(), Some(pages * 4096)));
    };
    if object.rung() == "wp-async" {
        // The page that changed repeatedly is left unprotected, as maybe dirty.
        let before = metric("dirty_bytes").unwrap() / 4096;
        assert!(before <= 1);
        for page in 10..15 {
            object.as_mut_slice()[page * 4096] = 1;
        }
        dirty(before + 5);
        object.psync().unwrap();
        assert!(metric("dirty_bytes").unwrap() <= 6 * 4096);
    } else {
        indelible_testing::not_tested(format_args!(
            "dirty pages of other processes: tracking by {}",
            object.rung()
        ));
    }
    object.detach().unwrap();
    assert_eq!((found("dirty"), metric("dirty_bytes")), (serde_json::Value::Null, None));
    assert_eq!((found("lag"), metric("lag_psyncs")), (0.into(), Some(0)));
}

#[test]
fn s2_02_heaps_are_looked_into_beside_their_writer() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    heap.root_or_default::<PVec<'_, u64>>("list").unwrap().push(7);
    heap.psync().unwrap();
    heap.root_or_default::<PVec<'_, u64>>("later").unwrap();
    let run = rig.pmo(["heap", "roots"], ["words"]).fine();
    assert!(run.out.starts_with("list: PVec<u64>") && !run.out.contains("later"), "{run:?}");
    for what in ["check", "leaks", "audit"] {
        assert!(rig.pmo(["heap", what], ["words"]).fine().out.contains("2 blocks in use, 2 owned"), "{what}");
    }
    assert!(rig.pmo(["types"], ["words"]).fine().out.starts_with("list: PVec<u64>"));
    assert_eq!(rig.pmo(["cat"], ["words"]).fine().raw.len(), 1 << 20);
    heap.psync().unwrap();
    assert!(rig.pmo(["heap", "roots"], ["words"]).fine().out.contains("later"));
    drop(heap);
    drop(pool);
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}
