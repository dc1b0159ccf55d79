//! `pmo clone`, and `--rebase` of `cp`, `mv`, `restore` and `clone`: one process attaches objects
//! of two pools.

use super::common::{PMO, Rig, Run, pmo, run_page};
use indelible::Pool;
use indelible::collections::{PHashMap, PString};
use std::path::Path;
use std::process::Command;

fn rig() -> Rig {
    let rig = Rig::new();
    let mut heap = Pool::open(&rig.pool).unwrap().heap("words", 1 << 20).unwrap();
    let words = heap.root_or_default::<PHashMap<'_, PString<'_>, u64>>("words").unwrap();
    for n in 0..500 {
        words.insert(format!("word {n}").as_str(), n);
    }
    heap.psync().unwrap();
    rig
}

#[track_caller]
fn both(one: (&Path, &str), two: (&Path, &str)) {
    let mut heaps = [one, two].map(|(pool, name)| Pool::open(pool).unwrap().heap(name, 0).unwrap());
    for heap in &mut heaps {
        let words = heap.root_or_default::<PHashMap<'_, PString<'_>, u64>>("words").unwrap();
        assert!(words.len() == 500 && (0..500).all(|n| words[format!("word {n}").as_str()] == n));
        words.clear();
    }
}

#[test]
fn a_clone_has_an_id_of_its_own_and_the_addresses_of_the_original() {
    let rig = rig();
    let new = rig.path("new.pmo");
    let to = new.to_str().unwrap();
    let holder = rig.hold("words", false);
    rig.pmo(["clone"], [to]).fails(4, "which has the pool open");
    holder.release();
    let run = rig.pmo(["clone", "--json"], [to]).fine().json();
    assert!(run["copied"].as_u64().unwrap() < 8 << 20 && run["length"] == 16 << 20, "{run}");
    let stat = |pool: &str| pmo(["stat", pool, "--json"]).fine().json();
    let (before, after) = (stat(rig.pool.to_str().unwrap()), stat(to));
    assert_eq!(after["id"], run["id"]);
    assert_ne!(after["id"], before["id"]);
    assert_eq!(after["window"], before["window"]);
    rig.pmo(["clone"], [to]).fails(7, "exists already");
    rig.pmo(["clone"], [rig.path("gone/new.pmo").to_str().unwrap()]).fails(5, "cannot create");
    pmo(["clone", rig.path("absent").to_str().unwrap(), rig.path("b").to_str().unwrap()]).fails(5, "cannot");
    let (here, there) = (Pool::open(&rig.pool).unwrap(), Pool::open(&new).unwrap());
    let _words = here.attach_read("words").unwrap();
    assert_eq!(there.attach_read("words").unwrap_err().kind(), indelible::ErrorKind::AddressTaken);
    assert_eq!(pmo(["check", to]).code, Some(0));
}

#[test]
fn objects_at_other_addresses_are_attached_beside_the_original() {
    let rig = rig();
    let pool = rig.pool.as_path();
    let names = ["clone", "restored", "other"].map(|name| rig.path(name));
    let [clone, restored, other] = names.each_ref().map(|path| path.to_str().unwrap());
    rig.pmo(["clone", "--rebase"], [clone]).fine();
    both((pool, "words"), (&names[0], "words"));
    let backup = rig.path("one.backup");
    rig.pmo(["backup"], [&backup]).fine();
    pmo(["restore", backup.to_str().unwrap(), restored, "--rebase"]).fine();
    both((pool, "words"), (&names[1], "words"));
    let low = pmo(["stat", rig.pool.to_str().unwrap()]).fine().out.contains(" 0x4");
    let apart = if low { "0x700000000000,1T" } else { "0x400000000000,1T" };
    pmo(["format", other, "--size", "16M", "--window", apart]).fine();
    pmo(["restore", backup.to_str().unwrap(), other, "--object", "words"]).fails(8, "addresses");
    let run = Run::of(
        Command::new(PMO).args(["restore", backup.to_str().unwrap(), other, "--object", "words"]),
        b"",
    );
    assert!(run.err.contains("--rebase"), "{run:?}");
    pmo(["restore", backup.to_str().unwrap(), other, "--object", "words", "--rebase"]).fine();
    both((pool, "words"), (&names[2], "words"));
    rig.pmo(["cp", "--rebase"], ["words", "trial"]).fine();
    both((pool, "words"), (pool, "trial"));
    rig.pmo(["cp", "--rebase"], ["words", "copy", "--to", other]).fine();
    both((pool, "words"), (&names[2], "copy"));
    rig.pmo(["mv", "--rebase"], ["trial", "--to", other]).fine();
    both((pool, "words"), (&names[2], "trial"));
    rig.pmo(["mv", "--rebase"], ["words", "renamed"]).fails(2, "cannot be used with");
    for pool in [pool.to_str().unwrap(), clone, restored, other] {
        assert_eq!(pmo(["check", pool]).code, Some(0));
    }
}

#[test]
fn an_object_whose_pointers_are_not_known_stays_at_its_addresses() {
    let rig = rig();
    rig.feed("put", ["bytes", "--create"], b"anything").fine();
    rig.pmo(["cp", "--rebase"], ["bytes", "copy"]).fails(9, "it holds no heap");
    rig.pmo(["clone", "--rebase"], [rig.path("new.pmo")]).fails(9, "object \"bytes\"");
    let left: Vec<_> =
        std::fs::read_dir(rig.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&rig.pool));
    let names = rig.pmo(["ls", "--json"], Vec::<String>::new()).fine().out;
    assert!(!names.contains("copy"), "{names}");
}

#[test]
fn the_page_on_backups_is_true() {
    let page = include_str!("../../../docs/cookbook/backup.md");
    assert!(run_page(page) > 6);
}
