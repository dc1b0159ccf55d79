//! A writer that is killed at any moment beside a reader: acknowledged transactions are there, as
//! whole transactions.
//!
//! `KILLS=1000` makes it a campaign.

use crate::support::{integrity, number, open, place, process, work};
use indelible_testing::Seeded;
use rusqlite::Connection;
use std::io::{BufRead, BufReader, Write};

const MODES: [&str; 4] = ["memory", "delete", "truncate", "persist"];
const SYNCHRONOUS: [&str; 3] = ["off", "normal", "full"];

#[test]
#[ignore = "run by the other test as a process of its own"]
fn writes() {
    let Some(dir) = work() else { return };
    let mut random = Seeded::new(std::env::var("SEED").unwrap().parse().unwrap());
    let connection = open(&dir.join("app.pmo"), "main.db");
    let mode = MODES[random.usize(0..MODES.len())];
    let synchronous = SYNCHRONOUS[random.usize(0..SYNCHRONOUS.len())];
    let attach = format!("ATTACH '{}' AS other", crate::support::uri(&dir.join("app.pmo"), "other.db", ""));
    let set = format!(
        "PRAGMA cache_size=10; PRAGMA journal_mode={mode}; PRAGMA synchronous={synchronous}; {attach}"
    );
    connection.execute_batch(&set).unwrap();
    loop {
        let (rows, choice) = (random.usize(1..60), random.usize(0..10));
        let mut script = String::from("BEGIN IMMEDIATE;");
        for _ in 0..rows {
            script.push_str(&format!("INSERT INTO t(b) VALUES (randomblob({}));", random.usize(1..1500)));
        }
        if choice < 3 {
            script.push_str(
                "SAVEPOINT a; DELETE FROM t WHERE i % 3 = 0; INSERT INTO t(b) SELECT randomblob(900) FROM t LIMIT 50;
                 ROLLBACK TO a; RELEASE a;",
            );
        }
        if choice > 6 {
            script.push_str("DELETE FROM t WHERE i NOT IN (SELECT i FROM t ORDER BY i DESC LIMIT 500);");
        }
        script.push_str(
            "UPDATE s SET n = n + 1, rows = (SELECT count(*) FROM t); UPDATE other.s SET n = n + 1; COMMIT",
        );
        connection.execute_batch(&script).unwrap();
        println!("COMMITTED {}", number(&connection, "SELECT n FROM s"));
        std::io::stdout().flush().unwrap();
        match choice {
            5 => connection.execute_batch("VACUUM").unwrap(),
            6 => connection.execute_batch("BEGIN; DELETE FROM t; ROLLBACK").unwrap(),
            _ => {}
        }
    }
}

/// A reader beside the writer sees a whole transaction, and none before `least`.
fn look(reader: &Connection, least: i64) -> i64 {
    let query = "SELECT n, rows, (SELECT count(*) FROM t) FROM s";
    let state = reader.query_row(query, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
    let [n, stated, rows]: [i64; 3] = state.unwrap();
    assert!(n >= least && stated == rows, "a reader sees {n} after {least}, {rows} rows of {stated}");
    n
}

#[test]
fn s2_26_killed_at_any_moment_no_acknowledged_transaction_is_lost_or_torn() {
    let kills = std::env::var("KILLS").map_or(10, |text| text.parse().unwrap());
    let (dir, path) = place();
    let tables = "CREATE TABLE s(n INTEGER, rows INTEGER); INSERT INTO s VALUES (0, 0)";
    open(&path, "other.db").execute_batch(tables).unwrap();
    let main = open(&path, "main.db");
    main.execute_batch(&format!("{tables}; CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")).unwrap();
    drop(main);
    let reader = open(&path, "main.db");
    let mut random = Seeded::new(55);
    let (mut all, mut seen) = (0, 0);
    for kill in 0..kills {
        let last = random.usize(0..12);
        let mut child = process("kills::writes", dir.path()).env("SEED", kill.to_string()).spawn().unwrap();
        let mut said = 0;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("COMMITTED ").map(|(_, number)| number.trim().parse::<i64>().unwrap())
        });
        // Killed wherever it is by then; what it said until its death counts.
        for (at, number) in numbers.enumerate() {
            said = number;
            seen = look(&reader, seen.max(said));
            if at == last {
                child.kill().unwrap();
            }
        }
        seen = look(&reader, seen);
        child.kill().unwrap();
        child.wait().unwrap();
        let (main, other) = (open(&path, "main.db"), open(&path, "other.db"));
        assert_eq!((integrity(&main).as_str(), integrity(&other).as_str()), ("ok", "ok"), "kill {kill}");
        let n = number(&main, "SELECT n FROM s");
        assert!(said > 0 && (n == said || n == said + 1), "kill {kill}: {said} acknowledged, {n} there");
        assert_eq!(n, number(&other, "SELECT n FROM s"), "kill {kill}: half a transaction");
        let rows = number(&main, "SELECT count(*) FROM t");
        assert_eq!(rows, number(&main, "SELECT rows FROM s"), "kill {kill}");
        all = n;
    }
    assert!(all >= kills, "{all} transactions");
}
