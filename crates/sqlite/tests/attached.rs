//! ATTACHed databases of one pool: their transaction is one psync.

use crate::support::{code, integrity, memory_of, number, open, place, register, try_open, uri};
use indelible::{Pool, PoolOptions};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, SimConfig, SimMedium, for_each_crash};
use rusqlite::{Connection, ffi};
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

/// A connection with two databases, main and b, and with c in a pool that is nearly full.
fn with_a_full_one([main, b]: &[String; 2], full: &Path, mode: &str) -> Connection {
    register();
    let connection = Connection::open(main).unwrap();
    let (c, tables) = (uri(full, "c.db", "&size=4M"), "CREATE TABLE IF NOT EXISTS");
    let script = format!(
        "ATTACH '{b}' AS b; ATTACH '{c}' AS c; PRAGMA c.cache_size=-20000; PRAGMA journal_mode={mode};
         {tables} c.t(b); {tables} main.n(v); {tables} b.n(v); DELETE FROM main.n; DELETE FROM b.n;
         INSERT INTO main.n VALUES (0); INSERT INTO b.n VALUES (0)"
    );
    connection.execute_batch(&script).unwrap();
    connection
}

/// SQLite has synced main and b when c fails.
const FAILS: &str = "BEGIN; UPDATE main.n SET v = 1; UPDATE b.n SET v = 1;
    INSERT INTO c.t VALUES (zeroblob(8000000)); COMMIT";

#[test]
fn a_commit_that_fails_in_another_pool_is_undone_in_all_databases() {
    let (dir, path) = place();
    let [a, b] = ["a.db", "b.db"].map(|name| uri(&path, name, "&size=16M"));
    let plain = format!("file:{}?vfs=unix", dir.path().join("plain.db").display());
    for databases in [[a.clone(), b], [a.clone(), plain.clone()], [plain, a]] {
        for (mode, locking) in
            [("memory", "normal"), ("memory", "exclusive"), ("delete", "normal"), ("persist", "exclusive")]
        {
            let full = dir.path().join("full.pmo");
            let connection = with_a_full_one(&databases, &full, mode);
            connection.execute_batch(&format!("PRAGMA locking_mode={locking}")).unwrap();
            let state = |what: &str| {
                let values = ["main", "b"].map(|of| number(&connection, &format!("SELECT v FROM {of}.n")));
                assert_eq!((values, integrity(&connection).as_str()), ([0, 0], "ok"), "{what}");
            };
            for round in 0..2 {
                let what = format!("{databases:?} {mode} {locking} {round}");
                assert_eq!(code(connection.execute_batch(FAILS)), ffi::SQLITE_FULL, "{what}");
                state(&what);
            }
            drop(connection);
            for database in &databases {
                assert_eq!(number(&Connection::open(database).unwrap(), "SELECT v FROM n"), 0, "{database}");
            }
            let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
            let left = files.filter(|name| name.to_string_lossy().contains("-mj")).count();
            assert_eq!(left, 0, "{databases:?} {mode} {locking}: super-journals");
        }
    }
}

#[test]
fn the_rollback_of_one_database_makes_another_s_failed_transaction_not_durable() {
    let medium = SimMedium::new(4 << 20, SimConfig::default());
    // Super-journals, and the full pool, are files there.
    let (dir, path) = place();
    let path = path.as_path();
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    indelible_sqlite::offer(path, &pool);
    let databases = ["a.db", "b.db"].map(|name| uri(path, name, ""));
    let full = dir.path().join("full.pmo");
    drop((with_a_full_one(&databases, &full, "delete"), pool));
    indelible_sqlite::withdraw(path);
    medium.settle();
    let record = |medium: &SimMedium| {
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
        indelible_sqlite::offer(path, &pool);
        let connection = with_a_full_one(&databases, &full, "delete");
        medium.mark(1);
        assert_eq!(code(connection.execute_batch(FAILS)), ffi::SQLITE_FULL);
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
    };
    let judge = |image: &CrashImage| {
        let pool = PoolOptions::new().on_device(Arc::new(image.medium()), false);
        let pool = pool.map_err(|error| error.to_string())?;
        indelible_sqlite::offer(path, &pool);
        let connection = pair(path, "delete");
        let values =
            ["main", "b"].map(|of| number(&connection, &format!("SELECT count(*) FROM {of}.n WHERE v <> 0")));
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
        match image.last_mark().is_none() || values == [0, 0] {
            true => Ok(()),
            false => Err(format!("after a failed commit: {values:?}")),
        }
    };
    let limits = Limits { exhaustive: 16, singles: 2, random: 2, points: 40, seed: 55 };
    let report = for_each_crash(&medium, record, judge, &limits).unwrap();
    assert!(report.distinct > 5, "{report:?}");
}

/// Main and b lie in the pool at `path`, c in one on a medium of its own, which fails from now on.
fn with_a_failing_one(path: &Path, other: &Path, [mode, more]: [&str; 2]) -> (Connection, SimMedium) {
    let failing = SimMedium::new(4 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(failing.handle()), true).unwrap();
    indelible_sqlite::offer(other, &pool);
    let connection = pair(path, mode);
    let c = uri(other, "c.db", "");
    let script = format!("ATTACH '{c}' AS c; PRAGMA c.journal_mode={mode}; {more}; CREATE TABLE c.n(v)");
    connection.execute_batch(&script).unwrap();
    indelible_sqlite::withdraw(other);
    for kind in [OpKind::WriteDurable, OpKind::Barrier] {
        failing.fail_from(kind, 0, Fault::Io);
    }
    (connection, failing)
}

/// Gives back the memory of c's lease, which a failing pool cannot.
fn forget_lease(failing: &SimMedium) {
    failing.clear_faults();
    let pool = PoolOptions::new().on_device(Arc::new(failing.handle()), false).unwrap();
    pool.forget_shared("c.db.lease", b"").unwrap();
    assert_eq!(memory_of(&pool), 0);
}

/// Main and b are psynced as one step, then c fails, and SQLite undoes one after the other.
const UNDONE: &str =
    "BEGIN; UPDATE main.n SET v = 1; UPDATE b.n SET v = 1; INSERT INTO c.n VALUES (1); COMMIT";

const SETTINGS: [[&str; 2]; 6] = [
    ["memory", "PRAGMA b.synchronous=FULL"],
    ["memory", "PRAGMA main.synchronous=OFF"],
    ["memory", "PRAGMA b.locking_mode=EXCLUSIVE"],
    ["memory", "PRAGMA locking_mode=EXCLUSIVE"],
    ["delete", "PRAGMA b.synchronous=FULL"],
    ["persist", "PRAGMA b.locking_mode=EXCLUSIVE"],
];

#[test]
fn a_failed_commit_is_undone_in_all_databases_of_a_pool_as_one_step() {
    for settings in SETTINGS {
        let medium = SimMedium::new(4 << 20, SimConfig::default());
        let (dir, path) = place();
        let (path, other) = (path.as_path(), dir.path().join("other.pmo"));
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        indelible_sqlite::offer(path, &pool);
        for name in ["a.db", "b.db"] {
            try_open(path, name, "").unwrap().execute_batch(TABLE).unwrap();
        }
        drop(pool);
        indelible_sqlite::withdraw(path);
        medium.settle();
        let both = |connection: &Connection| {
            ["main", "b"].map(|of| number(connection, &format!("SELECT v FROM {of}.n")))
        };
        let record = |medium: &SimMedium| {
            let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
            indelible_sqlite::offer(path, &pool);
            let (connection, failing) = with_a_failing_one(path, &other, settings);
            assert_eq!(code(connection.execute_batch(UNDONE)), ffi::SQLITE_IOERR_FSYNC, "{settings:?}");
            medium.mark(1);
            assert_eq!(both(&connection), [0, 0], "{settings:?}");
            // Neither has a lock left, and the next transaction is one step again.
            let next = "BEGIN; UPDATE main.n SET v = 2; UPDATE b.n SET v = 2; COMMIT";
            connection.execute_batch(next).unwrap();
            medium.mark(2);
            drop((connection, pool));
            forget_lease(&failing);
            indelible_sqlite::withdraw(path);
        };
        let mut seen = [false; 3];
        let judge = |image: &CrashImage| {
            let pool = PoolOptions::new().on_device(Arc::new(image.medium()), false);
            let pool = pool.map_err(|error| error.to_string())?;
            indelible_sqlite::offer(path, &pool);
            let connection = pair(path, "memory");
            let ([main, b], sound) = (both(&connection), integrity(&connection));
            drop((connection, pool));
            indelible_sqlite::withdraw(path);
            let may_be: &[i64] = match image.last_mark() {
                None => &[0, 1],
                Some(1) => &[0, 2],
                Some(_) => &[2],
            };
            if main != b || sound != "ok" || !may_be.contains(&main) {
                let mark = image.last_mark();
                return Err(format!("{settings:?}, mark {mark:?}: main {main}, b {b}, {sound}"));
            }
            seen[main as usize] = true;
            Ok(())
        };
        let limits = Limits { exhaustive: 16, singles: 2, random: 2, points: 60, seed: 55 };
        for_each_crash(&medium, record, judge, &limits).unwrap();
        assert_eq!(seen, [true; 3], "{settings:?}: images before, within and after");
    }
}

#[test]
fn databases_whose_undoing_fails_are_refused_until_they_are_opened_again() {
    let faults = [(OpKind::WriteDurable, Fault::Io), (OpKind::WriteDurable, Fault::NoSpace)];
    let (mut refused, mut undone) = (0, 0);
    // A connection that keeps its lock goes on to read pages that SQLite has.
    let settings = SETTINGS.iter().filter(|[_, more]| !more.contains("EXCLUSIVE"));
    for (settings, (kind, fault)) in settings.flat_map(|of| faults.map(|fault| (*of, fault))) {
        for nth in 0..4 {
            let medium = SimMedium::new(4 << 20, SimConfig::default());
            let (dir, path) = place();
            let path = path.as_path();
            let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
            indelible_sqlite::offer(path, &pool);
            for name in ["a.db", "b.db"] {
                try_open(path, name, "").unwrap().execute_batch(TABLE).unwrap();
            }
            let other = dir.path().join("other.pmo");
            let (connection, failing) = with_a_failing_one(path, &other, settings);
            medium.fail_at(kind, nth, fault);
            connection.execute_batch(UNDONE).unwrap_err();
            medium.clear_faults();
            let shown = ["main", "b"].map(|of| {
                connection.query_row(&format!("SELECT v FROM {of}.n"), [], |row| row.get::<_, i64>(0))
            });
            drop((connection, pool));
            forget_lease(&failing);
            indelible_sqlite::withdraw(path);
            let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
            indelible_sqlite::offer(path, &pool);
            let connection = pair(path, "memory");
            let durable = ["main", "b"].map(|of| number(&connection, &format!("SELECT v FROM {of}.n")));
            let what = format!("{settings:?} {kind:?} {fault:?} {nth}: {shown:?}, durable {durable:?}");
            assert_eq!((durable[0], integrity(&connection).as_str()), (durable[1], "ok"), "{what}");
            connection.execute_batch("BEGIN; DELETE FROM main.n; DELETE FROM b.n; COMMIT").unwrap();
            drop((connection, pool));
            indelible_sqlite::withdraw(path);
            match shown {
                [Ok(a), Ok(b)] => {
                    assert_eq!(([a, b], durable), ([0, 0], [0, 0]), "{what}");
                    undone += 1;
                }
                [Err(a), Err(b)] => {
                    assert_eq!([code::<i64>(Err(a)), code::<i64>(Err(b))], [ffi::SQLITE_IOERR; 2], "{what}");
                    refused += usize::from(durable == [1, 1]);
                }
                _ => panic!("one is refused: {what}"),
            }
        }
    }
    println!("refused {refused}, undone {undone}");
    assert!(refused > 0 && undone > 0, "refused {refused}, undone {undone}");
}

/// Without syncs SQLite commits main, fails in the other pool, and undoes b.
#[test]
fn a_database_whose_pool_has_the_transaction_is_not_undone_but_refused() {
    let (dir, path) = place();
    for name in ["a.db", "b.db"] {
        open(&path, name).execute_batch(TABLE).unwrap();
    }
    let other = dir.path().join("other.pmo");
    let failing = SimMedium::new(4 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(failing.handle()), true).unwrap();
    indelible_sqlite::offer(&other, &pool);
    let connection = try_open(&path, "a.db", "").unwrap();
    let [c, b] = [uri(&other, "c.db", ""), uri(&path, "b.db", "")];
    let script = format!(
        "PRAGMA journal_mode=memory; ATTACH '{c}' AS c; ATTACH '{b}' AS b; CREATE TABLE c.n(v);
         PRAGMA main.synchronous=OFF; PRAGMA c.synchronous=OFF; PRAGMA b.synchronous=OFF"
    );
    connection.execute_batch(&script).unwrap();
    indelible_sqlite::withdraw(&other);
    for kind in [OpKind::WriteDurable, OpKind::Barrier] {
        failing.fail_from(kind, 0, Fault::Io);
    }
    assert_eq!(code(connection.execute_batch(UNDONE)), ffi::SQLITE_IOERR_FSYNC);
    assert_eq!(number(&connection, "SELECT v FROM main.n"), 1);
    let refused = connection.query_row("SELECT v FROM b.n", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(refused), ffi::SQLITE_IOERR);
    drop((connection, pool));
    forget_lease(&failing);
    let connection = pair(&path, "memory");
    let values = ["main", "b"].map(|of| number(&connection, &format!("SELECT v FROM {of}.n")));
    assert_eq!((values, integrity(&connection).as_str()), ([1, 1], "ok"));
}

#[test]
fn a_rollback_leaves_no_database_waiting_that_keeps_its_locks() {
    let (_dir, path) = place();
    for name in ["a.db", "b.db"] {
        open(&path, name).execute_batch(TABLE).unwrap();
    }
    let connection = pair(&path, "memory");
    connection
        .execute_batch("CREATE TABLE b.t(x); PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=5")
        .unwrap();
    connection
        .execute_batch(
            "PRAGMA b.cache_size=5; BEGIN; UPDATE main.n SET v = 1; UPDATE b.n SET v = 1;
             INSERT INTO b.t VALUES (zeroblob(200000)); ROLLBACK",
        )
        .unwrap();
    let pool = Pool::open(&path).unwrap();
    let before = psyncs(&pool);
    connection.execute_batch("BEGIN; UPDATE main.n SET v = 2; UPDATE b.n SET v = 2; COMMIT").unwrap();
    assert_eq!(psyncs(&pool), before + 2);
    drop(connection);
    let connection = pair(&path, "memory");
    let values = ["main", "b"].map(|of| number(&connection, &format!("SELECT v FROM {of}.n")));
    assert_eq!((values, integrity(&connection).as_str()), ([2, 2], "ok"));
}

/// A rollback syncs both, and leaves nothing behind that parts the next commit.
#[test]
fn a_commit_after_a_rollback_that_keeps_the_locks_is_one_step() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let (_dir, path) = place();
    let path = path.as_path();
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    indelible_sqlite::offer(path, &pool);
    for name in ["a.db", "b.db"] {
        let script = format!("{TABLE}; CREATE TABLE t(x)");
        try_open(path, name, "").unwrap().execute_batch(&script).unwrap();
    }
    drop(pool);
    indelible_sqlite::withdraw(path);
    medium.settle();
    let record = |medium: &SimMedium| {
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
        indelible_sqlite::offer(path, &pool);
        let connection = pair(path, "memory");
        let small = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA main.cache_size=5; PRAGMA b.cache_size=5";
        connection.execute_batch(small).unwrap();
        let large = "INSERT INTO main.t VALUES (zeroblob(200000)); INSERT INTO b.t VALUES (zeroblob(200000))";
        for round in 1..=2 {
            connection.execute_batch(&format!("BEGIN; {large}; ROLLBACK")).unwrap();
            let script = format!("BEGIN; UPDATE main.n SET v = {round}; UPDATE b.n SET v = {round}; COMMIT");
            connection.execute_batch(&script).unwrap();
            medium.mark(round);
        }
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
    };
    let judge = |image: &CrashImage| {
        let pool = PoolOptions::new().on_device(Arc::new(image.medium()), false);
        let pool = pool.map_err(|error| error.to_string())?;
        indelible_sqlite::offer(path, &pool);
        let connection = pair(path, "memory");
        let [a, b] = ["main", "b"].map(|of| number(&connection, &format!("SELECT v FROM {of}.n")));
        let sound = integrity(&connection);
        drop((connection, pool));
        indelible_sqlite::withdraw(path);
        let done = image.last_mark().unwrap_or(0) as i64;
        match a == b && sound == "ok" && (done..=done + 1).contains(&a) {
            true => Ok(()),
            false => Err(format!("{done} committed: {a} and {b}, {sound}")),
        }
    };
    let limits = Limits { exhaustive: 16, singles: 2, random: 2, points: 60, seed: 55 };
    let report = for_each_crash(&medium, record, judge, &limits).unwrap();
    assert!(report.distinct > 10, "{report:?}");
}

#[test]
fn a_database_with_two_names_in_a_connection_is_written_by_one_at_a_time() {
    let (_dir, path) = place();
    for name in ["a.db", "b.db"] {
        open(&path, name).execute_batch(TABLE).unwrap();
    }
    let connection = pair(&path, "memory");
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    connection.execute_batch(&format!("ATTACH '{}' AS again", uri(&path, "a.db", ""))).unwrap();
    for (round, how) in [(1, "durable"), (3, "ticket")] {
        connection.query_row(&format!("SELECT pmo_commit('{how}')"), [], |_| Ok(())).unwrap();
        let write = |name: &str, value: i64| {
            connection.execute_batch(&format!("UPDATE {name}.n SET v = {value}; UPDATE b.n SET v = {value}"))
        };
        let read = |name: &str| number(&connection, &format!("SELECT v FROM {name}.n"));
        for (round, (one, other)) in [(round, ("main", "again")), (round + 1, ("again", "main"))] {
            connection.execute_batch("BEGIN").unwrap();
            write(one, round).unwrap();
            assert_eq!(code(write(other, 100)) & 0xff, ffi::SQLITE_BUSY, "{how}");
            connection.execute_batch("COMMIT").unwrap();
            assert_eq!([read("main"), read("again"), read("b")], [round; 3], "{how}");
        }
        connection.query_row("SELECT pmo_wait()", [], |_| Ok(())).unwrap();
    }
}
