//! SQLCipher by its C interface: a row per page, with a write-ahead log synced at each commit.

#![allow(unsafe_code)]

use super::{Opened, Page, Place, SealedPeer, files_below, forget};
use crate::Result;
use crate::pattern::PAGE;
use crate::peers::library::{function, load};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

const NAMES: &[&str] = &["libsqlcipher.so.1", "libsqlcipher.so.0", "libsqlcipher.so"];
const ROW: c_int = 100;
const DONE: c_int = 101;
/// `SQLITE_TRANSIENT`: the library copies the bytes.
const COPIED: *const c_void = -1_isize as *const c_void;

type Handle = *mut c_void;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type Prepare = unsafe extern "C" fn(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int;

/// Functions of the library. Invariant 1: calls come while `library` is loaded, with its handles.
struct Functions {
    open: unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int,
    close: Destroy,
    key: unsafe extern "C" fn(Handle, *const c_void, c_int) -> c_int,
    prepare: Prepare,
    bind_blob: unsafe extern "C" fn(Handle, c_int, *const c_void, c_int, *const c_void) -> c_int,
    bind_int: unsafe extern "C" fn(Handle, c_int, i64) -> c_int,
    step: Destroy,
    finalize: Destroy,
    blob: unsafe extern "C" fn(Handle, c_int) -> *const c_void,
    bytes: unsafe extern "C" fn(Handle, c_int) -> c_int,
    message: unsafe extern "C" fn(Handle) -> *const c_char,
    _library: Library,
}

struct SqlCipher {
    functions: Functions,
    dir: PathBuf,
    database: Handle,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let Some(library) = load(NAMES) else {
        return Ok(Opened::Missing("libsqlcipher is not installed: bench/install.sh".into()));
    };
    // SAFETY: signatures as in sqlite3.h with SQLITE_HAS_CODEC.
    let functions = unsafe {
        Functions {
            open: function(&library, "sqlite3_open")?,
            close: function(&library, "sqlite3_close")?,
            key: function(&library, "sqlite3_key")?,
            prepare: function(&library, "sqlite3_prepare_v2")?,
            bind_blob: function(&library, "sqlite3_bind_blob")?,
            bind_int: function(&library, "sqlite3_bind_int64")?,
            step: function(&library, "sqlite3_step")?,
            finalize: function(&library, "sqlite3_finalize")?,
            blob: function(&library, "sqlite3_column_blob")?,
            bytes: function(&library, "sqlite3_column_bytes")?,
            message: function(&library, "sqlite3_errmsg")?,
            _library: library,
        }
    };
    let mut peer = SqlCipher { functions, dir: place.dir.to_owned(), database: ptr::null_mut() };
    peer.connect()?;
    for statement in ["CREATE TABLE pages (number INTEGER PRIMARY KEY, bytes BLOB)", "BEGIN"] {
        peer.run(statement, None)?;
    }
    for page in 0..place.pages {
        peer.run("INSERT INTO pages (number, bytes) VALUES (?2, ?1)", Some((page, &[0; PAGE])))?;
    }
    peer.run("COMMIT", None)?;
    Ok(Opened::Ready(Box::new(peer)))
}

impl SqlCipher {
    fn connect(&mut self) -> Result<()> {
        if !self.database.is_null() {
            return Ok(());
        }
        let path = CString::new(self.dir.join("pages.db").as_os_str().as_bytes())?;
        // A raw key: deriving one from a passphrase is not measured.
        let key = format!("x'{}'", "5a".repeat(32));
        // SAFETY: (1).
        let (opened, keyed) = unsafe {
            let opened = (self.functions.open)(path.as_ptr(), &raw mut self.database);
            (opened, (self.functions.key)(self.database, key.as_ptr().cast(), key.len() as c_int))
        };
        if opened != 0 || keyed != 0 {
            return Err(format!("SQLCipher: {}", self.message()).into());
        }
        for pragma in
            ["PRAGMA cipher_page_size = 4096", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"]
        {
            self.run(pragma, None)?;
        }
        Ok(())
    }

    fn message(&self) -> String {
        // SAFETY: (1); the message is valid until the next call.
        unsafe { CStr::from_ptr((self.functions.message)(self.database)) }.to_string_lossy().into_owned()
    }

    fn prepare(&self, sql: &str) -> Result<Handle> {
        let mut statement = ptr::null_mut();
        // SAFETY: (1); the text has this length.
        let done = unsafe {
            let (text, len) = (sql.as_ptr().cast(), sql.len() as c_int);
            (self.functions.prepare)(self.database, text, len, &raw mut statement, ptr::null_mut())
        };
        if done == 0 { Ok(statement) } else { Err(format!("SQLCipher: {}", self.message()).into()) }
    }

    fn run(&self, sql: &str, page: Option<(usize, &Page)>) -> Result<()> {
        let statement = self.prepare(sql)?;
        // SAFETY: (1); the library copies the page.
        let done = unsafe {
            if let Some((number, bytes)) = page {
                (self.functions.bind_blob)(statement, 1, bytes.as_ptr().cast(), PAGE as c_int, COPIED);
                (self.functions.bind_int)(statement, 2, number as i64);
            }
            let mut done = ROW;
            while done == ROW {
                done = (self.functions.step)(statement);
            }
            (self.functions.finalize)(statement);
            done
        };
        if done == DONE { Ok(()) } else { Err(format!("SQLCipher: {}", self.message()).into()) }
    }

    fn disconnect(&mut self) {
        if !self.database.is_null() {
            // SAFETY: (1); no statement is left.
            unsafe { (self.functions.close)(self.database) };
            self.database = ptr::null_mut();
        }
    }
}

impl SealedPeer for SqlCipher {
    fn write(&mut self, page: usize, bytes: &Page) -> Result<()> {
        self.connect()?;
        self.run("UPDATE pages SET bytes = ?1 WHERE number = ?2", Some((page, bytes)))
    }

    fn cool(&mut self) -> Result<()> {
        self.disconnect();
        files_below(&self.dir)?.iter().try_for_each(|path| forget(path))
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.connect()?;
        let statement = self.prepare("SELECT bytes FROM pages ORDER BY number")?;
        // SAFETY: (1); a row's bytes are valid until the next step.
        let done = unsafe {
            loop {
                let done = (self.functions.step)(statement);
                if done != ROW {
                    break done;
                }
                let len = (self.functions.bytes)(statement, 0) as usize;
                see(std::slice::from_raw_parts((self.functions.blob)(statement, 0).cast(), len));
            }
        };
        // SAFETY: (1).
        unsafe { (self.functions.finalize)(statement) };
        if done == DONE { Ok(()) } else { Err(format!("SQLCipher: {}", self.message()).into()) }
    }
}

impl Drop for SqlCipher {
    fn drop(&mut self) {
        self.disconnect();
    }
}
