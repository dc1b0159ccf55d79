//! Commits that return before they are durable: `pmo_commit('ticket')`.

use crate::support::{code, integrity, number, open, place, process, reopened, try_open, work};
use indelible::{Pool, PoolOptions};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, Seeded, SimConfig, SimMedium, for_each_crash};
use rusqlite::{Connection, ffi};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;

const READ: &str = "SELECT v FROM n";
const TABLES: &str = "CREATE TABLE n(v); INSERT INTO n VALUES (0); CREATE TABLE t(b BLOB)";

fn wait(connection: &Connection) -> i64 {
    // A statement that is prepared once asks each time.
    let mut wait = connection.prepare_cached("SELECT pmo_wait()").unwrap();
    wait.query_row([], |row| row.get(0)).unwrap()
}

fn mode(connection: &Connection, call: &str) -> String {
    connection.query_row(&format!("SELECT {call}"), [], |row| row.get(0)).unwrap()
}

fn by_ticket(connection: &Connection) {
    assert_eq!(mode(connection, "pmo_commit('ticket')"), "ticket");
}

#[test]
fn s2_26_a_commit_by_ticket_returns_before_the_medium_has_it() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    let path = Path::new("/tickets");
    indelible_sqlite::offer(path, &pool);
    let connection = try_open(path, "main.db", "").unwrap();
    connection.execute_batch(TABLES).unwrap();
    assert_eq!(mode(&connection, "pmo_commit()"), "durable");
    assert_eq!(code(connection.execute_batch("SELECT pmo_commit('soon')")), ffi::SQLITE_ERROR);
    by_ticket(&connection);
    connection.execute_batch("UPDATE n SET v = 1").unwrap();
    let ticket = number(&connection, "SELECT pmo_ticket()");
    assert!(wait(&connection) >= ticket);
    assert_eq!(number(&connection, "SELECT pmo_durable()"), ticket);
    for kind in [OpKind::WriteDurable, OpKind::Barrier] {
        medium.fail_from(kind, 0, Fault::Io);
    }
    connection.execute_batch("UPDATE n SET v = 2").unwrap();
    let failed = connection.query_row("SELECT pmo_wait()", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(failed) & 0xff, ffi::SQLITE_IOERR);
    medium.clear_faults();
    drop((connection, pool));
    indelible_sqlite::withdraw(path);
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
    indelible_sqlite::offer(path, &pool);
    let connection = try_open(path, "main.db", "").unwrap();
    assert_eq!(integrity(&connection), "ok");
    assert!([1, 2].contains(&number(&connection, READ)));
    indelible_sqlite::withdraw(path);
}

#[test]
fn a_rollback_keeps_the_commits_that_are_owed() {
    let (_dir, path) = place();
    let connection = open(&path, "main.db");
    connection.execute_batch(&format!("{TABLES}; PRAGMA cache_size=5")).unwrap();
    by_ticket(&connection);
    for round in 1..=60 {
        connection.execute_batch(&format!("UPDATE n SET v = {round}")).unwrap();
        // Spilled, beyond the file's end, and undone.
        connection
            .execute_batch("BEGIN; UPDATE n SET v = -1; INSERT INTO t VALUES (randomblob(60000)); ROLLBACK")
            .unwrap();
        assert_eq!(number(&connection, READ), round);
        if round % 10 == 0 {
            connection.execute_batch("INSERT INTO t VALUES (randomblob(40000))").unwrap();
            assert_eq!(integrity(&connection), "ok");
        }
    }
    drop(connection);
    let connection = open(&path, "main.db");
    assert_eq!((number(&connection, READ), number(&connection, "SELECT count(*) FROM t")), (60, 6));
    assert_eq!(integrity(&connection), "ok");
}

#[test]
fn connections_see_commits_by_ticket_in_order_and_make_them_durable_with_their_own() {
    let (_dir, path) = place();
    let first = open(&path, "main.db");
    first.execute_batch(TABLES).unwrap();
    by_ticket(&first);
    first.execute_batch("UPDATE n SET v = 1").unwrap();
    // One that came later sees it, and goes on from it.
    let second = open(&path, "main.db");
    assert_eq!(number(&second, READ), 1);
    first.execute_batch("UPDATE n SET v = v + 1").unwrap();
    second.execute_batch("UPDATE n SET v = v + 1").unwrap();
    let pool = Pool::open(&path).unwrap();
    let shown = pool.attach_snapshot_anywhere("main.db", b"").unwrap();
    let plain = shown.as_slice()[4096..].to_vec();
    let file = path.with_extension("db");
    std::fs::write(&file, plain).unwrap();
    assert_eq!(number(&Connection::open(&file).unwrap(), READ), 3, "a durable commit stands for all before");
    // While a transaction spills, readers see the last commit, by ticket or not.
    first.execute_batch("UPDATE n SET v = v + 1; PRAGMA cache_size=5; BEGIN; UPDATE n SET v = -1").unwrap();
    first.execute_batch("INSERT INTO t VALUES (zeroblob(100000))").unwrap();
    assert_eq!(number(&second, READ), 4);
    first.execute_batch("ROLLBACK").unwrap();
    assert_eq!((number(&first, READ), number(&second, READ)), (4, 4));
}

#[test]
fn threads_with_a_database_each_wait_for_commits_of_one_pool() {
    const DATABASES: usize = 6;
    let (_dir, path) = place();
    let connections: Vec<Connection> = (0..DATABASES)
        .map(|at| {
            let connection = open(&path, &format!("{at}.db"));
            connection.execute_batch(TABLES).unwrap();
            by_ticket(&connection);
            connection
        })
        .collect();
    // A wait enters its database while the payer puts off those in transactions.
    std::thread::scope(|scope| {
        for connection in connections {
            scope.spawn(move || {
                for round in 1..=300 {
                    connection.execute_batch("UPDATE n SET v = v + 1; UPDATE n SET v = v + 1").unwrap();
                    wait(&connection);
                    assert_eq!(number(&connection, READ), 2 * round);
                }
            });
        }
    });
}

#[test]
fn s2_26_a_power_cut_leaves_a_prefix_of_the_commits_by_ticket() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let path = Path::new("/ticket-cuts");
    let record = |medium: &SimMedium| {
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        indelible_sqlite::offer(path, &pool);
        let connection = try_open(path, "main.db", "").unwrap();
        connection.execute_batch(&format!("BEGIN; {TABLES}; COMMIT")).unwrap();
        medium.mark(1);
        by_ticket(&connection);
        for round in 1..=12 {
            let script =
                format!("BEGIN; INSERT INTO t VALUES (randomblob(9000)); UPDATE n SET v = {round}; COMMIT");
            connection.execute_batch(&script).unwrap();
            if round % 3 == 0 {
                wait(&connection);
                medium.mark(1 + round);
            }
        }
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
    };
    let judge = |image: &CrashImage| {
        let done = image.last_mark().unwrap_or(0) as i64;
        if done == 0 {
            return Ok(());
        }
        let (state, sound, rows) = reopened(path, image, |connection| {
            (number(connection, READ), integrity(connection), number(connection, "SELECT count(*) FROM t"))
        })?;
        match rows == state && sound == "ok" && state >= done - 1 {
            true => Ok(()),
            false => Err(format!("after mark {done}: state {state}, {rows} rows, {sound}")),
        }
    };
    let limits = Limits { exhaustive: 8, singles: 2, random: 2, points: 40, seed: 55 };
    let report = for_each_crash(&medium, record, judge, &limits).unwrap();
    assert!(report.distinct > 15, "{report:?}");
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn commits() {
    let Some(dir) = work() else { return };
    let mut random = Seeded::new(std::env::var("SEED").unwrap().parse().unwrap());
    let connection = open(&dir.join("app.pmo"), "main.db");
    by_ticket(&connection);
    connection.execute_batch("PRAGMA cache_size=10").unwrap();
    loop {
        let bytes = random.usize(1..30_000);
        let script = format!("BEGIN; INSERT INTO t VALUES (randomblob({bytes})); UPDATE n SET v = v + 1");
        connection.execute_batch(&script).unwrap();
        let end = if random.usize(0..5) == 0 { "ROLLBACK" } else { "COMMIT" };
        connection.execute_batch(end).unwrap();
        if random.usize(0..4) == 0 {
            let now = number(&connection, READ);
            wait(&connection);
            // The first transactions may all have been rolled back.
            if now > 0 {
                println!("DURABLE {now}");
                std::io::stdout().flush().unwrap();
            }
        }
    }
}

#[test]
fn s2_26_killed_at_any_moment_no_commit_is_lost_whose_ticket_was_durable() {
    let kills = std::env::var("KILLS").map_or(10, |text| text.parse().unwrap());
    let (dir, path) = place();
    open(&path, "main.db").execute_batch(TABLES).unwrap();
    let mut random = Seeded::new(56);
    for kill in 0..kills {
        let mut child =
            process("tickets::commits", dir.path()).env("SEED", kill.to_string()).spawn().unwrap();
        let (last, mut said) = (random.usize(0..8), 0);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("DURABLE ").map(|(_, number)| number.trim().parse::<i64>().unwrap())
        });
        for (at, number) in numbers.enumerate() {
            said = number;
            if at == last {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let connection = open(&path, "main.db");
        let (state, rows) = (number(&connection, READ), number(&connection, "SELECT count(*) FROM t"));
        assert!(said > 0 && state >= said && rows == state, "kill {kill}: {said}, {state}, {rows}");
        assert_eq!(integrity(&connection), "ok", "kill {kill}");
        connection.execute_batch("UPDATE n SET v = 0; DELETE FROM t").unwrap();
    }
}
