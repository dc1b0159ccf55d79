//! ATTACHed databases of one pool: their transaction is one psync.

use crate::support::{integrity, number, open, place, try_open, uri};
use indelible::{Pool, PoolOptions};
use indelible_testing::{CrashImage, Limits, SimConfig, SimMedium, for_each_crash};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS n(v); INSERT INTO n VALUES (0)";

fn pair(path: &Path, mode: &str) -> Connection {
    let main = try_open(path, "a.db", "").unwrap();
    let attach = format!("PRAGMA journal_mode={mode}; ATTACH '{}' AS b", uri(path, "b.db", ""));
    main.execute_batch(&attach).unwrap();
    main
}

fn psyncs(pool: &Pool) -> u64 {
    ["a.db", "b.db"].iter().map(|name| pool.stat(name).unwrap().psyncs).sum()
}

#[test]
fn a_transaction_over_databases_of_a_pool_is_all_or_nothing_wherever_the_power_is_cut() {
    for mode in ["memory", "delete", "persist"] {
        let medium = SimMedium::new(4 << 20, SimConfig::default());
        // Super-journals are files there.
        let (_dir, path) = place();
        let path = path.as_path();
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        indelible_sqlite::offer(path, &pool);
        for name in ["a.db", "b.db"] {
            try_open(path, name, "").unwrap().execute_batch(TABLE).unwrap();
        }
        drop(pool);
        indelible_sqlite::withdraw(path);
        medium.settle();
        let record = |medium: &SimMedium| {
            let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
            indelible_sqlite::offer(path, &pool);
            let connection = pair(path, mode);
            for round in 1..=4 {
                let begin = if round % 2 == 0 { "BEGIN IMMEDIATE" } else { "BEGIN" };
                let script =
                    format!("{begin}; UPDATE main.n SET v = {round}; UPDATE b.n SET v = {round}; COMMIT");
                connection.execute_batch(&script).unwrap();
                medium.mark(round);
            }
            drop((connection, pool));
            indelible_sqlite::withdraw(path);
        };
        let judge = |image: &CrashImage| {
            let pool =
                PoolOptions::new().on_device(Arc::new(image.medium()), false).map_err(|e| e.to_string())?;
            indelible_sqlite::offer(path, &pool);
            let connection = pair(path, mode);
            let (a, b) =
                (number(&connection, "SELECT v FROM main.n"), number(&connection, "SELECT v FROM b.n"));
            let sound = integrity(&connection);
            drop((connection, pool));
            indelible_sqlite::withdraw(path);
            let done = image.last_mark().unwrap_or(0) as i64;
            match a == b && sound == "ok" && (done..=done + 1).contains(&a) {
                true => Ok(()),
                false => Err(format!("{mode}: {done} committed: {a} and {b}, {sound}")),
            }
        };
        let limits = Limits { exhaustive: 16, singles: 2, random: 2, points: 40, seed: 55 };
        let report = for_each_crash(&medium, record, judge, &limits).unwrap();
        assert!(report.distinct > 30, "{report:?}");
    }
}

#[test]
fn databases_that_are_not_changed_and_plain_files_do_not_keep_a_commit_back() {
    let (dir, path) = place();
    for name in ["a.db", "b.db"] {
        open(&path, name).execute_batch(TABLE).unwrap();
    }
    for mode in ["memory", "delete"] {
        let connection = pair(&path, mode);
        let plain = dir.path().join("plain.db");
        connection.execute_batch(&format!("ATTACH 'file:{}?vfs=unix' AS c", plain.display())).unwrap();
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS c.n(v); DELETE FROM c.n; INSERT INTO c.n VALUES (0)")
            .unwrap();
        let pool = Pool::open(&path).unwrap();
        // All have locks, one is changed.
        let before = psyncs(&pool);
        connection.execute_batch("BEGIN IMMEDIATE; UPDATE main.n SET v = v + 1; COMMIT").unwrap();
        assert_eq!(psyncs(&pool), before + 1, "{mode}");
        connection.execute_batch("BEGIN IMMEDIATE; UPDATE b.n SET v = v + 1; COMMIT").unwrap();
        assert_eq!(psyncs(&pool), before + 2, "{mode}");
        connection
            .execute_batch(
                "BEGIN; UPDATE n SET v = v + 1; UPDATE b.n SET v = v + 1; UPDATE c.n SET v = 1; COMMIT",
            )
            .unwrap();
        assert_eq!(psyncs(&pool), before + 4, "{mode}");
        // A connection in this mode keeps its locks between transactions.
        connection.execute_batch("PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=5").unwrap();
        for _ in 0..2 {
            connection
                .execute_batch("BEGIN; UPDATE main.n SET v = v + 1; UPDATE b.n SET v = v + 1; COMMIT")
                .unwrap();
        }
        assert_eq!(psyncs(&pool), before + 8, "{mode}");
        connection
            .execute_batch("BEGIN; UPDATE b.n SET v = v + 1; UPDATE main.n SET v = v + 1; ROLLBACK")
            .unwrap();
        drop(connection);
        let connection = pair(&path, mode);
        let both = number(&connection, "SELECT main.n.v = b.n.v FROM main.n, b.n");
        assert_eq!((both, integrity(&connection).as_str()), (1, "ok"), "{mode}");
    }
}
