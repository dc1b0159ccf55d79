//! Attached objects by address.
//!
//! Invariants:
//! 1. A slot of `ATTACHED` lies at the first byte of its attachment's range; no two ranges overlap,
//!    except with a parent process's.
//! 2. The heap of an [`Attachment`] refers to its range; it is dropped before the range is
//!    unmapped.
//! 3. `EPOCH` grows before a heap is dropped: addresses of it that threads keep in `place` are not
//!    used again.
//!
//! Lock order: `ATTACHED` (never held below another), an attachment's `heap`, the heap's own lock,
//! the attachment's core; of several attachments in the order of their addresses.

#![allow(unsafe_code)]

use super::closed::Closed;
use super::{Audit, Permission};
use crate::error::{Cause, Error, Limit, Result, ViewError};
use crate::heap::{Extent, Growable, RawHeap};
use crate::object::{Attach, AttachOptions, Core, ReadCore, attach_core, attach_reader, prefault};
use crate::pool::Pool;
use crate::sys::fork;
use crate::sys::mmap::Protection;
use crate::sys::per_process::PerProcess;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

pub(super) static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A child has its parent's attachments, to refuse them.
static ATTACHED: PerProcess<RwLock<BTreeMap<usize, Slot>>> = PerProcess::new();

#[derive(Clone)]
struct Slot {
    attachment: Arc<Attachment>,
    count: usize,
    pinned: bool,
}

pub(super) struct Attachment {
    /// Before the mapping (2).
    pub(super) heap: RwLock<Option<Box<RawHeap>>>,
    /// Before the mapping, too.
    pub(super) closed: Closed,
    pub(super) mapping: Mapping,
    pub(super) name: String,
    pub(super) id: [u8; 16],
    links: Mutex<HashMap<u32, Link>>,
    pub(super) base: NonNull<u8>,
    len: AtomicUsize,
    audit: AtomicUsize,
    generation: u32,
}

/// Valid if no heap was closed and nothing detached since `epoch`.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) base: NonNull<u8>,
    pub(super) len: usize,
    pub(super) epoch: u64,
}

pub(super) enum Mapping {
    Writer(Box<Mutex<Core>>),
    Reader(Arc<ReadCore>),
    Beside(Box<Mutex<ReadCore>>),
    /// As `Beside`, at addresses that the kernel chose: these name it, so that it stays there.
    Apart(Box<Mutex<ReadCore>>),
}

// SAFETY: `base` is an address; callers answer for accesses.
unsafe impl Send for Attachment {}
// SAFETY: as above.
unsafe impl Sync for Attachment {}

impl Attachment {
    pub(super) fn core(&self) -> Option<MutexGuard<'_, Core>> {
        match &self.mapping {
            Mapping::Writer(core) => Some(core.lock().unwrap_or_else(PoisonError::into_inner)),
            Mapping::Reader(..) | Mapping::Beside(..) | Mapping::Apart(..) => None,
        }
    }

    pub(super) fn prefault(&self, range: Range<usize>) -> Result<usize, Cause> {
        prefault(range, self.len(), |pages| match &self.mapping {
            Mapping::Writer(core) => core.lock().unwrap_or_else(PoisonError::into_inner).prefault(pages),
            Mapping::Reader(core) => core.prefault(pages),
            Mapping::Beside(core) | Mapping::Apart(core) => {
                core.lock().unwrap_or_else(PoisonError::into_inner).prefault(pages)
            }
        })
    }

    pub(super) fn error(&self, operation: &'static str, cause: impl Into<Cause>) -> Error {
        Error::new(operation, cause).object(&self.name)
    }

    pub(super) fn start(&self) -> usize {
        self.base.addr().get()
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn is_writable(&self) -> bool {
        matches!(self.mapping, Mapping::Writer(..))
    }

    pub(super) fn is_explicit(&self) -> bool {
        self.core().and_then(|core| core.marks()).is_some_and(|(_, explicit)| explicit)
    }

    pub(super) fn patience(&self) -> Duration {
        self.core().map_or(Duration::ZERO, |core| core.patience())
    }

    pub(super) fn audit(&self) -> Audit {
        Audit::ALL[self.audit.load(Ordering::Relaxed)]
    }

    pub(super) fn set_audit(&self, audit: Audit) {
        let place = Audit::ALL.iter().position(|known| *known == audit);
        self.audit.store(place.unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn extent(&self) -> Extent {
        let core = self.core();
        Extent {
            base: self.base,
            len: self.len(),
            writable: core.is_some(),
            marks: core
                .as_ref()
                .and_then(|core| core.marks())
                .and_then(|(marks, explicit)| explicit.then_some(marks)),
            reach: core.map_or(0, |core| core.reach()),
        }
    }

    pub(super) fn link(&self, entry: u32) -> Option<Link> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).get(&entry).copied()
    }

    pub(super) fn set_link(&self, entry: u32, link: Link) {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).insert(entry, link);
    }

    pub(super) fn close_heap(&self) {
        close(&mut self.heap.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn close(&self) {
        self.close_heap();
        self.closed.clear();
    }
}

pub(super) fn close(heap: &mut Option<Box<RawHeap>>) {
    EPOCH.fetch_add(1, Ordering::SeqCst);
    *heap = None;
}

impl Growable for Attachment {
    fn mapped(&self) -> usize {
        self.len()
    }

    fn grow(&self, size: usize) -> std::result::Result<(), Limit> {
        let Some(mut core) = self.core() else { return Err(Limit::from(&Cause::ForReading)) };
        let result = core.grow_beside(size as u64);
        self.len.store(core.size(), Ordering::Release);
        result.and_then(|()| self.closed.again(core.size())).map_err(|cause| Limit::from(&cause))
    }

    fn stored(&self, addresses: Range<usize>) {
        if let Some(core) = self.core() {
            core.stored(addresses.start - self.start()..addresses.end - self.start());
        }
    }
}

/// Attaches `name` and returns its address.
pub fn attach(pool: &Pool, name: &str, permission: Permission, key: &[u8]) -> Result<NonNull<u8>> {
    attach_as(pool, name, permission, &Attach::with_key(key))
}

/// As [`attach`], with these options.
pub fn attach_with(
    pool: &Pool,
    name: &str,
    permission: Permission,
    options: &AttachOptions,
) -> Result<NonNull<u8>> {
    let attach = options.attach().map_err(|cause| failed(pool, name, cause))?;
    attach_as(pool, name, permission, &attach)
}

fn failed(pool: &Pool, name: &str, cause: Cause) -> Error {
    Error::new("attach", cause).pool(pool.path()).object(name)
}

fn attach_as(pool: &Pool, name: &str, permission: Permission, how: &Attach<'_>) -> Result<NonNull<u8>> {
    let attached = match permission {
        Permission::Write => {
            attach_core(pool.inner(), name, how).and_then(|core| enter_writer(name, core, false))
        }
        Permission::Read => {
            attach_reader(pool.inner(), name, how).map(|core| enter_reader(name, core, false))
        }
    };
    attached.map_err(|cause| failed(pool, name, cause))
}

pub(super) fn enter_writer(name: &str, mut core: Core, pinned: bool) -> Result<NonNull<u8>, Cause> {
    core.lend_bytes();
    let base = core.shadow()?.base();
    let id = core.writer()?.object().entry.id;
    let (len, mapping) = (core.size(), Mapping::Writer(Box::new(Mutex::new(core))));
    Ok(enter((name, id), base, len, mapping, pinned))
}

pub(super) fn enter_reader(name: &str, core: Arc<ReadCore>, pinned: bool) -> NonNull<u8> {
    let base = NonNull::new(core.base().cast_mut()).unwrap_or(NonNull::dangling());
    let (id, len) = (core.id().unwrap_or_default(), core.len());
    enter((name, id), base, len, Mapping::Reader(core), pinned)
}

/// Attaches the last psynced state of `name`, beside any writer; returns its address: see
/// [`Pool::attach_snapshot_with`]. One that is [anywhere](AttachOptions::anywhere) is no target of
/// far pointers.
pub fn attach_snapshot_with(pool: &Pool, name: &str, options: &AttachOptions) -> Result<NonNull<u8>> {
    let failed = |cause: Cause| failed(pool, name, cause);
    let inner = pool.inner();
    inner.alive().map_err(failed)?;
    let id = inner.store.find(name).map_err(|error| failed(error.into()))?.entry.id;
    let core = ReadCore::beside(inner.clone(), name, options.follows()).map_err(failed)?;
    let base = NonNull::new(core.base().cast_mut()).unwrap_or(NonNull::dangling());
    let (len, core) = (core.len(), Box::new(Mutex::new(core)));
    let mapping = if options.is_anywhere() { Mapping::Apart(core) } else { Mapping::Beside(core) };
    Ok(enter((name, id), base, len, mapping, false))
}

fn enter(
    (name, id): (&str, [u8; 16]),
    base: NonNull<u8>,
    len: usize,
    mapping: Mapping,
    pinned: bool,
) -> NonNull<u8> {
    let reader = matches!(mapping, Mapping::Reader(..));
    let attachment = Arc::new(Attachment {
        heap: RwLock::new(None),
        closed: Closed::default(),
        mapping,
        name: name.to_owned(),
        id,
        links: Mutex::default(),
        base,
        len: AtomicUsize::new(len),
        audit: AtomicUsize::new(0),
        generation: fork::generation(),
    });
    let mut all = ATTACHED.inherited().write().unwrap_or_else(PoisonError::into_inner);
    let before = all.get_mut(&base.addr().get());
    match before.filter(|slot| !fork::is_stale(slot.attachment.generation)) {
        Some(slot) if reader => {
            slot.count += 1;
            slot.pinned |= pinned;
        }
        _ => {
            all.insert(base.addr().get(), Slot { attachment, count: 1, pinned });
        }
    }
    base
}

/// Moves a snapshot of [`attach_snapshot_with`] to the newest psync, as
/// [`ReadObject::refresh`](crate::ReadObject::refresh); returns whether it was newer. `None`:
/// attached otherwise.
///
/// # Errors
/// `NotAttached`, and those of [`ReadObject::refresh`](crate::ReadObject::refresh). After a failed
/// mapping the object has no bytes until this succeeds. `Unsuitable`: it was attached
/// [anywhere](AttachOptions::anywhere), and would lie elsewhere.
///
/// # Safety
/// No other thread uses the object until this returns, and references into it are not used any
/// more.
pub unsafe fn refresh(address: *const u8) -> Result<Option<bool>> {
    let found = match ATTACHED.inherited().read().unwrap_or_else(PoisonError::into_inner).get(&address.addr())
    {
        Some(slot) if !fork::is_stale(slot.attachment.generation) => slot.attachment.clone(),
        _ => find("refresh", address.addr())?,
    };
    let core = match &found.mapping {
        Mapping::Beside(core) => core,
        Mapping::Apart(..) => return Err(found.error("refresh", Cause::StaysAtItsPsync)),
        Mapping::Writer(..) | Mapping::Reader(..) => return Ok(None),
    };
    let mut heap = found.heap.write().unwrap_or_else(PoisonError::into_inner);
    let options = heap.as_ref().map(|heap| heap.options());
    let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise.
    let result = unsafe { core.refresh(|| close(&mut heap)) };
    found.len.store(core.len(), Ordering::Release);
    drop((core, heap));
    if let (Ok(true), Some(options)) = (&result, options) {
        let _ = found.opened(Some(options));
    }
    result.map(Some).map_err(|cause| found.error("refresh", cause))
}

/// Returns the last attachment, to be ended. `None`: there is none.
pub(super) fn remove(key: usize, by_view: bool) -> Option<Result<Option<Arc<Attachment>>>> {
    let mut all = ATTACHED.inherited().write().unwrap_or_else(PoisonError::into_inner);
    let slot = all.get_mut(&key)?;
    if fork::is_stale(slot.attachment.generation) {
        return Some(Err(Error::new("detach", Cause::Forked)));
    }
    if slot.count > 1 {
        slot.count -= 1;
        slot.pinned &= !by_view;
        return Some(Ok(None));
    }
    if slot.pinned && !by_view {
        return Some(Err(slot.attachment.error("detach", ViewError::Pinned)));
    }
    Some(Ok(all.remove(&key).map(|slot| slot.attachment)))
}

pub(super) fn is_attached_once(base: usize) -> bool {
    let all = ATTACHED.inherited().read().unwrap_or_else(PoisonError::into_inner);
    all.get(&base).is_some_and(|slot| slot.count == 1)
}

pub(super) fn attached_by_id(id: &[u8; 16]) -> Option<NonNull<u8>> {
    let all = ATTACHED.inherited().read().unwrap_or_else(PoisonError::into_inner);
    let found = all
        .values()
        .map(|slot| &slot.attachment)
        .filter(|found| !matches!(found.mapping, Mapping::Apart(..)))
        .find(|found| found.id == *id && !fork::is_stale(found.generation));
    found.map(|found| found.base)
}

pub(super) fn find(operation: &'static str, address: usize) -> Result<Arc<Attachment>> {
    let all = ATTACHED.inherited().read().unwrap_or_else(PoisonError::into_inner);
    match all.range(..=address).next_back() {
        Some((base, slot)) if address - base < slot.attachment.len() => {
            if fork::is_stale(slot.attachment.generation) {
                return Err(Error::new(operation, Cause::Forked));
            }
            Ok(slot.attachment.clone())
        }
        _ => Err(Error::new(operation, Cause::NotAttached(address))),
    }
}

/// Grows the object at `address`, and its open heap: see [`Object::grow`](crate::Object::grow).
///
/// # Safety
/// No other thread uses the object until this returns.
pub unsafe fn grow(address: *const u8, size: u64) -> Result<()> {
    let found = find("grow", address.addr())?;
    let heap = found.heap.read().unwrap_or_else(PoisonError::into_inner);
    let len = {
        let Some(mut core) = found.core() else { return Err(found.error("grow", Cause::ForReading)) };
        let opened = found.closed.open(Protection::ReadWrite).map_err(|cause| found.error("grow", cause))?;
        let result = core.grow(size);
        found.len.store(core.size(), Ordering::Release);
        let result = found.closed.again(core.size()).and(result);
        drop(opened);
        result.map_err(|cause| found.error("grow", cause))?;
        core.size()
    };
    // SAFETY: the range that is mapped now.
    let taken = heap.as_ref().map_or(Ok(true), |heap| unsafe { heap.take_in(len) });
    if !taken.map_err(|error| found.error("extend the heap of", Cause::Heap(error)))? {
        drop(heap);
        found.close_heap();
    }
    Ok(())
}
