//! Pools and objects that cannot be used: SQLite's own codes, and the library's message in its log.

use crate::support::{code, integrity, number, open, place, said, try_open};
use indelible::Pool;
use rusqlite::ffi;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn filled(path: &Path) {
    let connection = open(path, "main.db");
    connection.execute_batch("CREATE TABLE t(b BLOB); INSERT INTO t VALUES (randomblob(9000))").unwrap();
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    for slot in [0, 4096] {
        file.write_all_at(bytes, slot + at).unwrap();
    }
}

#[test]
fn a_pool_of_a_newer_library_cannot_be_opened_and_the_log_says_why() {
    let (_dir, path) = place();
    filled(&path);
    overwrite(&path, 8, &99_u32.to_le_bytes());
    assert_eq!(code(try_open(&path, "main.db", "")), ffi::SQLITE_CANTOPEN);
    assert!(said(ffi::SQLITE_CANTOPEN, &[path.to_str().unwrap(), "version 99"]));
    overwrite(&path, 8, &2_u32.to_le_bytes());
    assert_eq!(integrity(&open(&path, "main.db")), "ok");
}

#[test]
fn a_damaged_pool_is_sqlite_corrupt_and_the_log_says_what_to_do() {
    let (_dir, path) = place();
    filled(&path);
    overwrite(&path, 16, &[0xa5; 8]);
    assert_eq!(code(try_open(&path, "main.db", "")), ffi::SQLITE_CORRUPT);
    assert!(said(ffi::SQLITE_CORRUPT, &[path.to_str().unwrap(), "damaged"]));
}

#[test]
fn damaged_pages_of_an_object_are_sqlite_corrupt() {
    let (_dir, path) = place();
    filled(&path);
    let pool = Pool::open(&path).unwrap();
    let mut object = pool.attach("main.db").unwrap();
    // After the header: the schema's page, and all others.
    object.as_mut_slice()[4096 + 100..4096 + 12_000].fill(0xa5);
    object.psync().unwrap();
    drop((object, pool));
    let connection = open(&path, "main.db");
    let read = connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(read), ffi::SQLITE_CORRUPT);
    drop(connection);
    // Another database of the pool is as it was.
    let other = open(&path, "other.db");
    other.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    assert_eq!((number(&other, "SELECT x FROM t"), integrity(&other).as_str()), (1, "ok"));
}

#[test]
fn a_plain_database_is_no_pool_and_the_log_names_the_import() {
    let (dir, _) = place();
    let path = dir.path().join("plain.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    assert_eq!(code(try_open(&path, "main.db", "")), ffi::SQLITE_NOTADB);
    assert!(said(ffi::SQLITE_NOTADB, &[path.to_str().unwrap(), "pmo sqlite import"]));
}
