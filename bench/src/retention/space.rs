use crate::Result;
use crate::environment::{Environment, Medium};
use crate::peers::pmem::{MISSING, Pmem};
use indelible::{CreateOptions, Heap, Pool, Tracking};
use std::path::PathBuf;

pub trait Space {
    fn alloc(&mut self, bytes: usize) -> *mut u8;

    /// Frees a block at the end of the step.
    ///
    /// # Safety
    /// An unreferenced block of `alloc`.
    unsafe fn free(&mut self, block: *mut u8);

    fn change(&mut self, at: *mut u8, len: usize);

    fn step<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Result<R>;

    fn stored(&mut self) -> u64;

    fn durable(&mut self) -> u64 {
        0
    }

    fn extended(&mut self) -> u64 {
        0
    }
}

/// A heap of Indelible, at a fixed place: its addresses are registered.
pub struct Own {
    heap: Box<Heap>,
    _pool: Pool,
    path: PathBuf,
    explicit: bool,
    stored: u64,
}

impl Own {
    pub fn new(environment: &Environment, name: &str, tracking: Tracking, len: u64) -> Result<Own> {
        let path = environment.path(Medium::Memory, name);
        let pool_len = len + (len / 4).max(64 << 20);
        let pool = environment.pool_tracking(Medium::Memory, tracking, name, pool_len)?;
        pool.create_with("maps", &CreateOptions::new(len))?;
        let mut heap = Box::new(Heap::format(pool.attach("maps")?)?);
        // Its containers are found by address from here on.
        heap.root_or_default::<u64>("registered")?;
        heap.psync()?;
        Ok(Own { heap, _pool: pool, path, explicit: tracking == Tracking::Explicit, stored: 0 })
    }

    fn mark(&mut self, at: *mut u8, len: usize) {
        self.stored += len as u64;
        if self.explicit {
            let offset = at.addr() - self.heap.base().addr();
            self.heap.object().mark_dirty(offset..offset + len);
        }
    }
}

impl Space for Own {
    #[inline]
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        let block = self.heap.calloc(1, bytes).expect("the heap has room").as_ptr();
        self.mark(block, bytes);
        block
    }

    #[inline]
    unsafe fn free(&mut self, block: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.heap.free(block) }.expect("a block");
    }

    #[inline]
    fn change(&mut self, at: *mut u8, len: usize) {
        self.mark(at, len);
    }

    #[inline]
    fn step<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Result<R> {
        let result = work(self);
        self.heap.psync()?;
        Ok(result)
    }

    fn stored(&mut self) -> u64 {
        std::mem::take(&mut self.stored)
    }

    fn durable(&mut self) -> u64 {
        let stats = self.heap.object().stats();
        stats.logged_bytes + stats.direct_bytes
    }

    /// As if all blocks were extensions; callers subtract two values without other allocations
    /// between.
    fn extended(&mut self) -> u64 {
        const EXTENSION: u64 = 24 + 8;
        self.heap.stats().expect("a heap").blocks * (EXTENSION + 8)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A pool of libpmemobj. Invariant: blocks are allocated, changed and freed in steps, each a
/// transaction.
pub struct PmemSpace {
    pool: Pmem,
    path: PathBuf,
    stored: u64,
}

impl PmemSpace {
    pub fn new(environment: &Environment, len: u64) -> Result<std::result::Result<PmemSpace, &'static str>> {
        let path = environment.path(Medium::Memory, "retention-pmemobj");
        match Pmem::create(&path, Medium::Memory, len as usize + (64 << 20), 64)? {
            Some(pool) => Ok(Ok(PmemSpace { pool, path, stored: 0 })),
            None => Ok(Err(MISSING)),
        }
    }
}

impl Space for PmemSpace {
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        self.stored += bytes as u64;
        // SAFETY: the invariant.
        let offset = unsafe { self.pool.under_way() }.alloc(bytes, true).expect("the pool has room");
        self.pool.at(offset)
    }

    unsafe fn free(&mut self, block: *mut u8) {
        let offset = (block.addr() - self.pool.at::<u8>(0).addr()) as u64;
        // SAFETY: the invariant, and the caller's promise.
        unsafe { self.pool.under_way().free(offset) }.expect("a block");
    }

    fn change(&mut self, at: *mut u8, len: usize) {
        self.stored += len as u64;
        // SAFETY: the invariant; the bytes lie in the pool.
        unsafe { self.pool.under_way().add(at, len) }.expect("a range of the pool");
    }

    fn step<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Result<R> {
        self.pool.begin()?;
        let result = work(self);
        // SAFETY: begun just now.
        unsafe { self.pool.finish(Ok(result)) }
    }

    fn stored(&mut self) -> u64 {
        std::mem::take(&mut self.stored)
    }
}

impl Drop for PmemSpace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
