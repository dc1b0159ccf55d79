//! The VFS `pmo`: SQLite's calls, as calls of [`Connection`] and [`MemoryFile`].
//!
//! Invariants:
//! 1. A file's struct holds a [`File`] from a successful `xOpen` of this VFS until `xClose`;
//!    SQLite makes no two calls on a file at a time.
//! 2. Temporary files, super-journals, and journals of plain databases are the default VFS's from
//!    `xOpen` on: it puts its own methods into their struct.
//! 3. No panic leaves a call.

#![allow(unsafe_code)]

use crate::abi::{Functions, IoMethods, Vfs, control, open};
use crate::connection::{Connection, Level};
use crate::database::Open;
use crate::failure::{Failure, Result, code};
use crate::host::{self, HOST, Host, default, tell};
use crate::memory_file::{self, MemoryFile};
use crate::request;
use crate::together;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub(crate) const NAME: &CStr = c"pmo";

const SECTOR: c_int = 512;
/// SQLITE_IOCAP_POWERSAFE_OVERWRITE, SAFE_APPEND and SEQUENTIAL, which spare work on the journal.
const CHARACTERISTICS: c_int = 0x1000 | 0x200 | 0x400;

enum Body {
    Database(Connection),
    Journal(MemoryFile),
}

#[repr(C)]
struct File {
    methods: *const IoMethods,
    body: *mut Body,
    process: usize,
}

static METHODS: IoMethods = IoMethods {
    version: 3,
    close,
    read,
    write,
    truncate,
    sync,
    file_size,
    lock,
    unlock,
    check_reserved_lock,
    file_control,
    sector_size,
    characteristics,
    shm_map: None,
    shm_lock,
    shm_barrier,
    shm_unmap,
    fetch,
    unfetch,
};

/// Registers the VFS, once a process.
///
/// # Safety
/// The functions are those of one SQLite.
pub(crate) unsafe fn register(functions: Functions) -> c_int {
    // SAFETY: the caller's promise; a null name finds the default.
    let default = unsafe { (functions.find)(std::ptr::null()) };
    // SAFETY: null, or a VFS that SQLite has.
    let Some(base) = (unsafe { default.as_ref() }) else { return code::IOERR };
    if HOST.set(Host { functions, default }).is_err() {
        return code::OK;
    }
    let vfs = Box::new(Vfs {
        version: 3,
        file_size: base.file_size.max(size_of::<File>() as c_int),
        longest_path: base.longest_path,
        next: std::ptr::null_mut(),
        name: NAME.as_ptr(),
        data: std::ptr::null_mut(),
        open: x_open,
        delete,
        access,
        full_path: host::full_path,
        dl_open: host::dl_open,
        dl_error: host::dl_error,
        dl_sym: host::dl_sym,
        dl_close: host::dl_close,
        randomness: host::randomness,
        sleep: host::sleep,
        current_time: host::current_time,
        last_error: host::last_error,
        current_time_int64: host::current_time_int64,
        system_calls: [std::ptr::null(); 3],
    });
    // SAFETY: a VFS stays registered for as long as the process lives, and so does this one.
    unsafe { (functions.register)(Box::into_raw(vfs), 0) }
}

/// Makes a call: tells of its failure, and keeps panics here.
fn call(work: impl FnOnce() -> Result<c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => tell(&failure),
        Err(_) => tell(&Failure::new(code::IOERR, "a call failed inside")),
    }
}

/// Makes a call on a file; in a child of the process that opened it, a database's is refused.
fn with(file: *mut c_void, work: impl FnOnce(&mut Body) -> Result<c_int>) -> c_int {
    // SAFETY: invariant 1.
    let file = unsafe { &mut *file.cast::<File>() };
    if file.process != host::process() {
        let text = "a forked child uses its parent's connection; open another one";
        return tell(&Failure::new(code::MISUSE, text));
    }
    // SAFETY: invariant 1.
    let body = unsafe { &mut *file.body };
    call(|| work(body))
}

fn with_database(file: *mut c_void, work: impl FnOnce(&mut Connection) -> Result<c_int>) -> c_int {
    with(file, |body| match body {
        Body::Database(connection) => work(connection),
        Body::Journal(_) => Ok(code::OK),
    })
}

fn parameter(name: *const c_char, key: &CStr) -> Option<String> {
    let host = HOST.get()?;
    // SAFETY: a name that SQLite gave `xOpen`.
    let value = unsafe { (host.functions.uri_parameter)(name, key.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: SQLite's string, which lives as long as the name.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

fn is_set(value: Option<String>) -> bool {
    let value = value.unwrap_or_default().to_ascii_lowercase();
    ["yes", "true", "on"].contains(&value.as_str()) || value.parse().is_ok_and(|number: i64| number != 0)
}

fn bytes(text: &str) -> Result<u64> {
    let bad = || {
        Failure::new(
            code::CANTOPEN,
            format!("size={text} is no number of bytes; write 64M or 1G, for example"),
        )
    };
    let (digits, unit) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1u64),
    };
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(bad)
}

fn open_database(name: *const c_char, flags: c_int) -> Result<Connection> {
    // SAFETY: SQLite's string.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let object = parameter(name, c"object").unwrap_or_else(|| "main.db".into());
    let size = parameter(name, c"size").map(|text| bytes(&text)).transpose()?;
    let (create, read_only) = (flags & open::CREATE != 0, flags & open::READ_ONLY != 0);
    let database = Open { path, object: &object, size, create }.database().map_err(Failure::opening)?;
    // SQLite takes no locks then: the connection reads the state of now.
    let unlocked = [c"nolock", c"immutable"].iter().any(|key| is_set(parameter(name, key)));
    let mut connection = Connection::new(database, read_only || unlocked);
    if unlocked {
        connection.lock(Level::Shared).map_err(Failure::opening)?;
    }
    Ok(connection)
}

unsafe extern "C" fn x_open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut c_void,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let _ = vfs;
    let file = file.cast::<File>();
    // SAFETY: SQLite's memory for the file, of the size that the VFS asked for.
    unsafe { (*file).methods = std::ptr::null() };
    let kept = open::MAIN_DB | open::MAIN_JOURNAL | open::WAL;
    // A rollback looks into journals that a super-journal names: only plain files' can be found.
    let looks = flags & (open::MAIN_JOURNAL | open::READ_WRITE) == open::MAIN_JOURNAL;
    if name.is_null() || flags & kept == 0 || looks {
        // SAFETY: invariant 2; the arguments are SQLite's.
        let opened = unsafe { ((*default()).open)(default(), name, file.cast(), flags, out) };
        if opened == code::OK && !name.is_null() && flags & open::SUPER_JOURNAL != 0 {
            // SAFETY: SQLite's string.
            together::enter(unsafe { CStr::from_ptr(name) }.to_bytes());
        }
        return opened;
    }
    call(|| {
        let body = match flags & kept {
            open::MAIN_DB => Body::Database(open_database(name, flags)?),
            open::WAL => return Err(Failure::new(code::CANTOPEN, "a database in an object has no WAL file")),
            _ => Body::Journal(MemoryFile::default()),
        };
        let mut flags = flags;
        if matches!(&body, Body::Database(connection) if connection.is_read_only()) {
            flags = flags & !(open::READ_WRITE | open::CREATE) | open::READ_ONLY;
        }
        let body = Box::into_raw(Box::new(body));
        let process = host::process();
        // SAFETY: SQLite's memory for the file, and a place for flags, or null.
        unsafe {
            file.write(File { methods: &METHODS, body, process });
            if let Some(out) = out.as_mut() {
                *out = flags;
            }
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn close(file: *mut c_void) -> c_int {
    // SAFETY: invariant 1.
    let file = unsafe { &mut *file.cast::<File>() };
    // A forked child leaves the connection to its parent.
    if file.process == host::process() {
        let body = file.body;
        // SAFETY: invariant 1: made by `x_open`, and not used again.
        call(|| unsafe {
            drop(Box::from_raw(body));
            Ok(code::OK)
        });
    }
    (file.methods, file.body) = (std::ptr::null(), std::ptr::null_mut());
    code::OK
}

unsafe extern "C" fn read(file: *mut c_void, buffer: *mut c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite's buffer of so many bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len as usize) };
    with(file, |body| {
        let whole = match body {
            Body::Database(connection) => connection.read(offset as u64, buffer)?,
            Body::Journal(journal) => journal.read(offset as u64, buffer),
        };
        Ok(if whole { code::OK } else { code::IOERR_SHORT_READ })
    })
}

unsafe extern "C" fn write(file: *mut c_void, bytes: *const c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite's buffer of so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize) };
    with(file, |body| {
        match body {
            Body::Database(connection) => connection.write(offset as u64, bytes)?,
            Body::Journal(journal) => journal.write(offset as u64, bytes),
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn truncate(file: *mut c_void, len: i64) -> c_int {
    with(file, |body| {
        match body {
            Body::Database(connection) => connection.truncate(len as u64)?,
            Body::Journal(journal) => journal.truncate(len as u64),
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn sync(file: *mut c_void, _flags: c_int) -> c_int {
    with_database(file, |connection| connection.sync().map(|()| code::OK))
}

unsafe extern "C" fn file_size(file: *mut c_void, out: *mut i64) -> c_int {
    with(file, |body| {
        let len = match body {
            Body::Database(connection) => connection.len()?,
            Body::Journal(journal) => journal.len(),
        };
        // SAFETY: SQLite's place for it.
        unsafe { *out = len as i64 };
        Ok(code::OK)
    })
}

unsafe extern "C" fn lock(file: *mut c_void, level: c_int) -> c_int {
    with_database(file, |connection| {
        let level = match level {
            0 => Level::None,
            1 => Level::Shared,
            2 => Level::Reserved,
            _ => Level::Exclusive,
        };
        connection.lock(level).map(|()| code::OK)
    })
}

unsafe extern "C" fn unlock(file: *mut c_void, level: c_int) -> c_int {
    with_database(file, |connection| {
        connection.unlock(if level == 0 { Level::None } else { Level::Shared });
        Ok(code::OK)
    })
}

unsafe extern "C" fn check_reserved_lock(file: *mut c_void, out: *mut c_int) -> c_int {
    with_database(file, |connection| {
        // SAFETY: SQLite's place for it.
        unsafe { *out = c_int::from(connection.is_reserved()) };
        Ok(code::OK)
    })
}

unsafe extern "C" fn file_control(file: *mut c_void, operation: c_int, argument: *mut c_void) -> c_int {
    with(file, |body| {
        let Body::Database(connection) = body else { return Ok(code::NOTFOUND) };
        match operation {
            control::LOCK_STATE => {
                let level = [0, 1, 2, 4][connection.level() as usize];
                // SAFETY: the operation's argument.
                unsafe { *argument.cast::<c_int>() = level };
            }
            control::SIZE_HINT => {
                // SAFETY: the operation's argument.
                let length = unsafe { *argument.cast::<i64>() };
                connection.make_room(length.max(0) as u64)?;
            }
            // SAFETY: the operation's argument.
            control::HAS_MOVED => unsafe { *argument.cast::<c_int>() = 0 },
            // SQLite syncs no commit with synchronous=OFF, nor a file that it cuts after the sync.
            control::COMMIT_PHASE_TWO => connection.committed()?,
            // SAFETY: the argument of a function of SQL, which waits for the answer.
            control::REQUEST => request::run(connection, unsafe { &mut *argument.cast() }),
            control::SYNC => {
                // SAFETY: the name of a super-journal, or null.
                let journal = (!argument.is_null()).then(|| unsafe { CStr::from_ptr(argument.cast()) });
                connection.announce(journal.map(CStr::to_bytes))?;
            }
            control::MMAP_SIZE => {
                // SAFETY: the operation's argument.
                let limit = unsafe { &mut *argument.cast::<i64>() };
                *limit = connection.set_mapped(*limit);
            }
            // SAFETY: the operation's argument, which points at a `sqlite3*`.
            control::CONNECTION => connection.belong_to(unsafe { *argument.cast::<usize>() }),
            _ => return Ok(code::NOTFOUND),
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn sector_size(_file: *mut c_void) -> c_int {
    SECTOR
}

unsafe extern "C" fn characteristics(_file: *mut c_void) -> c_int {
    CHARACTERISTICS
}

unsafe extern "C" fn shm_lock(_file: *mut c_void, _offset: c_int, _n: c_int, _flags: c_int) -> c_int {
    code::IOERR
}

unsafe extern "C" fn shm_barrier(_file: *mut c_void) {}

unsafe extern "C" fn shm_unmap(_file: *mut c_void, _delete: c_int) -> c_int {
    code::OK
}

unsafe extern "C" fn fetch(file: *mut c_void, offset: i64, len: c_int, out: *mut *mut c_void) -> c_int {
    // SAFETY: SQLite's place for it.
    unsafe { *out = std::ptr::null_mut() };
    with_database(file, |connection| {
        if let Some(pointer) = connection.fetch(offset as u64, len as usize)? {
            // SAFETY: SQLite's place for it. SQLite only reads there.
            unsafe { *out = pointer.cast_mut().cast() };
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn unfetch(file: *mut c_void, _offset: i64, pointer: *mut c_void) -> c_int {
    with_database(file, |connection| {
        if !pointer.is_null() {
            connection.give_back();
        }
        Ok(code::OK)
    })
}

unsafe extern "C" fn delete(_vfs: *mut Vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite's string.
    let text = unsafe { CStr::from_ptr(name) }.to_bytes();
    let commits = sync != 0;
    if !together::is_entered(text) || !commits && memory_file::is_named(text) {
        return code::OK;
    }
    // SQLite syncs the folder of a super-journal whose deletion commits.
    match call(|| together::delete(text, commits).map(|()| code::OK)) {
        // SAFETY: SQLite's arguments.
        code::OK => unsafe { ((*default()).delete)(default(), name, sync) },
        failed => failed,
    }
}

/// Journals are in memory, each for its own connection, and not found. A rollback looks for the
/// super-journal that one of them names, and for journals of plain databases.
unsafe extern "C" fn access(_vfs: *mut Vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    unsafe {
        let named = memory_file::is_named(CStr::from_ptr(name).to_bytes());
        if !named && together::has_super_journals() {
            return ((*default()).access)(default(), name, flags, out);
        }
        *out = c_int::from(named);
    }
    code::OK
}
