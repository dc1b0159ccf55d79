//! SQLite as the VFS sees it: the functions that it gave, and the VFS that was its default before.
//!
//! The default VFS has temporary files, super-journals, paths, libraries, random numbers and time.

#![allow(unsafe_code)]

use crate::abi::{Functions, Vfs};
use crate::failure::Failure;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Host {
    pub(crate) functions: Functions,
    pub(crate) default: *mut Vfs,
}

// SAFETY: SQLite's functions and a registered VFS are for any thread.
unsafe impl Send for Host {}
// SAFETY: as for `Send`.
unsafe impl Sync for Host {}

pub(crate) static HOST: OnceLock<Host> = OnceLock::new();

/// Forks between this process and the one that registered the VFS.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The fork handler: this process is a child.
pub(crate) extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
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
