//! One process: the object's bytes, rollback, SQLite's errors.

use crate::support::{code, integrity, number, open, open_read_only, place, process, try_open, work};
use indelible::{Pool, PoolOptions};
use indelible_testing::{Fault, OpKind, SimConfig, SimMedium};
use rusqlite::{Connection, ffi};
use std::sync::Arc;

const FILL: &str = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 500)
    INSERT INTO t(b) SELECT randomblob(1000) FROM n";

fn filled(path: &std::path::Path) -> Connection {
    let connection = open(path, "main.db");
    connection.execute_batch("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)").unwrap();
    connection.execute_batch(FILL).unwrap();
    connection
}

#[test]
fn s2_26_the_object_holds_the_file_and_no_other_file_is_left() {
    let (dir, path) = place();
    let connection = filled(&path);
    connection.execute_batch("DELETE FROM t WHERE i % 2 = 0; VACUUM").unwrap();
    drop(connection);
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["app.pmo"]);
    let pool = Pool::open(&path).unwrap();
    let object = pool.attach_read("main.db").unwrap();
    let plain = dir.path().join("plain.db");
    std::fs::write(&plain, &object.as_slice()[4096..]).unwrap();
    drop((object, pool));
    for connection in [Connection::open(&plain).unwrap(), open(&path, "main.db")] {
        assert_eq!(
            (integrity(&connection).as_str(), number(&connection, "SELECT count(*) FROM t")),
            ("ok", 250)
        );
    }
}

#[test]
fn a_database_outgrows_its_pool_unless_the_size_is_stated() {
    let (_dir, path) = place();
    drop(open(&path, "main.db"));
    let before = std::fs::metadata(&path).unwrap().len();
    let stated = open(&path, "main.db");
    stated.execute_batch("CREATE TABLE t(b BLOB)").unwrap();
    let fill = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 300)
        INSERT INTO t SELECT randomblob(300000) FROM n";
    assert_eq!(code(stated.execute_batch(fill)), ffi::SQLITE_FULL);
    drop(stated);
    let connection = Connection::open(format!("file:{}?vfs=pmo", path.display())).unwrap();
    connection.execute_batch(fill).unwrap();
    connection.execute_batch("UPDATE t SET b = zeroblob(300000)").unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > before);
    assert_eq!((integrity(&connection).as_str(), number(&connection, "SELECT count(*) FROM t")), ("ok", 300));
}

#[test]
fn every_rollback_mode_and_setting_undoes_and_commits() {
    let (_dir, path) = place();
    drop(filled(&path));
    let mut rows = 500;
    for mode in ["delete", "truncate", "persist", "memory", "off"] {
        for synchronous in ["off", "normal", "full", "extra"] {
            for locking in ["normal", "exclusive"] {
                let connection = open(&path, "main.db");
                let set = format!(
                    "PRAGMA cache_size=5; PRAGMA journal_mode={mode}; PRAGMA synchronous={synchronous};
                     PRAGMA locking_mode={locking}; BEGIN; DELETE FROM t WHERE i % 2 = 0; {FILL};"
                );
                let what = format!("{mode} {synchronous} {locking}");
                connection.execute_batch(&set).unwrap();
                // SQLite says of the mode "off" that what a rollback leaves is undefined.
                if mode != "off" {
                    connection.execute_batch("ROLLBACK").unwrap();
                    assert_eq!(number(&connection, "SELECT count(*) FROM t"), rows, "{what}");
                    assert_eq!(integrity(&connection), "ok", "{what}");
                }
                drop(connection);
                let connection = open(&path, "main.db");
                connection.execute_batch(&format!("PRAGMA synchronous={synchronous}")).unwrap();
                let _ = connection.execute_batch(&format!("PRAGMA journal_mode={mode}"));
                let one = format!("{mode}/{synchronous}/{locking}");
                connection.execute_batch(&format!("INSERT INTO t(b) VALUES ('{one}')")).unwrap();
                rows += 1;
                // A commit is durable without a detach.
                let pool = Pool::open(&path).unwrap();
                let shown = pool.attach_snapshot_anywhere("main.db", b"").unwrap();
                assert!(shown.as_slice().windows(one.len()).any(|bytes| bytes == one.as_bytes()), "{what}");
                assert_eq!(number(&connection, "SELECT count(*) FROM t"), rows, "{what}");
                assert_eq!(integrity(&connection), "ok", "{what}");
            }
        }
    }
}

#[test]
fn wal_is_answered_with_the_mode_that_is() {
    let (_dir, path) = place();
    let connection = filled(&path);
    let mode = |pragma: &str| -> String { connection.query_row(pragma, [], |row| row.get(0)).unwrap() };
    assert_eq!(mode("PRAGMA journal_mode=WAL"), "delete");
    assert_eq!(mode("PRAGMA journal_mode"), "delete");
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 500);
}

#[test]
fn a_full_pool_is_sqlite_full_and_the_transaction_is_undone() {
    let (_dir, path) = place();
    let connection = try_open(&path, "main.db", "&size=4M").unwrap();
    connection.execute_batch("CREATE TABLE t(b BLOB); INSERT INTO t VALUES (randomblob(1000))").unwrap();
    let rows = |connection: &Connection| number(connection, "SELECT count(*) FROM t");
    let fills = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 8000)
        INSERT INTO t SELECT randomblob(1000) FROM n";
    assert_eq!(code(connection.execute_batch(fills)), ffi::SQLITE_FULL);
    assert_eq!((rows(&connection), integrity(&connection).as_str()), (1, "ok"));
    connection.execute_batch("INSERT INTO t VALUES (randomblob(1000))").unwrap();
    drop(connection);
    let connection = open(&path, "main.db");
    assert_eq!((rows(&connection), integrity(&connection).as_str()), (2, "ok"));
}

#[test]
fn an_object_or_a_file_that_holds_no_database_is_refused() {
    let (dir, path) = place();
    let pool = Pool::format(&path, 16 << 20).unwrap();
    pool.create("small", 64).unwrap();
    let mut other = pool.create_attached("other", 10_000).unwrap();
    other.as_mut_slice()[..5].copy_from_slice(b"hello");
    other.psync().unwrap();
    drop(other);
    let read = |object: &str| {
        let connection = try_open(&path, object, "").unwrap();
        code(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)))
    };
    assert_eq!((read("small"), read("other")), (ffi::SQLITE_NOTADB, ffi::SQLITE_NOTADB));
    // A header whose length is beyond the object.
    drop(try_open(&path, "cut.db", "").unwrap().execute_batch("CREATE TABLE t(x)"));
    let mut cut = pool.attach("cut.db").unwrap();
    cut.as_mut_slice()[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    cut.psync().unwrap();
    drop(cut);
    assert_eq!(read("cut.db"), ffi::SQLITE_CORRUPT);
    drop(pool);
    assert_eq!(code(try_open(&path, "main.db", "&size=much")), ffi::SQLITE_CANTOPEN);
    assert_eq!(code(open_read_only(&dir.path().join("absent"), "main.db")), ffi::SQLITE_CANTOPEN);
    assert_eq!(code(open_read_only(&path, "absent.db")), ffi::SQLITE_CANTOPEN);
    std::fs::write(dir.path().join("text"), [b'x'; 10_000]).unwrap();
    assert_eq!(code(try_open(&dir.path().join("text"), "main.db", "")), ffi::SQLITE_NOTADB);
}

#[test]
fn the_page_size_is_known_before_the_first_statement() {
    let (_dir, path) = place();
    let connection = open(&path, "main.db");
    connection.execute_batch("PRAGMA page_size=512; CREATE TABLE t(x)").unwrap();
    for _ in 0..2 {
        let another = try_open(&path, "main.db", "").unwrap();
        assert_eq!(number(&another, "PRAGMA page_size"), 512);
    }
    drop(connection);
    assert_eq!(number(&open(&path, "main.db"), "PRAGMA page_size"), 512);
}

#[test]
fn vacuum_makes_a_database_of_another_object_and_writes_over_none() {
    let (_dir, path) = place();
    let connection = filled(&path);
    let vacuum = format!("VACUUM INTO '{}'", crate::support::uri(&path, "copy.db", ""));
    connection.execute_batch(&vacuum).unwrap();
    let refused = connection.execute_batch(&vacuum).unwrap_err().to_string();
    assert!(refused.contains("output file already exists"), "{refused}");
    assert_eq!(number(&open(&path, "copy.db"), "SELECT count(*) FROM t"), 500);
}

#[test]
fn a_connection_without_locks_reads_the_state_of_its_opening_and_writes_nothing() {
    let (_dir, path) = place();
    let writer = filled(&path);
    for more in ["&nolock=1", "&immutable=on"] {
        let reader = try_open(&path, "main.db", more).unwrap();
        let rows = number(&writer, "SELECT count(*) FROM t");
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), rows, "{more}");
        writer.execute_batch("DELETE FROM t WHERE i % 3 = 0").unwrap();
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), rows, "{more}");
        assert_eq!(code(reader.execute_batch("DELETE FROM t")) & 0xff, ffi::SQLITE_READONLY, "{more}");
        assert_eq!(integrity(&reader), "ok", "{more}");
    }
}

#[test]
fn a_database_that_is_opened_for_reading_is_not_written() {
    let (_dir, path) = place();
    drop(filled(&path));
    let reader = open_read_only(&path, "main.db").unwrap();
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 500);
    assert_eq!(code(reader.execute_batch("DELETE FROM t")) & 0xff, ffi::SQLITE_READONLY);
}

#[test]
fn pages_that_are_read_where_they_lie_change_under_no_statement() {
    let (_dir, path) = place();
    let connection = filled(&path);
    let mut all = connection.prepare("SELECT i, length(b) FROM t ORDER BY i").unwrap();
    let mut rows = all.query([]).unwrap();
    let mut seen = 0;
    while let Some(row) = rows.next().unwrap() {
        assert_eq!(row.get::<_, i64>(1).unwrap(), 1000);
        seen += 1;
        if seen == 250 {
            connection.execute_batch("UPDATE t SET b = zeroblob(1000) WHERE i < 200").unwrap();
        }
    }
    assert_eq!(seen, 500);
    assert_eq!(number(&connection, "SELECT count(*) FROM t WHERE b = zeroblob(1000)"), 199);
}

#[test]
fn a_failing_medium_fails_the_commit_and_the_next_open_recovers() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    indelible_sqlite::offer("/failing", &pool);
    let path = std::path::Path::new("/failing");
    let connection = try_open(path, "main.db", "").unwrap();
    connection.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    for kind in [OpKind::WriteDurable, OpKind::Barrier] {
        medium.fail_from(kind, 0, Fault::Io);
    }
    assert_eq!(code(connection.execute_batch("INSERT INTO t VALUES (2)")), ffi::SQLITE_IOERR_FSYNC);
    assert_eq!(code(connection.execute_batch("INSERT INTO t VALUES (3)")) & 0xff, ffi::SQLITE_IOERR);
    medium.clear_faults();
    drop((connection, pool));
    indelible_sqlite::withdraw("/failing");
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
    indelible_sqlite::offer("/failing", &pool);
    let connection = try_open(path, "main.db", "").unwrap();
    assert_eq!(integrity(&connection), "ok");
    assert!([1, 3].contains(&number(&connection, "SELECT sum(x) FROM t")), "the commit happened or did not");
    indelible_sqlite::withdraw("/failing");
}

#[test]
#[ignore = "run by the other test as a process of its own"]
#[allow(unsafe_code)]
fn forks() {
    let Some(dir) = work() else { return };
    let connection = filled(&dir.join("app.pmo"));
    // SAFETY: the child makes calls of SQLite on a connection that no other thread uses, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let refused = connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
            let code = refused.err().and_then(|error| error.sqlite_error().map(|error| error.extended_code));
            // One of its own reads beside the parent's.
            let own = try_open(&dir.join("app.pmo"), "main.db", "")
                .and_then(|own| own.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)));
            let as_told = code == Some(ffi::SQLITE_MISUSE) && own == Ok(500);
            // SAFETY: ends the child without the parent's destructors.
            unsafe { libc::_exit(if as_told { 0 } else { 1 }) };
        }
        child => {
            let mut status = -1;
            // SAFETY: a place for the status of this process's child.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child was not refused");
        }
    }
    connection.execute_batch(FILL).unwrap();
    println!("ROWS {}", number(&connection, "SELECT count(*) FROM t"));
}

#[test]
fn a_forked_child_is_refused_and_its_parent_goes_on() {
    let (dir, path) = place();
    let output = process("one_process::forks", dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("ROWS 1000"), "{said}");
    assert_eq!(number(&open(&path, "main.db"), "SELECT count(*) FROM t"), 1000);
}
