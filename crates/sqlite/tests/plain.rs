//! Databases to and from plain files.

use crate::support::{integrity, number, open, place};
use indelible::Pool;
use rusqlite::Connection;

#[test]
fn s2_26_a_database_is_exported_beside_its_writer_and_imported() {
    let (dir, path) = place();
    let connection = open(&path, "main.db");
    connection.execute_batch("CREATE TABLE t(b BLOB); INSERT INTO t VALUES (randomblob(5000))").unwrap();
    connection
        .execute_batch("PRAGMA cache_size=5; BEGIN; INSERT INTO t VALUES (zeroblob(200000)); DELETE FROM t")
        .unwrap();
    let pool = Pool::open(&path).unwrap();
    let plain = dir.path().join("plain.db");
    let bytes = indelible_sqlite::export(&pool, "main.db", &plain).unwrap();
    assert_eq!(bytes, std::fs::metadata(&plain).unwrap().len());
    connection.execute_batch("COMMIT").unwrap();
    let copy = Connection::open(&plain).unwrap();
    assert_eq!((number(&copy, "SELECT count(*) FROM t"), integrity(&copy).as_str()), (1, "ok"));
    // A database with a WAL file is one without, once it is imported.
    let mode: String = copy.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    copy.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    let refused = indelible_sqlite::import(&plain, &pool, "copy.db").unwrap_err();
    assert!(refused.to_string().contains("has changes that the database lacks"), "{refused}");
    drop(copy);
    indelible_sqlite::import(&plain, &pool, "copy.db").unwrap();
    assert!(indelible_sqlite::import(&plain, &pool, "copy.db").unwrap_err().to_string().contains("exists"));
    assert!(pool.stat("copy.db~unfinished import").is_err());
    let imported = open(&path, "copy.db");
    imported.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!((number(&imported, "SELECT count(*) FROM t"), integrity(&imported).as_str()), (3, "ok"));
    let small = Pool::format(dir.path().join("small.pmo"), 4 << 20).unwrap();
    let large = Connection::open(dir.path().join("large.db")).unwrap();
    large.execute_batch("CREATE TABLE t(b); INSERT INTO t VALUES (zeroblob(6000000))").unwrap();
    drop(large);
    let full = indelible_sqlite::import(&dir.path().join("large.db"), &small, "main.db").unwrap_err();
    assert!(matches!(full, indelible_sqlite::CopyError::Pool(_)), "{full}");
    assert_eq!(small.list().count(), 0);
}
