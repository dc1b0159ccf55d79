#![allow(unsafe_code)]

use super::engine::Core;
use super::origin::Trust;
use super::stats::PsyncStats;
use super::together::psync_cores;
use crate::dirty::DirtyLines;
use crate::error::{Cause, Error, Result};
use crate::events;
use crate::plain::{Plain, frozen, placed};
use crate::pool::{Inner as PoolInner, LaneUse, Stat};
use indelible_store::format::entry::FLAG_POSITION_INDEPENDENT;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// An object attached for writing, by this process alone. Stores since the last
/// [`psync`](Object::psync) are lost by a drop or a death.
///
/// Storing during psync does not compile:
///
/// ```compile_fail
/// # fn example(object: &mut indelible::Object) -> indelible::Result<()> {
/// let count = object.root_mut::<u64>()?;
/// object.psync()?; // error: `object` is borrowed
/// *count += 1;
/// # Ok(()) }
/// ```
pub struct Object {
    core: Mutex<Core>,
    base: *mut u8,
    pub(super) len: AtomicUsize,
    marks: Arc<DirtyLines>,
    explicit: bool,
    /// Only code that marks its stores has addresses in the object. Changes under the lock of
    /// `core`.
    pub(super) typed: AtomicBool,
    pub(super) pool: Arc<PoolInner>,
    pub(super) name: String,
    pub(super) foreign: bool,
}

// SAFETY: `base` is owned mapped memory; access to it follows Rust's borrowing of `Object`.
unsafe impl Send for Object {}
// SAFETY: shared references only read bytes, of types without atomics (`frozen`), and `psync_cut`
// synchronises by `core`. Only `Shared` stores through one, and is `Sync` only if its value is.
unsafe impl Sync for Object {}

impl Object {
    pub(crate) fn new(pool: Arc<PoolInner>, name: &str, core: Core) -> Result<Self, Cause> {
        let (base, len) = (core.shadow()?.base().as_ptr(), AtomicUsize::new(core.size()));
        let (marks, explicit) = core.marks().unwrap_or_default();
        let recovered = core.writer().map_or(0, |writer| writer.recovered().lane_bytes);
        let name = core.writer().map_or_else(|_| name.to_owned(), |writer| writer.object().entry.name());
        events::attached(&name, core.size(), recovered);
        let (foreign, typed) = (core.trust == Trust::Foreign, AtomicBool::new(core.is_typed()));
        Ok(Object { core: Mutex::new(core), base, len, marks, explicit, typed, pool, name, foreign })
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn core_mut(&mut self) -> &mut Core {
        self.core.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn error(&self, operation: &'static str, cause: Cause) -> Error {
        let error = Error::new(operation, cause).pool(&self.pool.path).object(&self.name);
        events::failed(&error);
        error
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size in bytes. Growth zeroes the rest of the last page.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Never: an object has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First byte: the object's fixed address, the same in every process and every run.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.base
    }

    /// First byte, for storing. With explicit tracking, mark stores with
    /// [`mark_dirty`](Object::mark_dirty).
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lend_bytes();
        self.base
    }

    /// The object's bytes, with stores not yet psynced.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: mapped and readable until drop; stores need `&mut self` or the user's `unsafe`.
        unsafe { std::slice::from_raw_parts(self.base, self.len()) }
    }

    /// The object's bytes, for storing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.lend_bytes();
        self.stored(0..self.len());
        // SAFETY: as for `as_slice`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len()) }
    }

    /// Some of the object's bytes, for storing.
    ///
    /// # Panics
    /// If the range lies outside the object.
    #[must_use]
    pub fn range_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.lend_bytes();
        self.stored(range.clone());
        // SAFETY: as for `as_mut_slice`.
        let all = unsafe { std::slice::from_raw_parts_mut(self.base, self.len()) };
        &mut all[range]
    }

    /// The value at the start of the object; zeros at first. Types with atomics do not compile, as
    /// plain references to the same bytes may exist: see [`share`](Object::share).
    ///
    /// ```compile_fail,E0080
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # fn example(object: &indelible::Object) -> indelible::Result<()> {
    /// let plain = object.root::<u64>()?;
    /// object.root::<AtomicU64>()?.store(1, Ordering::Relaxed); // changes what `plain` refers to
    /// # let _ = plain;
    /// # Ok(()) }
    /// # let _ = example as fn(_) -> _;
    /// ```
    ///
    /// ```compile_fail,E0080
    /// #[derive(indelible::Plain)]
    /// #[repr(C, align(8192))]
    /// struct Wide([u64; 1024]); // objects begin at multiples of 4096
    /// # fn example(object: &indelible::Object) { let _ = object.root::<Wide>(); }
    /// # let _ = example as fn(_) -> _;
    /// ```
    ///
    /// # Errors
    /// `BadSize` if the object is smaller than a `T`.
    pub fn root<T: Plain>(&self) -> Result<&T> {
        const { frozen::<T>() };
        self.check_root::<T>()?;
        // SAFETY: large enough, page-aligned, every bit pattern is a T; borrowed as `self` is.
        Ok(unsafe { &*self.base.cast::<T>() })
    }

    /// The value at the start of the object, for storing.
    ///
    /// # Errors
    /// `BadSize` if the object is smaller than a `T`.
    pub fn root_mut<T: Plain>(&mut self) -> Result<&mut T> {
        self.check_root::<T>()?;
        self.lend_bytes();
        self.stored(0..size_of::<T>());
        // SAFETY: as for `root`, and borrowed exclusively.
        Ok(unsafe { &mut *self.base.cast::<T>() })
    }

    pub(super) fn check_root<T: Plain>(&self) -> Result<()> {
        const { placed::<T>() };
        if size_of::<T>() <= self.len() {
            return Ok(());
        }
        Err(self.error("use the root of", Cause::RootTooLarge { needed: size_of::<T>(), size: self.len() }))
    }

    pub(crate) fn is_position_independent(&self) -> bool {
        self.core().writer().is_ok_and(|writer| writer.object().entry.has(FLAG_POSITION_INDEPENDENT))
    }

    pub(crate) fn pool_path(&self) -> &std::path::Path {
        &self.pool.path
    }

    pub(crate) fn id(&self) -> Result<[u8; 16]> {
        let id = self.core().writer().map(|writer| writer.object().entry.id);
        id.map_err(|cause| self.error("inspect", cause))
    }

    /// Marks bytes, counted from the object's first, as stored to, so that the next psync compares
    /// them. Any thread may call it at any time; it makes no system call.
    ///
    /// Tracking finds stores through the page tables. Mark others:
    ///
    /// - **Devices that write to pinned pages**: registered buffers of io_uring, RDMA, VFIO, and
    ///   `O_DIRECT` reads begun before a psync and ended after it. Mark the range once when it is
    ///   pinned, and after each such I/O. The first mark keeps the pages in place until detach. A
    ///   [`grow`](Object::grow) that moves the object ends pinning.
    /// - **Tracking `mprotect`**: stores by `/proc/self/mem` or a debugger.
    /// - **Explicit tracking**: every store through a pointer; heap and collections mark theirs.
    ///   Stores without a mark may become durable, or not.
    pub fn mark_dirty(&self, range: Range<usize>) {
        self.marks.mark_pinned(range);
    }

    /// Whether stores through pointers need [marks](Object::mark_dirty): with explicit tracking.
    #[must_use]
    #[inline]
    pub fn needs_marks(&self) -> bool {
        self.explicit
    }

    pub(crate) fn stored(&self, range: Range<usize>) {
        if self.explicit {
            self.marks.mark([range]);
        }
    }

    /// Makes all stores since the last psync durable as one step: a crash leaves all or none.
    ///
    /// # Errors
    /// `NoSpace`, `NoRoom`: nothing is lost; call again. `Gone`: the pool's file was truncated or
    /// deleted. `Io`, `Poisoned`: a write failed; this psync took effect as a whole or not at all.
    /// Then detach all objects of the pool in this process and attach again, which recovers every
    /// acknowledged psync.
    pub fn psync(&mut self) -> Result<()> {
        let done = self.pool.alive().and_then(|()| self.core_mut().psync());
        done.map_err(|cause| self.error("psync", cause))?;
        events::psynced(&self.name, || self.stats().logged_bytes);
        Ok(())
    }

    /// Whether a detach would lose stores; with explicit tracking, marked ones.
    ///
    /// # Errors
    /// Dirty pages cannot be found, or the last psync cannot be read.
    pub fn is_unsynced(&mut self) -> Result<bool> {
        let result = self.pool.alive().and_then(|()| self.core_mut().is_unsynced());
        result.map_err(|cause| self.error("inspect", cause))
    }

    /// Undoes all stores since the last psync; without any psync the object is zeros again. Its
    /// size stays. With explicit tracking, only marked stores are undone.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// let mut object = pool.create_attached("o", 4096)?;
    /// *object.root_mut::<u64>()? = 1;
    /// object.psync()?;
    /// *object.root_mut::<u64>()? = 2;
    /// object.revert()?;
    /// assert_eq!(*object.root::<u64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dirty pages cannot be found, or the last psync cannot be read: nothing was undone.
    /// `Poisoned` after a psync that may have taken effect: attach again.
    pub fn revert(&mut self) -> Result<()> {
        let result = self.pool.alive().and_then(|()| self.core_mut().revert());
        self.foreign = self.core_mut().trust == Trust::Foreign;
        result.map_err(|cause| self.error("revert", cause))
    }

    pub(super) fn prefault_piece(&self, pages: Range<usize>) -> Result<usize, Cause> {
        self.pool.alive().and_then(|()| self.core().prefault(pages))
    }

    pub(crate) fn check_alive(&self, operation: &'static str) -> Result<()> {
        self.pool.alive().map_err(|cause| self.error(operation, cause))
    }

    pub(crate) fn patience(&self) -> std::time::Duration {
        self.pool.store.patience()
    }

    #[inline]
    pub(crate) fn explicit_marks(&self) -> Option<&Arc<DirtyLines>> {
        self.explicit.then_some(&self.marks)
    }

    /// Writes psynced data to its final place, which shortens recovery; psync does this when the
    /// lane is full.
    ///
    /// # Errors
    /// `Io`: the object is poisoned.
    pub fn checkpoint(&self) -> Result<()> {
        let mut core = self.core();
        let result = self.pool.alive().and_then(|()| core.checkpoint());
        result.map_err(|cause| self.error("checkpoint", cause))
    }

    /// Detaches: the bytes become inaccessible. Stores not psynced are lost.
    ///
    /// # Errors
    /// Psynced data is safe in any case; after an error the next attach recovers it.
    pub fn detach(mut self) -> Result<()> {
        let result = self.pool.alive().and_then(|()| self.core_mut().detach());
        result.map_err(|cause| self.error("detach", cause))
    }

    /// State, size, holder and more, of this object.
    pub fn stat(&self) -> Result<Stat> {
        let object = self.core().writer().map(|writer| *writer.object());
        let object = object.map_err(|cause| self.error("inspect", cause))?;
        self.pool.stat_attached(&self.name, &object)
    }

    /// Psyncs of this object that changed it, over its life.
    #[must_use]
    pub fn psyncs(&self) -> u64 {
        self.core().writer().map_or(0, |writer| writer.psyncs())
    }

    /// Bytes of lane that the attach replayed; 0 if the last writer detached.
    #[must_use]
    pub fn recovered_bytes(&self) -> u64 {
        self.core().writer().map_or(0, |writer| writer.recovered().lane_bytes)
    }

    /// The tracking rung: "wp-async", "mprotect" or "explicit".
    #[must_use]
    pub fn rung(&self) -> String {
        self.core()
            .shadow()
            .ok()
            .and_then(|shadow| shadow.rung())
            .map_or_else(String::new, |rung| rung.to_string())
    }

    /// Counters of psync since the attach.
    #[must_use]
    pub fn stats(&self) -> PsyncStats {
        self.core().tracked.stats
    }

    /// Switches timing in [`stats`](Object::stats) on or off.
    pub fn set_timed(&mut self, timed: bool) {
        let core = self.core_mut();
        core.tracked.stats.timed = timed;
        if let Ok(writer) = core.writer() {
            writer.set_timed(timed);
        }
    }

    /// Counters of the object's lane in this process.
    #[must_use]
    pub fn lane_use(&self) -> LaneUse {
        self.core().writer().map_or_else(|_| LaneUse::default(), |writer| writer.lane_use())
    }
}

/// psync of several objects of one pool as one atomic step: a crash keeps all of them or none.
///
/// # Errors
/// As for [`Object::psync`]; objects of different pools are refused.
pub fn psync_all(objects: &mut [&mut Object]) -> Result<()> {
    let Some(first) = objects.first() else { return Ok(()) };
    let (pool, name) = (first.pool.clone(), first.name.clone());
    let result = pool.alive().and_then(|()| {
        let mut cores: Vec<&mut Core> = objects.iter_mut().map(|object| object.core_mut()).collect();
        psync_cores(&mut cores)
    });
    result.map_err(|cause| Error::new("psync together", cause).pool(&pool.path).object(&name))
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("name", &self.name)
            .field("address", &self.base)
            .field("len", &self.len())
            .finish()
    }
}
