//! RocksDB by its C interface: a log-structured merge tree, its log synced at each commit.

#![allow(unsafe_code)]

use super::library::{function, load};
use super::{Change, Opened, Peer, Place, RECORD, first_word, initial, set_first_word};
use crate::Result;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

const NAMES: &[&str] = &["librocksdb.so.7.8", "librocksdb.so.8.9", "librocksdb.so.9.10", "librocksdb.so"];
const PIECE: u64 = 10_000;

type Handle = *mut c_void;
type New = unsafe extern "C" fn() -> Handle;
type Delete = unsafe extern "C" fn(Handle);
type Put = unsafe extern "C" fn(Handle, *const c_char, usize, *const c_char, usize);
type Write = unsafe extern "C" fn(Handle, Handle, Handle, *mut *mut c_char);
type Get =
    unsafe extern "C" fn(Handle, Handle, *const c_char, usize, *mut usize, *mut *mut c_char) -> *mut c_char;

/// Invariant 1: the handles live until drop, the functions as long as the library, dropped last.
struct RocksDb {
    database: Handle,
    durable: Handle,
    plain: Handle,
    reading: Handle,
    batch: Handle,
    put: Put,
    clear: Delete,
    write: Write,
    get: Get,
    free: unsafe extern "C" fn(*mut c_void),
    close: Delete,
    _library: Library,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let Some(library) = load(NAMES) else {
        return Ok(Opened::Missing("librocksdb is not installed: bench/install.sh".into()));
    };
    // SAFETY: signatures as in rocksdb/c.h; handles are used as it says.
    let mut peer = unsafe {
        let new = |name| function::<New>(&library, name);
        let options = new("rocksdb_options_create")?();
        let set: unsafe extern "C" fn(Handle, c_uchar) =
            function(&library, "rocksdb_options_set_create_if_missing")?;
        set(options, 1);
        let compression: unsafe extern "C" fn(Handle, c_int) =
            function(&library, "rocksdb_options_set_compression")?;
        compression(options, 0);
        let durable = new("rocksdb_writeoptions_create")?();
        let sync: unsafe extern "C" fn(Handle, c_uchar) =
            function(&library, "rocksdb_writeoptions_set_sync")?;
        sync(durable, 1);
        let path = CString::new(place.dir.join("records").as_os_str().as_bytes())?;
        let open: unsafe extern "C" fn(Handle, *const c_char, *mut *mut c_char) -> Handle =
            function(&library, "rocksdb_open")?;
        let mut error = ptr::null_mut();
        let database = open(options, path.as_ptr(), &raw mut error);
        succeeded(error)?;
        RocksDb {
            database,
            durable,
            plain: new("rocksdb_writeoptions_create")?(),
            reading: new("rocksdb_readoptions_create")?(),
            batch: new("rocksdb_writebatch_create")?(),
            put: function(&library, "rocksdb_writebatch_put")?,
            clear: function(&library, "rocksdb_writebatch_clear")?,
            write: function(&library, "rocksdb_write")?,
            get: function(&library, "rocksdb_get")?,
            free: function(&library, "rocksdb_free")?,
            close: function(&library, "rocksdb_close")?,
            _library: library,
        }
    };
    for from in (0..place.records).step_by(PIECE as usize) {
        for record in from..(from + PIECE).min(place.records) {
            peer.put(record, &initial(record));
        }
        peer.write(false)?;
    }
    Opened::ready(peer)
}

fn succeeded(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a message of the library; left to it, as the run ends.
    Err(unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned().into())
}

impl RocksDb {
    fn put(&mut self, record: u64, bytes: &[u8; RECORD]) {
        let key = record.to_be_bytes();
        // SAFETY: (1); the library copies both.
        unsafe { (self.put)(self.batch, key.as_ptr().cast(), key.len(), bytes.as_ptr().cast(), RECORD) }
    }

    fn write(&mut self, durable: bool) -> Result<()> {
        let options = if durable { self.durable } else { self.plain };
        let mut error = ptr::null_mut();
        // SAFETY: (1).
        unsafe {
            (self.write)(self.database, options, self.batch, &raw mut error);
            (self.clear)(self.batch);
        }
        succeeded(error)
    }

    fn get(&mut self, record: u64) -> Result<[u8; RECORD]> {
        let key = record.to_be_bytes();
        let (mut len, mut error) = (0, ptr::null_mut());
        // SAFETY: (1); what it returns is freed below.
        let value = unsafe {
            (self.get)(
                self.database,
                self.reading,
                key.as_ptr().cast(),
                key.len(),
                &raw mut len,
                &raw mut error,
            )
        };
        succeeded(error)?;
        if value.is_null() || len != RECORD {
            return Err("a record is gone".into());
        }
        // SAFETY: `len` bytes of the library's, freed once.
        unsafe {
            let bytes = value.cast::<[u8; RECORD]>().read_unaligned();
            (self.free)(value.cast());
            Ok(bytes)
        }
    }
}

impl Peer for RocksDb {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        for change in changes {
            let mut bytes = self.get(change.record)?;
            set_first_word(&mut bytes, change.value)?;
            self.put(change.record, &bytes);
        }
        self.write(true)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        first_word(&self.get(record)?)
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: (1); closed once. The small handles end with the process.
        unsafe { (self.close)(self.database) };
    }
}
