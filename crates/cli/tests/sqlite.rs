//! Databases of SQLite to and from plain files; `crates/sqlite/tests/plain.rs` opens them by
//! SQLite.

use crate::common::{Rig, pmo};

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
    std::fs::write(path("plain.db-wal"), "changes").unwrap();
    sqlite(&["import", from, pool, "--object", "t"]).fails(9, "changes that the database lacks");
    rig.pmo(["create"], ["other", "64K"]).fine();
    rig.feed("put", ["other"], b"x").fine();
    sqlite(&["export", pool, path("o").to_str().unwrap(), "--object", "other"]).fails(9, "no database");
    sqlite(&["export", pool, path("o").to_str().unwrap(), "--object", "t"]).fails(5, "no such object");
    assert!(!path("o").exists());
}
