//! Damaged pools: check names the damage, exit code 3; repair mends it or names its losses.

use crate::common::Rig;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

fn rig() -> Rig {
    let rig = Rig::new();
    for name in ["a", "b"] {
        rig.pmo(["create"], [name, "4K"]).fine();
        rig.feed("put", [name], name.as_bytes()).fine();
    }
    rig
}

fn overwrite(rig: &Rig, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(&rig.pool).expect("the pool");
    file.write_all_at(bytes, at).expect("written");
}

fn entry(rig: &Rig, name: &str) -> u64 {
    rig.pmo(["dump", "--json"], ["object", name]).fine().json()["entry"].as_u64().expect("an offset")
}

fn void_the_table_lane(rig: &Rig) {
    for n in 0..600 {
        let batches =
            rig.pmo(["dump", "--json"], ["lanes"]).fine().json()[0]["batches"].as_array().map(Vec::len);
        if n > 0 && batches <= Some(1) {
            return;
        }
        rig.pmo(["mv"], if n % 2 == 0 { ["b", "b2"] } else { ["b2", "b"] }).fine();
    }
    panic!("the table lane never starts again");
}

#[test]
fn a_sound_pool_is_clean() {
    let rig = rig();
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert_eq!(run.out, "2 objects, 1 lane: clean\n");
    let json = rig.pmo(["check", "--json"], [""; 0]).fine().json();
    assert_eq!((json["clean"].as_bool(), json["objects"].as_u64()), (Some(true), Some(2)));
    let run = rig.pmo(["repair"], [""; 0]).fine();
    assert_eq!(run.out, "nothing to repair\n");
}

#[test]
fn one_bad_superblock_slot_is_repaired() {
    let rig = rig();
    overwrite(&rig, 4096, &[0xff; 512]);
    let run = rig.pmo(["check"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("superblock at 4096"), "{run:?}");
    let json = rig.pmo(["check", "--json"], [""; 0]).json();
    assert_eq!((json["clean"].as_bool(), json["findings"][0]["offset"].as_u64()), (Some(false), Some(4096)));
    let run = rig.pmo(["repair", "--dry-run"], [""; 0]).fine();
    assert!(run.out.contains("would do: superblock at 4096"), "{run:?}");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(3), "a dry run changes nothing");
    let run = rig.pmo(["repair"], [""; 0]).fine();
    assert!(run.out.contains("done: superblock at 4096"), "{run:?}");
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn a_damaged_entry_is_named_and_given_up_only_if_allowed() {
    let rig = rig();
    void_the_table_lane(&rig);
    let at = entry(&rig, "a");
    overwrite(&rig, at + 24, &[0xa5; 200]);
    let run = rig.pmo(["check"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains(&format!("table entry at {at}: object \"a\"")), "{run:?}");
    let run = rig.pmo(["ls"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("  b") && run.err.contains("is damaged"), "{run:?}");
    rig.pmo(["cat"], ["a"]).fails(3, "is damaged");

    let run = rig.pmo(["repair"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("left alone: table entry"), "{run:?}");
    let run = rig.pmo(["repair", "--json"], ["--drop-damaged"]).fine().json();
    assert_eq!(run["repaired"].as_bool(), Some(true), "{run}");
    assert!(
        run["actions"].as_array().expect("a list").iter().any(|action| action["lost"].is_string()),
        "{run}"
    );
    rig.pmo(["check"], [""; 0]).fine();
    let left = rig.pmo(["ls", "--json"], [""; 0]).fine().json();
    let left: Vec<_> =
        left.as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(left.len() == 1 && left[0].starts_with('b'), "{left:?}");
    assert!(rig.pmo(["cat"], [left[0]]).fine().raw.starts_with(b"b\0"));
}

#[test]
fn a_pool_that_does_not_open_is_checked_and_repaired() {
    let rig = rig();
    void_the_table_lane(&rig);
    let node =
        rig.pmo(["dump", "--json"], ["table"]).fine().json()["trees"][0]["node"].as_u64().expect("a node");
    overwrite(&rig, node + 128, &[0x5a; 256]);
    rig.pmo(["ls"], [""; 0]).fails(3, "is damaged");
    let run = rig.pmo(["check"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains(&format!("table tree node at {node}")), "{run:?}");
    rig.pmo(["repair"], [""; 0]).fine();
    rig.pmo(["check"], [""; 0]).fine();
    assert!(rig.pmo(["cat"], ["a"]).fine().raw.starts_with(b"a\0"));
}

#[test]
fn both_superblock_slots_lost() {
    let rig = rig();
    OpenOptions::new().write(true).open(&rig.pool).and_then(|file| file.set_len(16 << 20)).expect("cut");
    overwrite(&rig, 32, &[0x77; 100]);
    overwrite(&rig, 4096 + 32, &[0x77; 100]);
    let run = rig.pmo(["check"], [""; 0]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("superblock at 0"), "{run:?}");
    rig.pmo(["ls"], [""; 0]).fails(3, "superblock");
    rig.pmo(["repair"], [""; 0]).fails(3, "superblock");
}
