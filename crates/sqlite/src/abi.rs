//! SQLite's interface to file systems, declared: structs whose layout SQLite keeps for good.

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
pub(crate) struct Vfs {
    pub(crate) version: c_int,
    pub(crate) file_size: c_int,
    pub(crate) longest_path: c_int,
    pub(crate) next: *mut Vfs,
    pub(crate) name: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) open: unsafe extern "C" fn(*mut Vfs, *const c_char, *mut c_void, c_int, *mut c_int) -> c_int,
    pub(crate) delete: unsafe extern "C" fn(*mut Vfs, *const c_char, c_int) -> c_int,
    pub(crate) access: unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_int) -> c_int,
    pub(crate) full_path: unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_char) -> c_int,
    pub(crate) dl_open: unsafe extern "C" fn(*mut Vfs, *const c_char) -> *mut c_void,
    pub(crate) dl_error: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char),
    pub(crate) dl_sym: unsafe extern "C" fn(*mut Vfs, *mut c_void, *const c_char) -> *mut c_void,
    pub(crate) dl_close: unsafe extern "C" fn(*mut Vfs, *mut c_void),
    pub(crate) randomness: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int,
    pub(crate) sleep: unsafe extern "C" fn(*mut Vfs, c_int) -> c_int,
    pub(crate) current_time: unsafe extern "C" fn(*mut Vfs, *mut f64) -> c_int,
    pub(crate) last_error: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int,
    pub(crate) current_time_int64: unsafe extern "C" fn(*mut Vfs, *mut i64) -> c_int,
    /// Overrides of system calls, which only the file systems of SQLite's own tests have.
    pub(crate) system_calls: [*const c_void; 3],
}

#[repr(C)]
pub(crate) struct IoMethods {
    pub(crate) version: c_int,
    pub(crate) close: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) read: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, i64) -> c_int,
    pub(crate) write: unsafe extern "C" fn(*mut c_void, *const c_void, c_int, i64) -> c_int,
    pub(crate) truncate: unsafe extern "C" fn(*mut c_void, i64) -> c_int,
    pub(crate) sync: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub(crate) file_size: unsafe extern "C" fn(*mut c_void, *mut i64) -> c_int,
    pub(crate) lock: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub(crate) unlock: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub(crate) check_reserved_lock: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub(crate) file_control: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int,
    pub(crate) sector_size: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) characteristics: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// `None`: SQLite takes no WAL file for the database, and answers `PRAGMA journal_mode=WAL`
    /// with the mode that it has.
    pub(crate) shm_map:
        Option<unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut *mut c_void) -> c_int>,
    pub(crate) shm_lock: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    pub(crate) shm_barrier: unsafe extern "C" fn(*mut c_void),
    pub(crate) shm_unmap: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub(crate) fetch: unsafe extern "C" fn(*mut c_void, i64, c_int, *mut *mut c_void) -> c_int,
    pub(crate) unfetch: unsafe extern "C" fn(*mut c_void, i64, *mut c_void) -> c_int,
}

pub(crate) type Find = unsafe extern "C" fn(*const c_char) -> *mut Vfs;
pub(crate) type Register = unsafe extern "C" fn(*mut Vfs, c_int) -> c_int;
pub(crate) type UriParameter = unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;
pub(crate) type Log = unsafe extern "C" fn(c_int, *const c_char, ...);
pub(crate) type AutoExtension = unsafe extern "C" fn(Option<Opened>) -> c_int;
pub(crate) type Opened = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;
pub(crate) type FileControl = unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *mut c_void) -> c_int;
pub(crate) type Exec =
    unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void, *mut c_void, *mut *mut c_char) -> c_int;

pub(crate) type SqlFunction = unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_void);
type Pointer = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Functions of SQLite that make functions of SQL: in the order of their names in [`place`].
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) result_error: unsafe extern "C" fn(*mut c_void, *const c_char, c_int),
    pub(crate) result_int64: unsafe extern "C" fn(*mut c_void, i64),
    pub(crate) result_text: unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *const c_void),
    pub(crate) user_data: Pointer,
    pub(crate) value_int64: unsafe extern "C" fn(*mut c_void) -> i64,
    pub(crate) value_text: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    pub(crate) file_control: FileControl,
    pub(crate) result_error_code: unsafe extern "C" fn(*mut c_void, c_int),
    pub(crate) context_db_handle: Pointer,
    pub(crate) create_function: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        c_int,
        c_int,
        *mut c_void,
        Option<SqlFunction>,
        *const c_void,
        *const c_void,
        *const c_void,
    ) -> c_int,
}

#[derive(Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) find: Find,
    pub(crate) register: Register,
    pub(crate) uri_parameter: UriParameter,
    pub(crate) log: Log,
}

/// Places of functions in `sqlite3_api_routines`, to which SQLite only appends.
pub(crate) mod place {
    pub(crate) const EXEC: usize = 55;
    pub(crate) const RESULT_ERROR: usize = 80;
    pub(crate) const RESULT_INT64: usize = 83;
    pub(crate) const RESULT_TEXT: usize = 85;
    pub(crate) const USER_DATA: usize = 101;
    pub(crate) const VALUE_INT64: usize = 107;
    pub(crate) const VALUE_TEXT: usize = 109;
    pub(crate) const FILE_CONTROL: usize = 127;
    pub(crate) const VFS_FIND: usize = 141;
    pub(crate) const VFS_REGISTER: usize = 142;
    pub(crate) const RESULT_ERROR_CODE: usize = 146;
    pub(crate) const CONTEXT_DB_HANDLE: usize = 149;
    pub(crate) const CREATE_FUNCTION_V2: usize = 162;
    pub(crate) const LOG: usize = 167;
    pub(crate) const URI_PARAMETER: usize = 189;
    pub(crate) const AUTO_EXTENSION: usize = 192;
}

pub(crate) mod open {
    pub(crate) const READ_ONLY: i32 = 0x1;
    pub(crate) const READ_WRITE: i32 = 0x2;
    pub(crate) const CREATE: i32 = 0x4;
    pub(crate) const MAIN_DB: i32 = 0x100;
    pub(crate) const MAIN_JOURNAL: i32 = 0x800;
    pub(crate) const SUPER_JOURNAL: i32 = 0x4000;
    pub(crate) const WAL: i32 = 0x80000;
}

pub(crate) mod control {
    pub(crate) const LOCK_STATE: i32 = 1;
    pub(crate) const SIZE_HINT: i32 = 5;
    pub(crate) const MMAP_SIZE: i32 = 18;
    pub(crate) const HAS_MOVED: i32 = 20;
    pub(crate) const SYNC: i32 = 21;
    pub(crate) const COMMIT_PHASE_TWO: i32 = 22;
    pub(crate) const VFS_POINTER: i32 = 27;
    pub(crate) const CONNECTION: i32 = 30;
    /// Of this VFS: a [`Request`](crate::request::Request).
    pub(crate) const REQUEST: i32 = 0x504d_4f31;
}
