//! Every command on a sound pool: effect, output, refusals.

use crate::common::{self, MKPMO, Rig, Run, pmo};
use std::process::Command;

#[test]
fn a_pool_from_format_to_rm() {
    let rig = Rig::empty();
    let run = rig.pmo(["format"], ["--size", "16M", "--label", "demo"]).fine();
    assert!(run.out.contains("a pool of 16 MiB"), "{run:?}");
    let run = rig.pmo(["create"], ["counters", "4K"]).fine();
    assert!(run.out.starts_with("created object \"counters\": 4 KiB at 0x"), "{run:?}");
    assert_eq!(rig.line("counters"), "D - 4 KiB counters");
    rig.pmo(["mv"], ["counters", "sums"]).fine();
    assert_eq!(rig.line("sums"), "D - 4 KiB sums");
    let run = rig.pmo(["resize"], ["sums", "8K"]).fine();
    assert!(run.out.contains("4 KiB before, 8 KiB now"), "{run:?}");
    assert_eq!(rig.pmo(["rm"], ["sums"]).fine().out, "");
    let run = rig.pmo(["ls"], [""; 0]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
    assert!(run.err.starts_with("note: the pool has no objects yet"), "{run:?}");
}

#[test]
fn s2_01_the_same_content_is_one_object() {
    let rig = Rig::new();
    const ID: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e";
    let run = rig.feed("put", ["greeting", "--by-content"], b"hello").fine();
    assert_eq!(run.out, format!("wrote 5 bytes to object \"greeting\", id:{ID}\n"));
    let run = rig.feed("put", ["other", "--by-content", "--json"], b"hello").fine().json();
    assert_eq!((&run["name"], &run["id"], &run["made"]), (&"greeting".into(), &ID.into(), &false.into()));
    rig.feed("put", ["greeting", "--by-content"], b"other").fails(7, "exists");
    rig.feed("put", ["greeting"], b"other").fails(6, "read-only");
    rig.feed("put", ["a", "--by-content", "--create"], b"x").fails(2, "cannot be used with");
    rig.pmo(["resize"], ["greeting", "8K"]).fails(6, "read-only");
    let stat = rig.pmo(["stat"], ["greeting"]).fine();
    assert!(stat.out.contains("read-only, position-independent, ID by content"), "{stat:?}");
    let check = rig.pmo(["check"], ["--json"]).fine().json();
    assert_eq!((&check["contents"], &check["clean"]), (&1.into(), &true.into()));
    let offset = rig.pmo(["stat"], ["greeting", "--json"]).fine().json()["offset"].as_u64().unwrap();
    let mut bytes = std::fs::read(&rig.pool).unwrap();
    bytes[offset as usize] = b'j';
    std::fs::write(&rig.pool, bytes).unwrap();
    let check = rig.pmo(["check"], [""; 0]);
    assert_eq!(check.code, Some(3), "{check:?}");
    assert!(check.out.contains("its content is not the one that its ID is the hash of"), "{check:?}");
    assert_eq!(rig.pmo(["check"], ["--json"]).json()["changed"], serde_json::json!(["greeting"]));
    rig.feed("put", ["greeting", "--by-content"], b"hello").fails(3, "content of an object");
}

#[test]
fn s2_02_objects_are_kept_and_copied_at_once() {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], b"first").fine();
    let run = rig.pmo(["snapshot"], ["a", "--as", "then"]).fine();
    assert_eq!(run.out, "kept object \"a\" as object \"then\": 5 B\n");
    rig.pmo(["snapshot"], ["a", "--as", "trial", "--writable"]).fine();
    rig.feed("put", ["a"], b"other").fine();
    rig.feed("put", ["trial"], b"third").fine();
    for (name, bytes) in [("a", "other"), ("then", "first"), ("trial", "third")] {
        assert_eq!(rig.pmo(["cat"], [name]).fine().out, bytes, "{name}");
    }
    assert!(rig.pmo(["stat"], ["then"]).fine().out.contains("snapshot"));
    let json = rig.pmo(["stat"], ["trial", "--json"]).fine().json();
    assert_eq!((&json["shares"], &json["snapshot"]), (&true.into(), &false.into()));
    let named = rig.pmo(["snapshot"], ["a", "--json"]).fine().json();
    assert!(
        named["name"].as_str().is_some_and(|name| name.starts_with("a@20") && name.ends_with('Z')),
        "{named}"
    );
    rig.feed("put", ["then"], b"wrong").fails(6, "read-only");
    rig.pmo(["snapshot"], ["a", "--as", "then"]).fails(7, "exists");
    rig.pmo(["snapshot"], ["absent", "--as", "b"]).fails(5, "no such object");
    let held = rig.hold("a", true);
    rig.pmo(["snapshot"], ["a", "--as", "beside"]).fine();
    assert_eq!(rig.pmo(["cat"], ["beside"]).fine().out, "other");
    let both = rig.pmo(["snapshot"], ["a", "trial", "--json"]).fine().json();
    held.release();
    let both: Vec<&str> =
        both.as_array().unwrap().iter().map(|made| made["name"].as_str().unwrap()).collect();
    assert_eq!([both[0], both[1]].map(|name| rig.pmo(["cat"], [name]).fine().out), ["other", "third"]);
    rig.pmo(["snapshot"], ["a", "trial", "--as", "b"]).fails(2, "--as is for one object");
    let made = ["a", "then", "beside", named["name"].as_str().unwrap()];
    rig.pmo(["rm"], made.into_iter().chain(both)).fine();
    let json = rig.pmo(["gc"], ["--json"]).fine().json();
    assert!(json["freed"].as_u64().is_some_and(|freed| freed > 0), "{json}");
    assert_eq!(rig.pmo(["stat"], ["trial", "--json"]).fine().json()["shares"], false);
    assert!(rig.pmo(["gc"], [""; 0]).fine().out.starts_with("0 B freed"));
    assert_eq!(rig.pmo(["cat"], ["trial"]).fine().out, "third");
    rig.pmo(["rm"], ["trial"]).fine();
    let run = rig.pmo(["check"], [""; 0]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(rig.pmo(["stat"], ["--json"]).fine().json()["objects"], 0);
}

#[test]
fn s2_03_an_object_that_a_process_has_is_removed_later() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "1M"]).fine();
    let held = rig.hold("a", true);
    let run = rig.pmo(["rm"], ["a"]).fails(4, "held by");
    assert!(run.err.contains("`pmo rm --later`"), "{run:?}");
    rig.pmo(["rm"], ["a", "--dry-run"]).fails(4, "would not be destroyed");
    assert!(rig.pmo(["rm"], ["a", "--dry-run", "--later"]).fine().out.contains("would destroy object \"a\""));
    rig.pmo(["rm"], ["a", "--later"]).fine();
    assert!(!rig.pmo(["ls"], [""; 0]).out.contains(" a\n"));
    rig.pmo(["rm"], ["a", "--later"]).fails(5, "no such object");
    rig.pmo(["create"], ["a", "4K"]).fine();
    let free = |rig: &Rig| rig.pmo(["stat"], ["--json"]).fine().json()["free"].as_u64().unwrap();
    let before = free(&rig);
    held.release();
    assert_eq!(free(&rig), before + (1 << 20));
    let held = rig.hold("a", true);
    rig.pmo(["rm"], ["a", "--later"]).fine();
    held.kill();
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(run.out.contains("deleted, and no process has it attached any more"), "{run:?}");
    assert_eq!(rig.pmo(["gc"], ["--json"]).fine().json()["removed"], 1);
    assert_eq!(rig.pmo(["check"], [""; 0]).fine().out.lines().last(), Some("0 objects, 1 lane: clean"));
}

#[test]
fn s2_05_a_tied_object_goes_with_the_last_that_it_is_tied_to() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    rig.pmo(["tie"], ["a", "b"]).fine();
    rig.pmo(["tie"], ["b", "c"]).fine();
    let run = rig.pmo(["tie"], ["c", "a"]).fails(2, "that one is to outlive it already");
    assert!(run.err.contains("`pmo untie` takes one back"), "{run:?}");
    rig.pmo(["tie"], ["a", "d"]).fails(5, "cannot tie objects to object \"d\"");
    rig.pmo(["tie"], ["d", "a"]).fails(5, "cannot tie object \"d\"");
    rig.pmo(["untie"], ["a", "c"]).fails(5, "is not tied to");
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("tied to  b\n"));
    let json = rig.pmo(["tie"], ["a", "c", "--json"]).fine().json();
    assert_eq!(json["ties"], serde_json::json!(["b", "c"]));
    rig.pmo(["snapshot"], ["c", "--as", "s"]).fine();
    rig.pmo(["tie"], ["a", "s"]).fails(6, "snapshot");
    rig.pmo(["rm"], ["s", "a", "b"]).fine();
    let objects = || rig.pmo(["stat"], ["--json"]).fine().json()["objects"].as_u64();
    rig.pmo(["gc"], [""; 0]).fine();
    assert_eq!(objects(), Some(3));
    rig.pmo(["rm"], ["c"]).fine();
    assert_eq!(objects(), Some(0));
}

#[test]
fn s2_04_a_volatile_object_says_so() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K", "--volatile"]).fine();
    rig.feed("put", ["a"], b"worth nothing").fine();
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("flags    volatile\n"));
    assert_eq!(rig.pmo(["stat"], ["a", "--json"]).fine().json()["volatile"], true);
    let pool = indelible::Pool::open(&rig.pool).unwrap();
    let options =
        indelible_store::table::CreateOptions { size: 4096, volatile: Some([9; 16]), ..Default::default() };
    for name in ["b", "c"] {
        pool.store().create(name, &options).unwrap();
    }
    drop(pool);
    assert!(rig.pmo(["stat"], ["b"]).fine().out.contains("volatile, of an earlier boot: gone"));
    rig.pmo(["cat"], ["b"]).fails(5, "the machine was started anew");
    rig.pmo(["create"], ["b", "8K"]).fine();
    assert_eq!(rig.pmo(["gc"], ["--json"]).fine().json()["removed"], 1);
    rig.pmo(["stat"], ["c"]).fails(5, "no such object");
    assert_eq!(rig.pmo(["cat"], ["a"]).fine().out.len(), 4096);
}

#[test]
fn format_asks_before_it_destroys() {
    let rig = Rig::new();
    rig.pmo(["create"], ["kept", "4K"]).fine();
    rig.pmo(["format"], [""; 0]).fails(7, "exists already");
    assert_eq!(rig.line("kept"), "D - 4 KiB kept");
    let run = rig.pmo(["format"], ["--force", "--json"]).fine();
    assert_eq!((run.json()["length"].as_u64(), run.json()["objects"].as_u64()), (Some(16 << 20), Some(0)));
    let held = {
        rig.pmo(["create"], ["a", "4K"]).fine();
        rig.hold("a", true)
    };
    rig.pmo(["format"], ["--force"]).fails(4, "held by");
    held.release();
}

#[test]
fn format_takes_the_window_it_is_told() {
    let rig = Rig::empty();
    rig.pmo(["format"], ["--window", "0x500000000000"]).fails(2, "a first address and a length");
    rig.pmo(["format"], ["--window", "0x500000001000,1T"]).fails(2, "multiples of 2 MiB");
    rig.pmo(["format"], ["--window", "0x1000000,1T"]).fails(2, "it must lie between");
    assert!(!rig.pool.exists());
    let run = rig.pmo(["format"], ["--window", "0x500000000000,1T", "--json"]).fine();
    assert_eq!(run.json()["window"], "0x500000000000");
    let run = rig.pmo(["create"], ["first", "4K"]).fine();
    assert!(run.out.contains(" at 0x500000000000"), "{run:?}");
}

#[test]
fn a_format_that_fails_leaves_no_file() {
    let rig = Rig::empty();
    rig.pmo(["format"], ["--size", "4K"]).fails(2, "cannot hold a pool");
    assert!(!rig.pool.exists());
    rig.pmo(["format"], ["--size", "16M", "--label", &"x".repeat(129)]).fails(2, "128 bytes");
    assert!(!rig.pool.exists());
    rig.pmo(["format"], ["--size", "16M"]).fine();
}

#[test]
fn mkpmo_formats() {
    let rig = Rig::empty();
    let run = Run::of(Command::new(MKPMO).arg(&rig.pool).args(["--size", "2M", "--json"]), b"").fine();
    assert_eq!(run.json()["length"].as_u64(), Some(2 << 20));
    Run::of(Command::new(MKPMO).arg(&rig.pool), b"").fails(7, "exists already");
}

#[test]
fn the_default_size_is_a_gibibyte_that_takes_no_space() {
    use std::os::unix::fs::MetadataExt;
    let rig = Rig::empty();
    rig.pmo(["format"], [""; 0]).fine();
    let file = std::fs::metadata(&rig.pool).expect("the pool");
    assert_eq!(file.len(), (1 << 30) + 4096);
    assert!(file.blocks() * 512 < 16 << 20, "{} bytes", file.blocks() * 512);
}

#[test]
fn stat_says_it_all() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "5000", "--sparse", "--reach", "1M"]).fine();
    let run = rig.pmo(["stat"], [""; 0]).fine();
    assert!(run.out.contains("length     16 MiB (16777216 bytes)"), "{run:?}");
    let pool = rig.pmo(["stat", "--json"], [""; 0]).fine().json();
    assert_eq!((pool["objects"].as_u64(), pool["version"].as_u64()), (Some(1), Some(2)));
    assert!(pool["window"].as_str().is_some_and(|window| window.starts_with("0x")));
    let object = rig.pmo(["stat", "--json"], ["a"]).fine().json();
    assert_eq!(object["size"].as_u64(), Some(5000));
    assert_eq!(object["extent"].as_u64(), Some(8192));
    assert_eq!(object["reach"].as_u64(), Some(1 << 20));
    assert_eq!((object["sparse"].as_bool(), object["read_only"].as_bool()), (Some(true), Some(false)));
    assert_eq!(object["holder"], serde_json::Value::Null);
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("flags    sparse"));
    let set = rig.pmo(["set"], ["a", "--reach", "4M"]).fine();
    assert!(set.out.contains("free to grow to 4 MiB"), "{set:?}");
    assert_eq!(rig.pmo(["stat", "--json"], ["a"]).fine().json()["reach"].as_u64(), Some(4 << 20));
    rig.pmo(["set"], ["a", "--reach", "1M"]).fails(2, "keeps the addresses that it has");
    rig.pmo(["stat"], ["b"]).fails(5, "no such object");
}

#[test]
fn ls_sorts_and_matches() {
    let rig = Rig::new();
    for name in ["b/2", "a", "b/1", "ü"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    let names = |pattern: &[&str]| -> Vec<String> {
        let run = rig.pmo(["ls", "--json"], pattern).fine().json();
        let rows = run.as_array().expect("an array");
        rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&[]), ["a", "b/1", "b/2", "ü"]);
    assert_eq!(names(&["b*"]), ["b/1", "b/2"]);
    assert_eq!(names(&["?"]), ["a", "ü"]);
    assert_eq!(names(&["*[13]"]), ["b/1"]);
    assert_eq!(names(&["nothing*"]), [""; 0]);
    let run = rig.pmo(["ls"], ["nothing*"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: no object has such a name\n"));
}

#[test]
fn put_and_cat_carry_bytes() {
    let rig = Rig::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
    std::fs::write(rig.path("in"), &bytes).expect("written");
    let run = rig.pmo(["put"], ["big", "in", "--create"]).fine();
    assert!(run.out.contains("wrote 2.9 MiB (3000000 bytes)"), "{run:?}");
    assert!(rig.pmo(["cat"], ["big"]).fine().raw == bytes);
    let part = rig.pmo(["cat"], ["big", "--offset", "4K", "--length", "10"]).fine().raw;
    assert_eq!(part, bytes[4096..4106]);
    let run = rig.feed("put", ["big", "--offset", "10", "--json"], b"hello").fine();
    assert_eq!(run.json(), serde_json::json!({"name": "big", "offset": 10, "bytes": 5}));
    let now = rig.pmo(["cat"], ["big"]).fine().raw;
    assert!(now[..10] == bytes[..10] && now[10..15] == *b"hello" && now[15..] == bytes[15..]);
    rig.feed("put", ["big", "-", "--zero-rest"], b"end").fine();
    let now = rig.pmo(["cat"], ["big"]).fine().raw;
    assert!(now.len() == 3_000_000 && now.starts_with(b"end") && now[3..].iter().all(|byte| *byte == 0));
}

#[test]
fn an_input_that_does_not_fit_changes_nothing() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "100"]).fine();
    rig.feed("put", ["a"], b"before").fine();
    rig.feed("put", ["a"], &[b'x'; 101]).fails(8, "does not fit");
    rig.feed("put", ["a", "--offset", "99"], b"xy").fails(8, "from byte 99 on");
    rig.feed("put", ["a", "--offset", "101"], b"").fails(8, "does not fit");
    std::fs::write(rig.path("long"), [b'x'; 200]).expect("written");
    rig.pmo(["put"], ["a", "long"]).fails(8, "does not fit");
    let bytes = rig.pmo(["cat"], ["a"]).fine().raw;
    assert!(bytes.len() == 100 && bytes.starts_with(b"before\0"));
    rig.feed("put", ["a"], &[b'y'; 100]).fine();
    rig.pmo(["put"], ["a", "missing"]).fails(5, "cannot open missing");
    rig.pmo(["put"], ["b", "long"]).fails(5, "no such object");
    rig.pmo(["cat"], ["a", "--offset", "101"]).fails(2, "none at 101");
}

#[test]
fn attach_check_says_what_it_found() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let object = rig.pmo(["stat", "--json"], ["a"]).fine().json();
    let run = rig.pmo(["attach-check", "--json"], ["a", "--write"]).fine().json();
    assert_eq!(run["address"], object["address"]);
    assert_eq!((run["write"].as_bool(), run["recovered"].as_bool()), (Some(true), Some(false)));
    assert_eq!((run["length"].as_u64(), run["recovered_bytes"].as_u64()), (Some(4096), Some(0)));
    assert!(run["attach_ns"].as_u64().is_some_and(|ns| ns > 0));
    let run = rig.pmo(["attach-check"], ["a"]).fine();
    assert!(run.out.starts_with("attached object \"a\" for reading in "), "{run:?}");
    for rung in ["mprotect", "explicit"] {
        let run = rig.pmo(["attach-check", "--tracking", rung, "--json"], ["a", "--write"]).fine();
        assert_eq!(run.json()["tracking"], rung);
    }
    rig.pmo(["attach-check"], ["b"]).fails(5, "no such object");
}

#[test]
fn media_can_be_forced() {
    let rig = Rig::empty();
    let run = rig.pmo(["format", "--medium", "memory", "--json"], ["--size", "2M"]).fine();
    assert_eq!(run.json()["medium"], "memory");
    let run = rig.pmo(["stat", "--medium", "file", "--json"], [""; 0]).fine();
    assert_eq!(run.json()["medium"], "file");
    rig.pmo(["stat", "--medium", "devdax"], [""; 0]).fails(9, "not a character device");
    rig.pmo(["stat", "--medium", "tape"], [""; 0])
        .fails(2, "possible values: auto, file, memory, dax, devdax");
}

#[test]
fn shrinking_has_to_be_allowed() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "8K"]).fine();
    rig.feed("put", ["a"], &[7; 8192]).fine();
    rig.pmo(["resize"], ["a", "4K"]).fails(2, "would cut off its end");
    rig.pmo(["resize"], ["a", "4K", "--shrink"]).fine();
    assert!(rig.pmo(["cat"], ["a"]).fine().raw == [7; 4096]);
    rig.pmo(["resize"], ["a", "12K"]).fine();
    let bytes = rig.pmo(["cat"], ["a"]).fine().raw;
    assert!(bytes.len() == 12288 && bytes[4096..].iter().all(|byte| *byte == 0));
    rig.pmo(["resize"], ["a", "0", "--shrink"]).fails(2, "0 bytes");
    rig.pmo(["resize"], ["b", "4K"]).fails(5, "no such object");
}

#[test]
fn rm_goes_on_behind_a_failure() {
    let rig = Rig::new();
    for name in ["a", "b", "-c"] {
        rig.pmo(["create"], ["--", name, "4K"]).fine();
    }
    let run = rig.pmo(["rm"], ["a", "missing", "b"]).fails(5, "\"missing\"");
    assert_eq!(run.err.lines().count(), 2);
    assert_eq!(rig.pmo(["ls", "--json"], [""; 0]).fine().json().as_array().map(Vec::len), Some(1));
    rig.pmo(["rm"], ["--", "-c"]).fine();
}

#[test]
fn names_that_cannot_be() {
    let rig = Rig::new();
    for name in ["", " a", "a ", "a\nb", "a\u{7f}", "\u{1b}[2J", &"x".repeat(512)] {
        let run = rig.pmo(["create"], [name, "4K"]).fails(2, "not a usable name");
        assert!(!run.err.trim_end().contains(|c: char| c.is_control() && c != '\n'), "{run:?}");
    }
    rig.pmo(["create"], ["good", "4K"]).fine();
    rig.pmo(["mv"], ["good", "bad\t"]).fails(2, "not a usable name");
    for name in ["..", "/etc/passwd", "a/../b", "*", &"x".repeat(511)] {
        rig.pmo(["create"], [name, "4K"]).fine();
        rig.pmo(["rm"], [name]).fine();
    }
    rig.pmo(["create"], ["good", "4K"]).fails(7, "exists");
    rig.pmo(["create"], ["other", "4K"]).fine();
    rig.pmo(["mv"], ["good", "other"]).fails(7, "exists");
    rig.pmo(["mv"], ["missing", "new"]).fails(5, "no such object");
    assert_eq!(rig.pmo(["ls", "--json"], [""; 0]).fine().json().as_array().map(Vec::len), Some(2));
}

#[test]
fn names_cannot_command_the_terminal() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a\u{202e}b", "4K"]).fine();
    assert_eq!(rig.line("a*"), "D - 4 KiB a\\u{202e}b");
    assert_eq!(rig.pmo(["ls", "--json"], [""; 0]).fine().json()[0]["name"], "a\u{202e}b");
}

#[test]
fn sizes_that_cannot_be() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "0"]).fails(2, "at least one byte");
    rig.pmo(["create"], ["a", "1G"]).fails(8, "no room");
    rig.pmo(["create"], ["a", "65T"]).fails(2, "64 TiB");
    rig.pmo(["create"], ["a", "16777216T"]).fails(2, "16 EiB");
    rig.pmo(["create"], ["a", "4X"]).fails(2, "not a unit");
    rig.pmo(["create"], ["a", "--", "-4"]).fails(2, "a size is a number");
    rig.pmo(["create"], ["a", "4K"]).fine();
    rig.pmo(["resize"], ["a", "1G"]).fails(8, "no room");
}

#[test]
fn keys_open_what_they_should() {
    let rig = Rig::new();
    std::fs::write(rig.path("key"), "secret\n").expect("written");
    rig.pmo(["create"], ["a", "4K", "--key-file", "key"]).fine();
    rig.pmo(["cat"], ["a"]).fails(6, "key does not match");
    rig.pmo(["cat"], ["a", "--key", "wrong"]).fails(6, "key does not match");
    rig.pmo(["rm"], ["a"]).fails(6, "key does not match");
    rig.pmo(["mv"], ["a", "b"]).fails(6, "key does not match");
    rig.pmo(["resize"], ["a", "8K"]).fails(6, "key does not match");
    rig.pmo(["put"], ["a"]).fails(6, "key does not match");
    rig.pmo(["attach-check"], ["a"]).fails(6, "key does not match");
    assert_eq!(rig.pmo(["cat"], ["a", "--key", "secret"]).fine().raw, [0; 4096]);
    assert_eq!(rig.pmo(["cat"], ["a", "--key-file", "key"]).fine().raw, [0; 4096]);
    let from_environment =
        Command::new(common::PMO).arg("cat").arg(&rig.pool).arg("a").env("PMO_KEY", "secret").output();
    assert!(from_environment.expect("run").status.success());
    let wrong = Command::new(common::PMO)
        .arg("cat")
        .arg(&rig.pool)
        .args(["a", "--key", "x"])
        .env("PMO_KEY", "secret")
        .output();
    assert_eq!(wrong.expect("run").status.code(), Some(6));
    rig.pmo(["cat"], ["a", "--key-file", "missing"]).fails(5, "cannot read the key from missing");
    rig.pmo(["cat"], ["a", "--key", ""]).fails(2, "empty key");
    rig.pmo(["cat"], ["a", "--key", "x", "--key-file", "key"]).fails(2, "cannot be used with");
    rig.pmo(["rm"], ["a", "--key", "secret"]).fine();

    rig.pmo(["create"], ["b", "4K", "--read-key", "r", "--write-key", "w"]).fine();
    rig.pmo(["cat"], ["b", "--key", "r"]).fine();
    rig.pmo(["cat"], ["b", "--key", "w"]).fine();
    rig.pmo(["attach-check"], ["b", "--write", "--key", "r"]).fails(6, "key does not match");
    rig.pmo(["attach-check"], ["b", "--write", "--key", "w"]).fine();
    rig.pmo(["create"], ["c", "4K", "--read-key", "r"]).fails(2, "guards nothing");
    let object = rig.pmo(["stat", "--json"], ["b"]).fine().json();
    assert_eq!((object["read_key"].as_bool(), object["write_key"].as_bool()), (Some(true), Some(true)));
}

#[test]
fn read_only_objects_stay_so() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K", "--read-only"]).fine();
    rig.feed("put", ["a"], b"x").fails(6, "read-only");
    rig.pmo(["attach-check"], ["a", "--write"]).fails(6, "read-only");
    rig.pmo(["cat"], ["a"]).fine();
}

#[test]
fn dump_shows_the_insides() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let slots = rig.pmo(["dump", "--json"], [""; 0]).fine().json();
    assert_eq!((slots[0]["magic"].as_str(), slots[1]["sequence"].as_u64()), (Some("INDELIBL"), Some(2)));
    assert!(rig.pmo(["dump"], ["superblock"]).fine().out.contains("slot      at 4096, intact"));
    let table = rig.pmo(["dump", "--json"], ["table"]).fine().json();
    assert_eq!((table["objects"].as_u64(), table["trees"].as_array().map(Vec::len)), (Some(1), Some(6)));
    assert!(rig.pmo(["dump"], ["table"]).fine().out.contains("Names "));
    let held = rig.hold("a", true);
    let lanes = rig.pmo(["dump", "--json"], ["lanes"]).fine().json();
    assert_eq!((lanes[0]["index"].as_u64(), lanes[1]["held"].as_bool()), (None, Some(true)));
    assert_eq!(lanes[1]["pid"].as_u64(), Some(held.pid().into()));
    assert!(rig.pmo(["dump"], ["lanes"]).fine().out.contains(&format!("held by process {}", held.pid())));
    let entry = rig.pmo(["dump", "--json"], ["object", "a"]).fine().json();
    assert_eq!((entry["state"].as_u64(), entry["lane"].as_u64()), (Some(2), Some(0)));
    assert!(rig.pmo(["dump"], ["object", "a"]).fine().out.contains("state        2 (W)"));
    rig.pmo(["dump"], ["object", "b"]).fails(5, "no such object");
}

#[test]
fn usage_errors_exit_with_2() {
    assert_eq!(pmo([""; 0]).code, Some(2));
    assert_eq!(pmo(["nonsense"]).code, Some(2));
    assert_eq!(pmo(["ls"]).code, Some(2));
    assert_eq!(pmo(["rm", "pool"]).code, Some(2));
    assert_eq!(pmo(["create", "p", "n", "4K", "extra"]).code, Some(2));
}
