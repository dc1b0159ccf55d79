//! SQLite as the VFS sees it: the functions that it gave, and the VFS that was its default before.
//!
//! The default VFS has temporary files, super-journals, paths, libraries, random numbers and time.

#![allow(unsafe_code)]

use crate::abi::{Functions, Vfs};
use crate::failure::Failure;
use indelible::PerProcess;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

pub(crate) struct Host {
    pub(crate) functions: Functions,
    pub(crate) default: *mut Vfs,
}

// SAFETY: SQLite's functions and a registered VFS are for any thread.
unsafe impl Send for Host {}
// SAFETY: as for `Send`.
unsafe impl Sync for Host {}

pub(crate) static HOST: OnceLock<Host> = OnceLock::new();

/// A number that differs between a process and its forks.
pub(crate) fn process() -> usize {
    static OWN: PerProcess<u8> = PerProcess::new();
    ptr::from_ref(OWN.get()).addr()
}

pub(crate) fn default() -> *mut Vfs {
    HOST.get().expect("the VFS is registered").default
}

pub(crate) fn tell(failure: &Failure) -> c_int {
    if let (Some(host), false) = (HOST.get(), failure.is_busy()) {
        let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the format takes one string.
        unsafe { (host.functions.log)(failure.code, c"pmo: %s".as_ptr(), text.as_ptr()) };
    }
    failure.code
}

pub(crate) unsafe extern "C" fn full_path(
    _: *mut Vfs,
    name: *const c_char,
    len: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).full_path)(default(), name, len, out) }
}

pub(crate) unsafe extern "C" fn dl_open(_: *mut Vfs, name: *const c_char) -> *mut c_void {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).dl_open)(default(), name) }
}

pub(crate) unsafe extern "C" fn dl_error(_: *mut Vfs, len: c_int, out: *mut c_char) {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).dl_error)(default(), len, out) }
}

pub(crate) unsafe extern "C" fn dl_sym(
    _: *mut Vfs,
    library: *mut c_void,
    name: *const c_char,
) -> *mut c_void {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).dl_sym)(default(), library, name) }
}

pub(crate) unsafe extern "C" fn dl_close(_: *mut Vfs, library: *mut c_void) {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).dl_close)(default(), library) }
}

pub(crate) unsafe extern "C" fn randomness(_: *mut Vfs, len: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).randomness)(default(), len, out) }
}

pub(crate) unsafe extern "C" fn sleep(_: *mut Vfs, microseconds: c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).sleep)(default(), microseconds) }
}

pub(crate) unsafe extern "C" fn current_time(_: *mut Vfs, out: *mut f64) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).current_time)(default(), out) }
}

pub(crate) unsafe extern "C" fn last_error(_: *mut Vfs, len: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).last_error)(default(), len, out) }
}

pub(crate) unsafe extern "C" fn current_time_int64(_: *mut Vfs, out: *mut i64) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe { ((*default()).current_time_int64)(default(), out) }
}

#[cfg(test)]
mod tests {
    use crate::database::OPEN;
    use crate::memory_file::named;
    use crate::state::lock;
    use crate::tickets::QUEUE;
    use crate::together::{PARTS, SUPER_JOURNALS};
    use rusqlite::{Connection, Result, ffi};
    use std::path::Path;

    fn open(folder: &Path, object: &str) -> Result<Connection> {
        Connection::open(format!("file:{}/app.pmo?vfs=pmo&size=8M&object={object}", folder.display()))
    }

    fn is(result: &Result<()>, code: i32) -> bool {
        result
            .as_ref()
            .is_err_and(|error| error.sqlite_error().is_some_and(|error| error.extended_code == code))
    }

    /// Runs `work` in a forked child; returns its result.
    fn is_so_in_a_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child uses what this thread alone uses, and ends.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: a child that waits for ever is ended by the signal, without the parent's
                // destructors.
                unsafe {
                    libc::alarm(60);
                    libc::_exit(i32::from(!work()));
                }
            }
            child => {
                let mut status = -1;
                // SAFETY: a place for the status of this process's child.
                unsafe { libc::waitpid(child, &mut status, 0) };
                status == 0
            }
        }
    }

    #[test]
    fn a_child_that_is_forked_while_locks_are_held_is_refused_and_has_its_own() {
        // SAFETY: functions of the one SQLite that is linked.
        let registered = unsafe {
            crate::register(
                ffi::sqlite3_vfs_find,
                ffi::sqlite3_vfs_register,
                ffi::sqlite3_uri_parameter,
                ffi::sqlite3_log,
                ffi::sqlite3_auto_extension,
            )
        };
        registered.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let parent = open(folder.path(), "main.db").unwrap();
        parent.execute_batch("SELECT pmo_commit('ticket'); CREATE TABLE t(x); SELECT pmo_wait()").unwrap();
        let refused = || is(&parent.execute_batch("INSERT INTO t VALUES (1)"), ffi::SQLITE_MISUSE);
        let own = || {
            let own = open(folder.path(), "own.db")?;
            let other = format!("file:{}/app.pmo?vfs=pmo&object=other.db", folder.path().display());
            own.execute_batch(&format!(
                "ATTACH '{other}' AS other; CREATE TABLE t(x); CREATE TABLE other.t(x);
                 BEGIN; INSERT INTO t VALUES (1); INSERT INTO other.t VALUES (1); COMMIT;
                 SELECT pmo_commit('ticket'); INSERT INTO t VALUES (2); SELECT pmo_wait()"
            ))
        };
        let held =
            (lock(&QUEUE.get().0), lock(OPEN.get()), lock(PARTS.get()), lock(SUPER_JOURNALS.get()), named());
        let was_so = is_so_in_a_child(|| refused() && own().is_ok());
        drop(held);
        assert!(was_so);
        let pool = indelible::Pool::open(folder.path().join("app.pmo")).unwrap();
        crate::offer("/offered", &pool);
        let held = lock(crate::offers());
        let was_so = is_so_in_a_child(|| refused() && is(&own(), ffi::SQLITE_CANTOPEN));
        drop(held);
        assert!(was_so);
        parent.execute_batch("INSERT INTO t VALUES (3)").unwrap();
    }
}
