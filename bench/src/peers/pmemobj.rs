//! libpmemobj: records in the root object, changed in transactions that snapshot what they change.

#![allow(unsafe_code)]

use super::library::{function, load};
use super::{Change, Opened, Peer, Place, RECORD, first_word, initial};
use crate::Result;
use crate::ground::Medium;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

const NAMES: &[&str] = &["libpmemobj.so.1"];
/// TX_PARAM_NONE.
const NO_PARAMETERS: c_uint = 0;

/// PMEMoid.
#[repr(C)]
#[derive(Clone, Copy)]
struct ObjectId {
    pool: u64,
    offset: u64,
}

type Create = unsafe extern "C" fn(*const c_char, *const c_char, usize, libc::mode_t) -> *mut c_void;
type Root = unsafe extern "C" fn(*mut c_void, usize) -> ObjectId;
type Direct = unsafe extern "C" fn(ObjectId) -> *mut u8;
type Persist = unsafe extern "C" fn(*mut c_void, *const u8, usize);
type Begin = unsafe extern "C" fn(*mut c_void, *mut c_void, c_uint, ...) -> c_int;
type AddRange = unsafe extern "C" fn(*const u8, usize) -> c_int;
type Close = unsafe extern "C" fn(*mut c_void);

/// Invariant 1: the pool is open until drop; `base` is the first of `records` records in it; the functions
/// live as long as the library, dropped last.
struct PmemObj {
    pool: *mut c_void,
    base: *mut u8,
    records: u64,
    begin: Begin,
    add_range: AddRange,
    commit: unsafe extern "C" fn(),
    end: unsafe extern "C" fn() -> c_int,
    close: Close,
    _library: Library,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    if place.medium == Medium::Memory {
        // It flushes lines where it knows or is told that pages are memory, and calls msync elsewhere.
        // SAFETY: no other thread of this program reads or changes the environment meanwhile.
        unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", "1") };
    } else {
        // SAFETY: as above.
        unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", "0") };
    }
    let Some(library) = load(NAMES) else {
        return Ok(Opened::Missing("libpmemobj is not installed: bench/install.sh".into()));
    };
    let len = usize::try_from(place.records)? * RECORD;
    let path = CString::new(place.dir.join("records").as_os_str().as_bytes())?;
    // SAFETY: signatures as in libpmemobj.h; used as its manual says.
    let peer = unsafe {
        let create: Create = function(&library, "pmemobj_create")?;
        let pool = create(path.as_ptr(), c"records".as_ptr(), len * 5 / 4 + (64 << 20), 0o600);
        if pool.is_null() {
            let message: unsafe extern "C" fn() -> *const c_char = function(&library, "pmemobj_errormsg")?;
            return Err(format!("libpmemobj: {}", CStr::from_ptr(message()).to_string_lossy()).into());
        }
        let root = function::<Root>(&library, "pmemobj_root")?(pool, len);
        let base = function::<Direct>(&library, "pmemobj_direct")?(root);
        if base.is_null() {
            return Err("libpmemobj: no room for the records".into());
        }
        for record in 0..place.records {
            base.add(record as usize * RECORD).cast::<[u8; RECORD]>().write_unaligned(initial(record));
        }
        function::<Persist>(&library, "pmemobj_persist")?(pool, base, len);
        PmemObj {
            pool,
            base,
            records: place.records,
            begin: function(&library, "pmemobj_tx_begin")?,
            add_range: function(&library, "pmemobj_tx_add_range_direct")?,
            commit: function(&library, "pmemobj_tx_commit")?,
            end: function(&library, "pmemobj_tx_end")?,
            close: function(&library, "pmemobj_close")?,
            _library: library,
        }
    };
    Opened::ready(peer)
}

impl PmemObj {
    fn at(&self, record: u64) -> Result<*mut u8> {
        if record >= self.records {
            return Err("no such record".into());
        }
        // SAFETY: within the records (1).
        Ok(unsafe { self.base.add(record as usize * RECORD) })
    }
}

impl Peer for PmemObj {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        // SAFETY: (1); each range is added before it is stored to, and the transaction ended in any case.
        unsafe {
            if (self.begin)(self.pool, ptr::null_mut(), NO_PARAMETERS) != 0 {
                return Err("libpmemobj: no transaction".into());
            }
            for change in changes {
                let at = self.at(change.record)?;
                if (self.add_range)(at, 8) != 0 {
                    (self.end)();
                    return Err("libpmemobj: a range was not taken".into());
                }
                at.cast::<u64>().write_unaligned(change.value);
            }
            (self.commit)();
            match (self.end)() {
                0 => Ok(()),
                code => Err(format!("libpmemobj: a transaction failed with {code}").into()),
            }
        }
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        let at = self.at(record)?;
        // SAFETY: a record (1).
        first_word(unsafe { &*at.cast::<[u8; RECORD]>() })
    }
}

impl Drop for PmemObj {
    fn drop(&mut self) {
        // SAFETY: (1); closed once.
        unsafe { (self.close)(self.pool) };
    }
}
