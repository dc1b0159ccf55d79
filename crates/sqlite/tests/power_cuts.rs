//! The VFS on a simulated medium: every image is sound, and a prefix of the acknowledged
//! transactions.

use crate::support::{integrity, number, opened, reopened, try_open};
use indelible::PoolOptions;
use indelible_testing::{
    ClassLimits, CrashImage, Limits, SimConfig, SimMedium, for_each_class, for_each_crash,
};
use std::path::Path;
use std::sync::Arc;

#[test]
fn s2_26_a_power_cut_leaves_a_prefix_of_the_acknowledged_transactions() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let path = Path::new("/power-cuts");
    let record = |medium: &SimMedium| {
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        medium.mark(1);
        indelible_sqlite::offer(path, &pool);
        let connection = try_open(path, "main.db", "").unwrap();
        let script =
            "PRAGMA cache_size=5; CREATE TABLE n(v); CREATE TABLE t(b BLOB); INSERT INTO n VALUES (0)";
        connection.execute_batch(&format!("BEGIN; {script}; COMMIT")).unwrap();
        medium.mark(2);
        for round in 1..=5 {
            // Spilled before the commit; the file grows.
            let script = format!(
                "BEGIN; INSERT INTO t VALUES (randomblob(60000)); UPDATE n SET v = {round};
                 INSERT INTO t VALUES (randomblob(60000)); COMMIT"
            );
            connection.execute_batch(&script).unwrap();
            medium.mark(2 + round);
        }
        connection
            .execute_batch("BEGIN; DELETE FROM t; INSERT INTO t VALUES (zeroblob(100000)); ROLLBACK")
            .unwrap();
        connection.execute_batch("BEGIN; DELETE FROM t; UPDATE n SET v = 6; COMMIT; VACUUM").unwrap();
        medium.mark(8);
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
    };
    let judge = |image: &CrashImage| {
        let done = image.last_mark().unwrap_or(0) as i64;
        if done == 0 {
            return Ok(());
        }
        let (sound, tables, state, rows) = reopened(path, image, |connection| {
            let tables = number(connection, "SELECT count(*) FROM sqlite_schema");
            let state = if tables == 0 { -1 } else { number(connection, "SELECT v FROM n") };
            let rows = if tables == 0 { 0 } else { number(connection, "SELECT count(*) FROM t") };
            (integrity(connection), tables, state, rows)
        })?;
        let whole = match state {
            -1 | 6 => rows == 0,
            round => rows == 2 * round,
        };
        match whole && sound == "ok" && (done - 2..=done - 1).contains(&state) {
            true => Ok(()),
            false => Err(format!("after mark {done}: state {state}, {tables} tables, {rows} rows, {sound}")),
        }
    };
    let limits = Limits { exhaustive: 8, singles: 2, random: 2, points: 60, seed: 55 };
    let report = for_each_crash(&medium, record, judge, &limits).unwrap();
    assert!(report.distinct > 40, "{report:?}");
}

#[test]
fn every_image_of_a_short_program_is_sound_and_has_what_was_acknowledged() {
    let medium = SimMedium::new(4 << 20, SimConfig::default());
    let path = Path::new("/every-image");
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    indelible_sqlite::offer(path, &pool);
    let connection = try_open(path, "main.db", "").unwrap();
    connection.execute_batch("CREATE TABLE n(v); INSERT INTO n VALUES (0)").unwrap();
    drop((connection, pool));
    indelible_sqlite::withdraw(path);
    medium.settle();
    let record = |medium: &SimMedium| {
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
        indelible_sqlite::offer(path, &pool);
        let connection = try_open(path, "main.db", "").unwrap();
        for round in 1..=2 {
            let script = format!("BEGIN; UPDATE n SET v = {round}; INSERT INTO n VALUES ({round}); COMMIT");
            connection.execute_batch(&script).unwrap();
            connection.execute_batch("BEGIN; DELETE FROM n; ROLLBACK").unwrap();
            medium.mark(round);
        }
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
    };
    let judge = |image: &CrashImage, medium: &SimMedium| {
        let state = opened(path, medium, |connection| {
            let sum = number(connection, "SELECT sum(v) FROM n");
            (number(connection, "SELECT count(*) FROM n") - 1, sum, integrity(connection))
        });
        let (rounds, sum, sound) = state?;
        let done = image.last_mark().unwrap_or(0) as i64;
        match sum == rounds * (rounds + 1) && sound == "ok" && (done..=done + 1).contains(&rounds) {
            true => Ok(()),
            false => Err(format!("after mark {done}: {rounds} rounds, sum {sum}, {sound}")),
        }
    };
    let report = for_each_class(&medium, record, judge, &ClassLimits::default()).unwrap();
    assert!(report.cut_short == 0 && report.judged > 20, "{report:?}");
}
