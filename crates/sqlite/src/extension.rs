//! Registration: by SQLite, which loads the library, or by a Rust program that has SQLite linked.

#![allow(unsafe_code)]

use crate::abi::{AutoExtension, Exec, Find, Functions, Register, Sql, Vfs, control, place};
use crate::failure::code;
use crate::request::{Answer, FUNCTIONS, Request};
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

/// Registers the VFS `pmo` with the SQLite of these functions, once a process; connections that are
/// opened on it later have its SQL functions. `V` is `sqlite3_vfs`, and `E` the entry
/// point of an extension, as the program's bindings declare them.
///
/// # Errors
/// SQLite refused it.
///
/// # Safety
/// The functions are `sqlite3_vfs_find`, `sqlite3_vfs_register`, `sqlite3_uri_parameter`,
/// `sqlite3_log` and `sqlite3_auto_extension` of one SQLite.
pub unsafe fn register<V, E>(
    find: unsafe extern "C" fn(*const c_char) -> *mut V,
    register: unsafe extern "C" fn(*mut V, c_int) -> c_int,
    uri_parameter: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
    log: unsafe extern "C" fn(c_int, *const c_char, ...),
    auto_extension: unsafe extern "C" fn(E) -> c_int,
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
    // SAFETY: the caller's promise: `E` is `Option<Opened>`.
    let registered = unsafe {
        let auto = transmute::<unsafe extern "C" fn(E) -> c_int, AutoExtension>(auto_extension);
        install(functions, auto)
    };
    match registered {
        code::OK => Ok(()),
        refused => Err(Refused(refused)),
    }
}

/// Registers the VFS; each connection that is opened later passes [`opened`].
///
/// # Safety
/// Functions of one SQLite.
unsafe fn install(functions: Functions, auto_extension: AutoExtension) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { vfs::register(functions) } {
        // SAFETY: as above.
        code::OK => unsafe { auto_extension(Some(opened)) },
        refused => refused,
    }
}

/// As [`install`], with functions from a table; the last one gives connections [`PRAGMAS`].
///
/// # Safety
/// The table has `sqlite3_vfs_find`, `sqlite3_vfs_register`, `sqlite3_uri_parameter`,
/// `sqlite3_log`, `sqlite3_auto_extension` and `sqlite3_exec` of one SQLite at these places.
unsafe fn install_from(table: *const *const c_void, places: [usize; 6]) -> c_int {
    let [find, register, uri_parameter, log, auto_extension, exec] = places;
    // SAFETY: the caller's promise.
    unsafe {
        let functions = Functions {
            find: routine(table, find),
            register: routine(table, register),
            uri_parameter: routine(table, uri_parameter),
            log: routine(table, log),
        };
        EXEC.get_or_init(|| routine::<Exec>(table, exec));
        install(functions, routine(table, auto_extension))
    }
}

static SQL: OnceLock<Sql> = OnceLock::new();

static EXEC: OnceLock<Exec> = OnceLock::new();

/// UTF-8, and not to be called by views and triggers.
const FUNCTION: c_int = 1 | 0x8_0000;

/// A journal in memory is SQLite's own then; pages are read where they lie.
const PRAGMAS: &CStr = c"PRAGMA journal_mode=MEMORY; PRAGMA mmap_size=1099511627776";

/// Gives a connection on the VFS its SQL functions, and the VFS's defaults if SQLite loaded the
/// extension.
unsafe extern "C" fn opened(database: *mut c_void, _: *mut *mut c_char, api: *const c_void) -> c_int {
    if api.is_null() {
        return code::OK;
    }
    // SAFETY: `sqlite3_api_routines`, as for the entry point.
    let sql = SQL.get_or_init(|| unsafe { functions_of_sql(api.cast()) });
    let mut vfs = std::ptr::null_mut::<Vfs>();
    let null = std::ptr::null_mut::<c_void>();
    // SAFETY: a connection that SQLite has just opened.
    unsafe {
        let place = (&raw mut vfs).cast();
        let found = (sql.file_control)(database, c"main".as_ptr(), control::VFS_POINTER, place);
        if found != code::OK || vfs.is_null() || CStr::from_ptr((*vfs).name) != vfs::NAME {
            return code::OK;
        }
        for (number, (name, _)) in FUNCTIONS.iter().enumerate() {
            let data = std::ptr::without_provenance_mut(number);
            let create = sql.create_function;
            create(database, name.as_ptr(), -1, FUNCTION, data, Some(function), null, null, null);
        }
        if let Some(exec) = EXEC.get() {
            exec(database, PRAGMAS.as_ptr(), null, null, std::ptr::null_mut());
        }
    }
    code::OK
}

/// A function of SQLite.
///
/// # Safety
/// `F` is the type of the function at `place` in these `sqlite3_api_routines`.
unsafe fn routine<F>(api: *const *const c_void, place: usize) -> F {
    // SAFETY: the caller's promise.
    unsafe { api.add(place).cast::<F>().read() }
}

/// # Safety
/// `sqlite3_api_routines` of a SQLite that has these functions.
unsafe fn functions_of_sql(api: *const *const c_void) -> Sql {
    // SAFETY: the caller's promise; the types are those of SQLite's interface.
    unsafe {
        Sql {
            result_error: routine(api, place::RESULT_ERROR),
            result_int64: routine(api, place::RESULT_INT64),
            result_text: routine(api, place::RESULT_TEXT),
            user_data: routine(api, place::USER_DATA),
            value_int64: routine(api, place::VALUE_INT64),
            value_text: routine(api, place::VALUE_TEXT),
            file_control: routine(api, place::FILE_CONTROL),
            result_error_code: routine(api, place::RESULT_ERROR_CODE),
            context_db_handle: routine(api, place::CONTEXT_DB_HANDLE),
            create_function: routine(api, place::CREATE_FUNCTION_V2),
        }
    }
}

unsafe extern "C" fn function(context: *mut c_void, count: c_int, values: *mut *mut c_void) {
    let Some(sql) = SQL.get() else { return };
    // SAFETY: SQLite's context and arguments; the text lives until the function returns.
    let (database, mut request) = unsafe {
        let first = (count > 0).then(|| *values);
        let number = first.map_or(0, |value| (sql.value_int64)(value));
        let text = first.map(|value| (sql.value_text)(value)).filter(|text| !text.is_null());
        let text = text.and_then(|text| CStr::from_ptr(text).to_str().ok());
        let function = (sql.user_data)(context).addr();
        ((sql.context_db_handle)(context), Request { function, text, number, answer: None })
    };
    // SAFETY: as above; the request lives until the call returns; SQLite copies errors, and other
    // texts are static.
    unsafe {
        let asked = (&raw mut request).cast();
        (sql.file_control)(database, c"main".as_ptr(), control::REQUEST, asked);
        match request.answer {
            Some(Ok(Answer::Number(number))) => (sql.result_int64)(context, number as i64),
            Some(Ok(Answer::Text(text))) => {
                let (text, len) = (text.as_ptr().cast(), text.len() as c_int);
                (sql.result_text)(context, text, len, std::ptr::null());
            }
            Some(Err(failure)) => {
                let text = failure.text.as_str();
                (sql.result_error)(context, text.as_ptr().cast(), text.len() as c_int);
                (sql.result_error_code)(context, failure.code);
            }
            None => (sql.result_error_code)(context, code::MISUSE),
        }
    }
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
    use place::{AUTO_EXTENSION, EXEC, LOG, URI_PARAMETER, VFS_FIND, VFS_REGISTER};
    // SAFETY: `sqlite3_api_routines` of a SQLite that has these functions: 3.8.7 and later have
    // all of them.
    match unsafe { install_from(api, [VFS_FIND, VFS_REGISTER, URI_PARAMETER, LOG, AUTO_EXTENSION, EXEC]) } {
        code::OK => code::OK_LOAD_PERMANENTLY,
        refused => refused,
    }
}

/// `sqlite3_pmo_register` of `sqlite3-pmo.h`: registers the VFS with the SQLite that a C program is
/// linked with. Returns a code of SQLite.
///
/// # Safety
/// Six functions of one SQLite, in the order of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_pmo_register_with(functions: *const *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { install_from(functions, [0, 1, 2, 3, 4, 5]) }
}
