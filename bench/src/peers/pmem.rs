//! libpmemobj by its manual: a pool in a file, transactions with snapshots, blocks.

#![allow(unsafe_code)]

use super::library::{function, load};
use crate::Result;
use crate::environment::Medium;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const NAMES: &[&str] = &["libpmemobj.so.1"];
pub const MISSING: &str = "libpmemobj is not installed: bench/install.sh";
const NO_PARAMETERS: c_uint = 0;

#[repr(C)]
#[derive(Clone, Copy)]
struct ObjectId {
    pool: u64,
    offset: u64,
}

type Create = unsafe extern "C" fn(*const c_char, *const c_char, usize, libc::mode_t) -> *mut c_void;
type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;
type Root = unsafe extern "C" fn(*mut c_void, usize) -> ObjectId;
type Direct = unsafe extern "C" fn(ObjectId) -> *mut u8;
type Persist = unsafe extern "C" fn(*mut c_void, *const u8, usize);
type Begin = unsafe extern "C" fn(*mut c_void, *mut c_void, c_uint, ...) -> c_int;
type AddRange = unsafe extern "C" fn(*const u8, usize) -> c_int;
type TxAlloc = unsafe extern "C" fn(usize, u64) -> ObjectId;
type TxFree = unsafe extern "C" fn(ObjectId) -> c_int;
type Constructor = Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int>;
type Alloc = unsafe extern "C" fn(*mut c_void, *mut ObjectId, usize, u64, Constructor, *mut c_void) -> c_int;
type Free = unsafe extern "C" fn(*mut ObjectId);
type Close = unsafe extern "C" fn(*mut c_void);

const LAYOUT: &CStr = c"bench";

/// The library flushes lines where pages are memory and calls msync elsewhere; it keeps that choice
/// while loaded.
fn start(medium: Medium) -> Option<Library> {
    let memory = if medium == Medium::Memory { "1" } else { "0" };
    // SAFETY: no other thread of this program reads or changes the environment meanwhile.
    unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", memory) };
    load(NAMES)
}

/// Invariant 1: the pool is open until drop; its offsets lie behind `base`; the functions live as
/// long as the library, dropped last.
pub struct Pmem {
    pool: *mut c_void,
    id: u64,
    base: *mut u8,
    root: *mut u8,
    direct: Direct,
    persist: Persist,
    begin: Begin,
    add_range: AddRange,
    tx_alloc: TxAlloc,
    tx_zalloc: TxAlloc,
    tx_free: TxFree,
    commit: unsafe extern "C" fn(),
    abort: unsafe extern "C" fn(c_int),
    end: unsafe extern "C" fn() -> c_int,
    alloc: Alloc,
    free: Free,
    close: Close,
    _library: Library,
}

// SAFETY: the library's functions may be called by several threads at once.
unsafe impl Sync for Pmem {}

impl Pmem {
    /// `None` without the library.
    pub fn create(path: &Path, medium: Medium, len: usize, root: usize) -> Result<Option<Pmem>> {
        let Some(library) = start(medium) else { return Ok(None) };
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: signature as in libpmemobj.h; used as its manual says.
        let pool = unsafe {
            function::<Create>(&library, "pmemobj_create")?(path.as_ptr(), LAYOUT.as_ptr(), len, 0o600)
        };
        Pmem::new(library, pool, root).map(Some)
    }

    pub fn open(path: &Path, medium: Medium, root: usize) -> Result<Option<Pmem>> {
        let Some(library) = start(medium) else { return Ok(None) };
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: as in `create`.
        let pool = unsafe { function::<Open>(&library, "pmemobj_open")?(path.as_ptr(), LAYOUT.as_ptr()) };
        Pmem::new(library, pool, root).map(Some)
    }

    fn new(library: Library, pool: *mut c_void, root: usize) -> Result<Pmem> {
        // SAFETY: signatures as in libpmemobj.h; used as its manual says.
        unsafe {
            if pool.is_null() {
                let message: unsafe extern "C" fn() -> *const c_char =
                    function(&library, "pmemobj_errormsg")?;
                return Err(format!("libpmemobj: {}", CStr::from_ptr(message()).to_string_lossy()).into());
            }
            let oid = function::<Root>(&library, "pmemobj_root")?(pool, root);
            let direct = function::<Direct>(&library, "pmemobj_direct")?;
            let root = direct(oid);
            if root.is_null() {
                return Err("libpmemobj: no room for the root object".into());
            }
            Ok(Pmem {
                pool,
                id: oid.pool,
                base: root.sub(usize::try_from(oid.offset)?),
                root,
                direct,
                persist: function(&library, "pmemobj_persist")?,
                begin: function(&library, "pmemobj_tx_begin")?,
                add_range: function(&library, "pmemobj_tx_add_range_direct")?,
                tx_alloc: function(&library, "pmemobj_tx_alloc")?,
                tx_zalloc: function(&library, "pmemobj_tx_zalloc")?,
                tx_free: function(&library, "pmemobj_tx_free")?,
                commit: function(&library, "pmemobj_tx_commit")?,
                abort: function(&library, "pmemobj_tx_abort")?,
                end: function(&library, "pmemobj_tx_end")?,
                alloc: function(&library, "pmemobj_alloc")?,
                free: function(&library, "pmemobj_free")?,
                close: function(&library, "pmemobj_close")?,
                _library: library,
            })
        }
    }

    pub fn root(&self) -> *mut u8 {
        self.root
    }

    #[inline]
    pub fn at<T>(&self, offset: u64) -> *mut T {
        self.base.wrapping_add(offset as usize).cast()
    }

    pub fn offset(&self, at: *mut u8) -> u64 {
        (at.addr() - self.base.addr()) as u64
    }

    /// As [`at`](Pmem::at), by the library's own pointers.
    #[inline]
    pub fn follow<T>(&self, offset: u64) -> *mut T {
        // SAFETY: (1).
        unsafe { (self.direct)(ObjectId { pool: self.id, offset }) }.cast()
    }

    /// # Safety
    /// They lie in the pool.
    pub unsafe fn persist(&self, at: *const u8, len: usize) {
        // SAFETY: (1).
        unsafe { (self.persist)(self.pool, at, len) }
    }

    pub fn transaction<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R>) -> Result<R> {
        let result = work(&self.begin()?);
        // SAFETY: begun just now.
        unsafe { self.finish(result) }
    }

    /// Begins a transaction of this thread, which [`finish`](Pmem::finish) ends.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        // SAFETY: (1).
        match unsafe { (self.begin)(self.pool, ptr::null_mut(), NO_PARAMETERS) } {
            0 => Ok(Transaction(self)),
            code => Err(format!("libpmemobj: no transaction: {code}").into()),
        }
    }

    /// # Safety
    /// This thread has begun one.
    pub unsafe fn under_way(&self) -> Transaction<'_> {
        Transaction(self)
    }

    /// Commits the transaction, or aborts it if the work failed.
    ///
    /// # Safety
    /// This thread has begun one.
    pub unsafe fn finish<R>(&self, result: Result<R>) -> Result<R> {
        // SAFETY: the caller's promise.
        unsafe {
            match &result {
                Ok(_) => (self.commit)(),
                Err(error) if error.is::<Refused>() => {}
                Err(_) => (self.abort)(libc::ECANCELED),
            }
            match (self.end)() {
                0 => result,
                code => result.and(Err(format!("libpmemobj: a transaction failed with {code}").into())),
            }
        }
    }

    /// A durable block by the library's atomic allocation; null without room.
    #[inline]
    pub fn malloc(&self, size: usize) -> *mut u8 {
        let mut oid = ObjectId { pool: 0, offset: 0 };
        // SAFETY: (1).
        let failed = unsafe { (self.alloc)(self.pool, &raw mut oid, size, 0, None, ptr::null_mut()) } != 0;
        if failed { ptr::null_mut() } else { self.at(oid.offset) }
    }

    /// Frees a block, atomically and durably.
    ///
    /// # Safety
    /// The block is of this pool and unused.
    #[inline]
    pub unsafe fn give(&self, block: *mut u8) {
        let mut oid = ObjectId { pool: self.id, offset: (block.addr() - self.base.addr()) as u64 };
        // SAFETY: (1), and the caller's promise.
        unsafe { (self.free)(&raw mut oid) }
    }
}

#[derive(Debug)]
struct Refused(&'static str);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "libpmemobj: {}", self.0)
    }
}

impl std::error::Error for Refused {}

pub struct Transaction<'a>(&'a Pmem);

impl Transaction<'_> {
    /// # Safety
    /// They lie in the pool.
    #[inline]
    pub unsafe fn add(&self, at: *const u8, len: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        match unsafe { (self.0.add_range)(at, len) } {
            0 => Ok(()),
            _ => Err(Refused("a range was not taken").into()),
        }
    }

    pub fn alloc(&self, len: usize, zeroed: bool) -> Result<u64> {
        let alloc = if zeroed { self.0.tx_zalloc } else { self.0.tx_alloc };
        // SAFETY: within a transaction.
        match unsafe { alloc(len, 0) }.offset {
            0 => Err(Refused("no room").into()),
            offset => Ok(offset),
        }
    }

    /// Frees a block at the commit.
    ///
    /// # Safety
    /// The offset of an unused block of the pool.
    pub unsafe fn free(&self, offset: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        match unsafe { (self.0.tx_free)(ObjectId { pool: self.0.id, offset }) } {
            0 => Ok(()),
            _ => Err(Refused("a block was not freed").into()),
        }
    }
}

impl Drop for Pmem {
    fn drop(&mut self) {
        // SAFETY: (1); closed once.
        unsafe { (self.close)(self.pool) };
    }
}
