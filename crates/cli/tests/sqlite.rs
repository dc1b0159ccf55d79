//! Databases of SQLite to and from plain files; `crates/sqlite/tests/plain.rs` opens them by
//! SQLite.

use crate::common::{PMO, Rig, Run, pmo};
use std::process::{Command, Stdio};

fn large(length: u32) -> Vec<u8> {
    let mut bytes = database();
    bytes.extend((8192..length).map(|at| (at % 251) as u8));
    bytes
}

#[test]
fn an_export_has_its_name_once_it_is_whole() {
    let rig = Rig::empty();
    // Stores to it pass no limit of files.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let pool = memory.path().join("t.pmo");
    let pool = pool.to_str().unwrap();
    pmo(["format", pool, "--size", "32M"]).fine();
    std::fs::write(rig.path("plain.db"), large(6 << 20)).unwrap();
    pmo(["sqlite", "import", rig.path("plain.db").to_str().unwrap(), pool]).fine();
    let copy = rig.path("copy.db");
    let is_whole = || std::fs::read(&copy).unwrap() == large(6 << 20);
    let begun = || {
        let names = std::fs::read_dir(rig.dir.path()).unwrap();
        names.filter(|one| one.as_ref().unwrap().file_name().as_encoded_bytes().starts_with(b"copy")).count()
    };
    for _ in 0..5 {
        // As soon as anything of the copy is there.
        let mut export = Command::new(PMO);
        let mut export =
            export.args(["sqlite", "export", pool]).arg(&copy).stdout(Stdio::null()).spawn().unwrap();
        while begun() == 0 && export.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        export.kill().unwrap();
        export.wait().unwrap();
        assert!(!copy.exists() || is_whole());
        let _ = std::fs::remove_file(&copy);
    }
    std::fs::write(rig.path("copy.db.1.partial"), "half").unwrap();
    // A full file system, for which files of 4 MiB at most stand.
    let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" sqlite export \"$@\"";
    let full =
        Run::of(Command::new("sh").args(["-c", script, PMO, pool]).arg(&copy), b"").fails(8, "copy.db");
    assert!(full.err.contains("free space"), "{full:?}");
    assert_eq!(begun(), 0);
    pmo(["sqlite", "export", pool, copy.to_str().unwrap()]).fine();
    assert!(begun() == 1 && is_whole());
}

fn database() -> Vec<u8> {
    let mut bytes = b"SQLite format 3\0".to_vec();
    bytes.extend((16..8192_u32).map(|at| (at % 251) as u8));
    bytes[18..20].fill(1);
    bytes
}

#[test]
fn s2_26_a_database_goes_into_an_object_and_out_again() {
    let rig = Rig::new();
    let path = |name: &str| rig.path(name);
    let (plain, copy) = (path("plain.db"), path("copy.db"));
    std::fs::write(&plain, database()).unwrap();
    let pool = rig.pool.to_str().unwrap();
    let sqlite = |words: &[&str]| pmo([&["sqlite"][..], words].concat());
    let (from, to) = (plain.to_str().unwrap(), copy.to_str().unwrap());
    sqlite(&["import", from, pool]).fine();
    assert_eq!(sqlite(&["export", pool, to, "--json"]).fine().json()["bytes"], 8192);
    assert_eq!(std::fs::read(&copy).unwrap(), database());
    sqlite(&["export", pool, to]).fails(7, "exists");
    sqlite(&["import", from, pool]).fails(7, "exists");
    sqlite(&["import", from, pool, "--object", "other.db"]).fine();
    std::fs::write(path("text"), "text").unwrap();
    sqlite(&["import", path("text").to_str().unwrap(), pool, "--object", "t"]).fails(9, "no database");
    sqlite(&["import", path("absent").to_str().unwrap(), pool, "--object", "t"]).fails(5, "cannot copy");
    // SQLite's `journal_mode=PERSIST` leaves a journal that begins with zeros.
    std::fs::write(path("plain.db-journal"), [0; 512]).unwrap();
    sqlite(&["import", from, pool, "--object", "persist.db"]).fine();
    std::fs::write(path("plain.db-journal"), "changes").unwrap();
    sqlite(&["import", from, pool, "--object", "t"]).fails(9, "changes that the database lacks");
    std::fs::remove_file(path("plain.db-journal")).unwrap();
    std::fs::write(path("plain.db-wal"), "changes").unwrap();
    sqlite(&["import", from, pool, "--object", "t"]).fails(9, "changes that the database lacks");
    rig.pmo(["create"], ["other", "64K"]).fine();
    rig.feed("put", ["other"], b"x").fine();
    sqlite(&["export", pool, path("o").to_str().unwrap(), "--object", "other"]).fails(9, "no database");
    sqlite(&["export", pool, path("o").to_str().unwrap(), "--object", "t"]).fails(5, "no such object");
    assert!(!path("o").exists());
}
