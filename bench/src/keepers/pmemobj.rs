//! libpmemobj: arrays in the root object; everything between two syncs is one transaction, which snapshots pages
//! before a step stores to them.

#![allow(unsafe_code)]

use super::{Keeper, Opened, PAGE, Place, Touched};
use crate::Result;
use crate::ground::Medium;
use crate::peers::library::{function, load};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

const LINE: usize = 64;
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

/// Invariant 1: the pool is open until drop; `arrays` are disjoint and lie in its root object, each at a line;
/// the functions live as long as the library, dropped last.
struct PmemObj {
    pool: *mut c_void,
    arrays: Vec<(*mut u8, usize)>,
    /// Pages that the transaction has snapshots of.
    taken: Vec<Touched>,
    in_transaction: bool,
    failed: Option<c_int>,
    persist: Persist,
    begin: Begin,
    add_range: AddRange,
    commit: unsafe extern "C" fn(),
    end: unsafe extern "C" fn() -> c_int,
    close: Close,
    _library: Library,
}

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Opened> {
    if place.medium == Medium::File {
        let why =
            "On a disk it calls msync for every page that a transaction snapshots: a run takes minutes.";
        return Ok(Opened::Missing(why.into()));
    }
    // It flushes lines where it knows or is told that pages are memory, and calls msync elsewhere.
    // SAFETY: no other thread of this program reads or changes the environment meanwhile.
    unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", "1") };
    let Some(library) = load(&["libpmemobj.so.1"]) else {
        return Ok(Opened::Missing("libpmemobj is not installed: bench/install.sh".into()));
    };
    let room: usize = lengths.iter().map(|len| len.next_multiple_of(LINE)).sum();
    let path = CString::new(place.dir.join("arrays").as_os_str().as_bytes())?;
    // SAFETY: signatures as in libpmemobj.h; used as its manual says.
    let keeper = unsafe {
        let create: Create = function(&library, "pmemobj_create")?;
        // Room for the arrays, for snapshots of all of them, and for what the library needs.
        let pool = create(path.as_ptr(), c"arrays".as_ptr(), room * 3 + (128 << 20), 0o600);
        if pool.is_null() {
            let message: unsafe extern "C" fn() -> *const c_char = function(&library, "pmemobj_errormsg")?;
            return Err(format!("libpmemobj: {}", CStr::from_ptr(message()).to_string_lossy()).into());
        }
        let root = function::<Root>(&library, "pmemobj_root")?(pool, room + LINE);
        let base = function::<Direct>(&library, "pmemobj_direct")?(root);
        if base.is_null() {
            return Err("libpmemobj: no room for the arrays".into());
        }
        let mut at = base.add(base.align_offset(LINE));
        let mut arrays = Vec::with_capacity(lengths.len());
        for len in lengths {
            arrays.push((at, *len));
            at = at.add(len.next_multiple_of(LINE));
        }
        PmemObj {
            pool,
            arrays,
            taken: lengths.iter().map(|len| Touched::new(*len)).collect(),
            in_transaction: false,
            failed: None,
            persist: function(&library, "pmemobj_persist")?,
            begin: function(&library, "pmemobj_tx_begin")?,
            add_range: function(&library, "pmemobj_tx_add_range_direct")?,
            commit: function(&library, "pmemobj_tx_commit")?,
            end: function(&library, "pmemobj_tx_end")?,
            close: function(&library, "pmemobj_close")?,
            _library: library,
        }
    };
    Ok(Opened::Ready(Box::new(keeper)))
}

impl PmemObj {
    fn commit(&mut self) -> Result<()> {
        self.in_transaction = false;
        // SAFETY: (1); a transaction of this thread is open. One that failed has aborted.
        let code = unsafe {
            if self.failed.is_none() {
                (self.commit)();
            }
            (self.end)()
        };
        match self.failed.take().unwrap_or(code) {
            0 => Ok(()),
            code => Err(format!("libpmemobj: a transaction failed with {code}").into()),
        }
    }
}

impl Keeper for PmemObj {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        // SAFETY: (1); borrowed with self.
        let array = |(base, len): &(*mut u8, usize)| unsafe { std::slice::from_raw_parts_mut(*base, *len) };
        self.arrays.iter().map(array).collect()
    }

    fn asks_before(&self) -> bool {
        true
    }

    fn before(&mut self, array: usize, bytes: Range<usize>) {
        let (base, len) = self.arrays[array];
        let taken = &mut self.taken[array];
        let pages = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        let mut from = pages.start;
        while from < pages.end {
            let has = |page: usize| taken.has(page);
            let Some(first) = (from..pages.end).find(|page| !has(*page)) else { break };
            let last = (first..pages.end).find(|page| has(*page)).unwrap_or(pages.end);
            let range = first * PAGE..(last * PAGE).min(len);
            taken.add(range.clone());
            // SAFETY: within an array (1), in a transaction of this thread.
            match unsafe { (self.add_range)(base.add(range.start), range.len()) } {
                0 => {}
                code => self.failed = Some(code),
            }
            from = last;
        }
    }

    fn sync(&mut self, _: &mut [Touched]) -> Result<()> {
        if self.in_transaction {
            self.commit()?;
        } else {
            // The arrays were filled: nothing was there before.
            for (base, len) in &self.arrays {
                // SAFETY: an array (1).
                unsafe { (self.persist)(self.pool, *base, *len) };
            }
        }
        self.taken.iter_mut().for_each(Touched::clear);
        // SAFETY: (1); no transaction is open.
        match unsafe { (self.begin)(self.pool, ptr::null_mut(), NO_PARAMETERS) } {
            0 => {
                self.in_transaction = true;
                Ok(())
            }
            code => Err(format!("libpmemobj: no transaction: {code}").into()),
        }
    }
}

impl Drop for PmemObj {
    fn drop(&mut self) {
        if self.in_transaction {
            let _ = self.commit();
        }
        // SAFETY: (1); closed once.
        unsafe { (self.close)(self.pool) };
    }
}
