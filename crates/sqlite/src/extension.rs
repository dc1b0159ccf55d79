//! Registration: by SQLite, which loads the library, or by a Rust program that has SQLite linked.

#![allow(unsafe_code)]

use crate::abi::{
    AutoExtension, Exec, FileControl, Find, Functions, Log, Register, UriParameter, Vfs, control, place,
};
use crate::failure::code;
use crate::vfs;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::mem::transmute;
use std::sync::OnceLock;

/// SQLite did not take the VFS.
#[derive(Debug)]
pub struct Refused(c_int);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQLite does not register the VFS pmo: error {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// Registers the VFS `pmo` with the SQLite that these functions are of, once a process. `V` is
/// `sqlite3_vfs`, as the program's bindings declare it.
///
/// # Errors
/// SQLite refused it.
///
/// # Safety
/// The functions are `sqlite3_vfs_find`, `sqlite3_vfs_register`, `sqlite3_uri_parameter` and
/// `sqlite3_log` of one SQLite.
pub unsafe fn register<V>(
    find: unsafe extern "C" fn(*const c_char) -> *mut V,
    register: unsafe extern "C" fn(*mut V, c_int) -> c_int,
    uri_parameter: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
    log: unsafe extern "C" fn(c_int, *const c_char, ...),
) -> Result<(), Refused> {
    // SAFETY: the caller's promise: `V` and `Vfs` are the same struct, and pointers to them are
    // passed alike.
    let functions = unsafe {
        Functions {
            find: transmute::<unsafe extern "C" fn(*const c_char) -> *mut V, Find>(find),
            register: transmute::<unsafe extern "C" fn(*mut V, c_int) -> c_int, Register>(register),
            uri_parameter,
            log,
        }
    };
    // SAFETY: the caller's promise.
    match unsafe { vfs::register(functions) } {
        code::OK => Ok(()),
        refused => Err(Refused(refused)),
    }
}

/// The settings of a connection that is opened on the VFS.
struct Settings {
    file_control: FileControl,
    exec: Exec,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// A journal in memory is SQLite's own then; pages are read where they lie.
const PRAGMAS: &CStr = c"PRAGMA journal_mode=MEMORY; PRAGMA mmap_size=1099511627776";

/// Has SQLite's defaults for a connection be those that suit the VFS; the program sets its own
/// after it.
unsafe extern "C" fn opened(database: *mut c_void, _: *mut *mut c_char, _: *const c_void) -> c_int {
    let Some(settings) = SETTINGS.get() else { return code::OK };
    let mut vfs = std::ptr::null_mut::<Vfs>();
    // SAFETY: a connection that SQLite has just opened.
    unsafe {
        let place = (&raw mut vfs).cast();
        let found = (settings.file_control)(database, c"main".as_ptr(), control::VFS_POINTER, place);
        if found == code::OK && !vfs.is_null() && CStr::from_ptr((*vfs).name) == vfs::NAME {
            let null = std::ptr::null_mut();
            (settings.exec)(database, PRAGMAS.as_ptr(), null, null, std::ptr::null_mut());
        }
    }
    code::OK
}

/// SQLite's entry point, by the name that it derives from `libsqlite3-pmo.so`.
///
/// # Safety
/// SQLite calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_sqlitepmo_init(
    _database: *mut c_void,
    _message: *mut *mut c_char,
    api: *const *const c_void,
) -> c_int {
    // SAFETY: `sqlite3_api_routines` of a SQLite that has these functions: 3.8.7 and later have
    // all of them.
    let functions = unsafe {
        Functions {
            find: transmute::<*const c_void, Find>(*api.add(place::VFS_FIND)),
            register: transmute::<*const c_void, Register>(*api.add(place::VFS_REGISTER)),
            uri_parameter: transmute::<*const c_void, UriParameter>(*api.add(place::URI_PARAMETER)),
            log: transmute::<*const c_void, Log>(*api.add(place::LOG)),
        }
    };
    // SAFETY: functions of one SQLite.
    let registered = unsafe { vfs::register(functions) };
    if registered != code::OK {
        return registered;
    }
    // SAFETY: as above.
    unsafe {
        let file_control = transmute::<*const c_void, FileControl>(*api.add(place::FILE_CONTROL));
        let exec = transmute::<*const c_void, Exec>(*api.add(place::EXEC));
        if SETTINGS.set(Settings { file_control, exec }).is_ok() {
            let auto = transmute::<*const c_void, AutoExtension>(*api.add(place::AUTO_EXTENSION));
            auto(Some(opened));
        }
    }
    code::OK_LOAD_PERMANENTLY
}
