//! Readers beside a writer, and writers by turns, in a process and across processes.

use crate::support::{code, integrity, number, open, open_read_only, place, process, try_open, work};
use indelible::Pool;
use rusqlite::{Connection, ffi};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const READ: &str = "SELECT v FROM n";

fn counter(path: &Path) -> Connection {
    let connection = open(path, "main.db");
    connection.execute_batch("CREATE TABLE n(v); INSERT INTO n VALUES (0); CREATE TABLE t(b BLOB)").unwrap();
    connection
}

#[test]
fn s2_26_a_reader_keeps_its_state_beside_a_writer_and_begins_anew_to_write() {
    let (_dir, path) = place();
    let writer = counter(&path);
    let reader = open(&path, "main.db");
    reader.busy_timeout(Duration::ZERO).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(number(&reader, READ), 0);
    for _ in 0..3 {
        writer.execute_batch("UPDATE n SET v = v + 1").unwrap();
        assert_eq!(number(&reader, READ), 0);
    }
    assert_eq!(code(reader.execute_batch("UPDATE n SET v = 10")), ffi::SQLITE_BUSY_SNAPSHOT);
    reader.execute_batch("ROLLBACK").unwrap();
    // It has seen the newest state, and keeps another writer out.
    reader.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(number(&reader, READ), 3);
    writer.busy_timeout(Duration::ZERO).unwrap();
    assert_eq!(code(writer.execute_batch("UPDATE n SET v = 20")), ffi::SQLITE_BUSY);
    // Stores that are not committed are seen by their own connection alone, spilled ones, too.
    reader
        .execute_batch("PRAGMA cache_size=5; UPDATE n SET v = 10; INSERT INTO t VALUES (zeroblob(200000))")
        .unwrap();
    assert_eq!((number(&writer, READ), number(&reader, READ)), (3, 10));
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(number(&writer, READ), 10);
    assert_eq!(integrity(&writer), "ok");
}

fn memory_of(path: &Path) -> usize {
    crate::support::memory_of(&Pool::open(path).unwrap())
}

#[test]
fn the_memory_of_a_lease_goes_with_the_last_process_that_has_the_database() {
    let (dir, path) = place();
    let connection = counter(&path);
    let second = open(&path, "main.db");
    assert_eq!(memory_of(&path), 1);
    drop(connection);
    assert_eq!(memory_of(&path), 1, "a connection has it");
    let lease = Pool::open(&path).unwrap().attach_shared("main.db.lease").unwrap();
    drop(second);
    assert_eq!(memory_of(&path), 1, "another user has it");
    lease.detach();
    let connection = open(&path, "main.db");
    connection.execute_batch("UPDATE n SET v = v + 1").unwrap();
    drop(connection);
    assert_eq!((memory_of(&path), dir.path().exists()), (0, true));
}

#[test]
fn pages_that_are_lent_keep_a_writer_waiting_and_no_state_is_mixed() {
    let (_dir, path) = place();
    let reader = counter(&path);
    reader
        .execute_batch(
            "INSERT INTO t SELECT zeroblob(3000) FROM sqlite_schema a, sqlite_schema b, sqlite_schema c",
        )
        .unwrap();
    reader.execute_batch("INSERT INTO t SELECT b FROM t; INSERT INTO t SELECT b FROM t").unwrap();
    let rows_before = number(&reader, "SELECT count(*) FROM t");
    let mut all = reader.prepare("SELECT b FROM t").unwrap();
    let mut rows = all.query([]).unwrap();
    rows.next().unwrap();
    let writer = open(&path, "main.db");
    writer.busy_timeout(Duration::ZERO).unwrap();
    let first = writer.execute_batch("UPDATE t SET b = 'other'");
    assert!(first.is_ok() || code(first) == ffi::SQLITE_BUSY);
    let mut seen = 1;
    while let Some(row) = rows.next().unwrap() {
        assert_eq!(row.get::<_, Vec<u8>>(0).unwrap().len(), 3000);
        seen += 1;
    }
    assert_eq!(seen, rows_before);
    drop(rows);
    writer.execute_batch("UPDATE t SET b = 'other'").unwrap();
    assert_eq!(number(&reader, "SELECT count(*) FROM t WHERE b = 'other'"), rows_before);
}

#[test]
fn a_reader_beside_a_writer_finds_room_for_its_snapshot_in_a_pool_that_grows() {
    let (_dir, path) = place();
    drop(Pool::format(&path, 8 << 20).unwrap());
    let writer = try_open(&path, "main.db", "").unwrap();
    writer.execute_batch("CREATE TABLE t(b BLOB); INSERT INTO t VALUES (randomblob(4500000))").unwrap();
    let reader = try_open(&path, "main.db", "").unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 2);
}

#[test]
fn a_pool_without_room_for_a_snapshot_is_read_and_exported_while_it_has_no_writer() {
    let (dir, path) = place();
    let writer = try_open(&path, "main.db", "&size=8M").unwrap();
    writer.execute_batch("CREATE TABLE t(b BLOB); INSERT INTO t VALUES (randomblob(4500000))").unwrap();
    let reader = open_read_only(&path, "main.db").unwrap();
    reader.busy_timeout(Duration::ZERO).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)").unwrap();
    let read = reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(read), ffi::SQLITE_FULL);
    writer.execute_batch("COMMIT").unwrap();
    drop((writer, reader));
    let reader = open_read_only(&path, "main.db").unwrap();
    assert_eq!((number(&reader, "SELECT count(*) FROM t"), integrity(&reader).as_str()), (2, "ok"));
    let pool = Pool::open(&path).unwrap();
    let plain = dir.path().join("plain.db");
    indelible_sqlite::export(&pool, "main.db", &plain).unwrap();
    assert_eq!(integrity(&Connection::open(plain).unwrap()), "ok");
    // The reader keeps writers out for as long as its transaction lasts.
    let writer = try_open(&path, "main.db", "&size=8M").unwrap();
    writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(number(&writer, "SELECT count(*) FROM t"), 3);
}

fn add(connection: &Connection, times: usize) {
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    for _ in 0..times {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let now = number(connection, READ);
        connection.execute_batch(&format!("UPDATE n SET v = {}; COMMIT", now + 1)).unwrap();
    }
}

#[test]
fn threads_write_by_turns() {
    let (_dir, path) = place();
    let connection = counter(&path);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| add(&open(&path, "main.db"), 50));
        }
    });
    assert_eq!((number(&connection, READ), integrity(&connection).as_str()), (200, "ok"));
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn adds() {
    let Some(dir) = work() else { return };
    add(&open(&dir.join("app.pmo"), "main.db"), 100);
    println!("DONE");
}

#[test]
fn s2_26_processes_write_by_turns_and_readers_see_each_state_in_order() {
    let (dir, path) = place();
    let connection = counter(&path);
    let mut children: Vec<Child> =
        (0..3).map(|_| process("beside::adds", dir.path()).spawn().unwrap()).collect();
    let mut last = 0;
    // The last child ends when it has written, and the loop with it.
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let now = number(&connection, READ);
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!((number(&connection, READ), integrity(&connection).as_str()), (300, "ok"));
    // The writer that was here first gets the object back.
    add(&connection, 1);
    assert_eq!(number(&open(&path, "main.db"), READ), 301);
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn adds_when_told() {
    let Some(dir) = work() else { return };
    let connection = open(&dir.join("app.pmo"), "main.db");
    for _ in std::io::stdin().lines() {
        add(&connection, 1);
        println!("ADDED");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn the_object_goes_from_one_idle_process_to_the_other_and_back() {
    let (dir, path) = place();
    let connection = counter(&path);
    let mut child = process("beside::adds_when_told", dir.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut tell = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for round in 1..=4 {
        tell.write_all(b"add\n").unwrap();
        assert!(lines.any(|line| line.unwrap().contains("ADDED")));
        assert_eq!(number(&connection, READ), 2 * round - 1);
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        connection.execute_batch("UPDATE n SET v = v + 1").unwrap();
    }
    drop(tell);
    assert!(child.wait().unwrap().success());
    assert_eq!((number(&connection, READ), integrity(&connection).as_str()), (8, "ok"));
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn holds() {
    let Some(dir) = work() else { return };
    let connection = open(&dir.join("app.pmo"), "main.db");
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    // Spilled: the stores are in the object's memory.
    let begun =
        "PRAGMA cache_size=5; BEGIN IMMEDIATE; UPDATE n SET v = 7; INSERT INTO t VALUES (zeroblob(300000))";
    connection.execute_batch(begun).unwrap();
    println!("HOLDS");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_killed_writer_beside_readers_leaves_the_last_commit() {
    let (dir, path) = place();
    let connection = counter(&path);
    connection.busy_timeout(Duration::ZERO).unwrap();
    let reader = open(&path, "main.db");
    let mut child = process("beside::holds", dir.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("HOLDS")));
    assert_eq!(number(&reader, READ), 0);
    assert_eq!(code(connection.execute_batch("UPDATE n SET v = 1")), ffi::SQLITE_BUSY);
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(number(&reader, READ), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection.execute_batch("UPDATE n SET v = v + 1").unwrap();
    assert_eq!((number(&reader, READ), number(&connection, READ)), (0, 1));
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!((number(&reader, READ), integrity(&reader).as_str()), (1, "ok"));
}

#[test]
fn a_connection_that_closes_in_its_transaction_undoes_it() {
    let (_dir, path) = place();
    let connection = counter(&path);
    let other = try_open(&path, "main.db", "").unwrap();
    other
        .execute_batch(
            "PRAGMA cache_size=5; BEGIN; UPDATE n SET v = 9; INSERT INTO t VALUES (zeroblob(300000))",
        )
        .unwrap();
    drop(other);
    assert_eq!((number(&connection, READ), integrity(&connection).as_str()), (0, "ok"));
    add(&connection, 1);
}

/// A holder that has just attached the object has not seen what was asked of the one before.
#[test]
fn a_writer_asks_again_while_the_object_stays_attached_elsewhere() {
    let (_dir, path) = place();
    drop(counter(&path));
    let pool = Pool::open(&path).unwrap();
    let lease = pool.attach_shared("main.db.lease").unwrap();
    let asked = || lease.word(0).unwrap().load(Ordering::Acquire);
    let _held = pool.attach("main.db").unwrap();
    let asks_again = |_| {
        let before = asked();
        let connection = open(&path, "main.db");
        connection.busy_timeout(Duration::ZERO).unwrap();
        assert_eq!(code(connection.execute_batch("BEGIN IMMEDIATE")) & 0xff, ffi::SQLITE_BUSY);
        asked() > before + 1
    };
    assert!((0..10).any(asks_again));
    lease.detach();
    pool.forget_shared("main.db.lease", b"").unwrap();
}

/// While the holder of the object is asked for it, a thread of it has the database, too: the last
/// connection waits for that thread.
#[test]
fn the_memory_of_a_lease_goes_with_a_database_that_is_closed_while_it_is_asked_for() {
    let (_dir, path) = place();
    drop(counter(&path));
    let pool = Pool::open(&path).unwrap();
    for round in 0..50 {
        let connection = open(&path, "main.db");
        connection.execute_batch("UPDATE n SET v = v + 1").unwrap();
        let lease = pool.attach_shared("main.db.lease").unwrap();
        let word = lease.word(0).unwrap();
        word.fetch_add(1, Ordering::AcqRel);
        word.wake(u32::MAX).unwrap();
        lease.detach();
        std::thread::yield_now();
        drop(connection);
        let begin = Instant::now();
        while memory_of(&path) > 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "round {round}");
        }
    }
}
