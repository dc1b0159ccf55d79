//! Connections on the VFS, and this program as a process of its own.

#![allow(unsafe_code)]

use indelible::{Pool, PoolOptions};
use indelible_testing::{CrashImage, SimMedium};
use rusqlite::{Connection, OpenFlags, ffi};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Once};

static LOG: Mutex<Vec<(i32, String)>> = Mutex::new(Vec::new());

extern "C" fn log(_: *mut c_void, code: c_int, text: *const c_char) {
    // SAFETY: SQLite's string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    LOG.lock().unwrap().push((code, text));
}

pub fn said(code: i32, words: &[&str]) -> bool {
    let log = LOG.lock().unwrap();
    log.iter().any(|(of, text)| *of == code && words.iter().all(|word| text.contains(word)))
}

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let log: extern "C" fn(*mut c_void, c_int, *const c_char) = log;
        // SAFETY: before SQLite is used; the function and its argument live on.
        let logs =
            unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOG, log, std::ptr::null_mut::<c_void>()) };
        assert_eq!(logs, ffi::SQLITE_OK);
        // SAFETY: functions of the one SQLite that is linked.
        let registered = unsafe {
            indelible_sqlite::register(
                ffi::sqlite3_vfs_find,
                ffi::sqlite3_vfs_register,
                ffi::sqlite3_uri_parameter,
                ffi::sqlite3_log,
                ffi::sqlite3_auto_extension,
            )
        };
        registered.unwrap();
    });
}

pub fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.pmo");
    (dir, path)
}

pub fn uri(path: &Path, object: &str, more: &str) -> String {
    format!("file:{}?vfs=pmo&object={object}{more}", path.display())
}

pub fn try_open(path: &Path, object: &str, more: &str) -> rusqlite::Result<Connection> {
    register();
    Connection::open(uri(path, object, more))
}

/// Opens a database in a pool of 32 MiB, with pages read where they lie.
pub fn open(path: &Path, object: &str) -> Connection {
    let connection = try_open(path, object, "&size=32M").unwrap();
    connection.execute_batch("PRAGMA mmap_size=1000000000").unwrap();
    connection
}

pub fn open_read_only(path: &Path, object: &str) -> rusqlite::Result<Connection> {
    register();
    Connection::open_with_flags(
        uri(path, object, ""),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )
}

pub fn reopened<T>(
    path: &Path,
    image: &CrashImage,
    look: impl FnOnce(&Connection) -> T,
) -> Result<T, String> {
    opened(path, &image.medium(), look)
}

pub fn opened<T>(path: &Path, medium: &SimMedium, look: impl FnOnce(&Connection) -> T) -> Result<T, String> {
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false);
    let pool = pool.map_err(|error| error.to_string())?;
    indelible_sqlite::offer(path, &pool);
    let connection = try_open(path, "main.db", "").map_err(|error| error.to_string())?;
    let found = look(&connection);
    drop((connection, pool));
    indelible_sqlite::withdraw(path);
    Ok(found)
}

/// Files in which objects of a pool that processes share have their memory.
pub fn memory_of(pool: &Pool) -> usize {
    let id = u128::from_be_bytes(pool.id());
    let files = std::fs::read_dir("/dev/shm").unwrap().map(|file| file.unwrap().file_name());
    files.filter(|name| name.to_string_lossy().starts_with(&format!("indelible-{id:032x}-"))).count()
}

pub fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

pub fn integrity(connection: &Connection) -> String {
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

#[track_caller]
pub fn code<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> i32 {
    result.expect_err("it fails").sqlite_error().expect("an error of SQLite's").extended_code
}

/// This program, to run one of its tests that are ignored, in `folder`.
pub fn process(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--ignored"]).env("WORK", folder).stdout(Stdio::piped());
    command
}

pub fn work() -> Option<PathBuf> {
    std::env::var_os("WORK").map(PathBuf::from)
}
