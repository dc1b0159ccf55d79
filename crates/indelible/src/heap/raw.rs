//! A heap in memory that another layer keeps attached.

#![allow(unsafe_code)]

use super::allocator::Allocator;
use super::check::{HeapFinding, check};
use super::directory::Directory;
use super::error::{HeapError, Result};
use super::gate::{Closed, Gate, Refused};
use super::layout::PAGE;
use super::others::OtherObjects;
use super::root::{Root, TypeInfo};
use super::roots;
use super::state::Inner;
use super::surroundings::Audit;
use super::walk::{Block, HeapStats, chunk_blocks, count};
use super::window::Window;
use crate::dirty::DirtyLines;
use crate::far::FarEntry;
use std::ptr::NonNull;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Options of using a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapOptions {
    pub(crate) debug: bool,
    pub(crate) grow: bool,
    pub(crate) audit: Audit,
}

impl HeapOptions {
    /// No extra checks, no growth.
    #[must_use]
    pub fn new() -> Self {
        HeapOptions::default()
    }

    /// Puts guard bytes behind each block and fills freed blocks, and checks both. Costs 16 bytes a
    /// block.
    #[must_use]
    pub fn debug(mut self, debug: bool) -> Self {
        self.debug = debug;
        self
    }

    /// Makes every psync fail with [`StrayPointer`](crate::ErrorKind::StrayPointer), before
    /// anything is durable, while the heap has addresses without meaning in the next run.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Grows a full heap's object by a quarter, or as much as needed, at the same address.
    #[must_use]
    pub fn grow(mut self, grow: bool) -> Self {
        self.grow = grow;
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) base: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) writable: bool,
    pub(crate) marks: Option<Arc<DirtyLines>>,
    pub(crate) reach: usize,
}

pub(crate) struct Quiet<'h> {
    inner: Option<MutexGuard<'h, Inner>>,
    closed: Closed<'h>,
}

impl Quiet<'_> {
    pub(crate) fn open(&mut self) {
        self.inner = None;
        self.closed.open();
    }
}

pub(crate) struct RawHeap {
    pub(super) allocator: Allocator,
    options: HeapOptions,
    others: OtherObjects,
    gate: Gate,
}

impl RawHeap {
    /// # Safety
    /// As for [`open`](RawHeap::open).
    pub(crate) unsafe fn format(extent: &Extent, options: HeapOptions) -> Result<RawHeap> {
        // SAFETY: the caller's promise.
        let window = unsafe { extent.window() };
        if !window.writable {
            return Err(HeapError::ReadOnly);
        }
        Directory::format(&window)?.reserve()?;
        RawHeap::with(window, extent.reach, options)
    }

    /// In constant time.
    ///
    /// # Safety
    /// The extent is mapped, and the object held by this process alone (or for reading), until the
    /// heap is dropped; no other code opens a heap in it, and stores to it go to live blocks.
    pub(crate) unsafe fn open(extent: &Extent, options: HeapOptions) -> Result<RawHeap> {
        // SAFETY: the caller's promise.
        RawHeap::with(unsafe { extent.window() }, extent.reach, options)
    }

    fn with(window: Window, reach: usize, options: HeapOptions) -> Result<RawHeap> {
        let directory = Directory::open(&window)?;
        if window.writable && directory.pages < window.pages() {
            match directory.extend() {
                Ok(()) | Err(HeapError::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let reach = reach as u64 / PAGE;
        let debug = options.debug && window.writable;
        let allocator = Allocator::open(window, reach, debug)?;
        Ok(RawHeap { allocator, options, others: OtherObjects::default(), gate: Gate::default() })
    }

    pub(crate) fn options(&self) -> HeapOptions {
        self.options
    }

    pub(super) fn grows(&self) -> bool {
        self.options.grow
    }

    pub(super) fn window(&self) -> &Window {
        &self.allocator.shared.window
    }

    #[inline]
    pub(super) fn malloc_at_hand(&self, size: usize) -> Option<NonNull<u8>> {
        self.allocator.malloc_at_hand(size)
    }

    #[inline]
    pub(crate) fn malloc(&self, size: usize) -> Result<NonNull<u8>, Box<HeapError>> {
        self.allocator.malloc(size)
    }

    pub(super) fn allocate(&self, size: usize, align: usize, zero: bool) -> Result<NonNull<u8>> {
        self.allocator.allocate(size, align, zero)
    }

    /// # Safety
    /// The block is the caller's, and not used any more.
    #[inline]
    pub(crate) unsafe fn free(&self, address: usize) -> Result<(), Box<HeapError>> {
        // SAFETY: the caller's promise.
        unsafe { self.allocator.free(address) }
    }

    pub(crate) fn expect_free(&self, address: usize) -> Result<()> {
        self.allocator.expect_free(address)
    }

    /// # Safety
    /// As for [`free`](RawHeap::free).
    pub(super) unsafe fn realloc(&self, address: usize, size: usize) -> Result<NonNull<u8>> {
        // SAFETY: the caller's promise.
        unsafe { self.allocator.realloc(address, size) }
    }

    pub(crate) fn usable_size(&self, address: usize) -> Result<usize> {
        self.allocator.usable_size(address)
    }

    /// # Safety
    /// `len` bytes are mapped from now on.
    pub(super) unsafe fn extend(&self, len: usize) -> Result<()> {
        let shared = &self.allocator.shared;
        let mut inner = shared.lock();
        // SAFETY: the caller's promise.
        unsafe { shared.window.extend(len) };
        inner.extend(shared)
    }

    pub(super) fn reach(&self) -> usize {
        self.allocator.shared.table.len() * PAGE as usize
    }

    pub(super) fn growth(old: usize, size: usize, align: usize) -> [usize; 3] {
        let block = old.saturating_add(size).saturating_add(align);
        let most = block.saturating_add(4 << 20);
        let pages = |len: usize| len.saturating_add(PAGE as usize - 1) & !(PAGE as usize - 1);
        [most.max(old.saturating_add(old / 4)), most, block.saturating_add(64 << 10)].map(pages)
    }

    pub(crate) fn enter(&self) {
        self.gate.enter();
    }

    pub(crate) fn leave(&self) {
        self.gate.leave();
    }

    pub(crate) fn quiet(&self, patience: Duration) -> Result<Quiet<'_>> {
        let closed = self.gate.close(patience).map_err(|refused| match refused {
            Refused::Inside => HeapError::Inside,
            Refused::Busy => HeapError::Locked { waited: patience },
        })?;
        Ok(Quiet { inner: Some(self.allocator.shared.lock()), closed })
    }

    pub(super) fn is_inside(&self) -> bool {
        self.gate.is_inside()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = Result<Block>> {
        let chunks = Directory::open(self.window()).map_or(0, |directory| directory.frontier());
        (0..chunks).flat_map(|number| {
            let _inner = self.allocator.shared.lock();
            let mut blocks = Vec::new();
            let result = chunk_blocks(self.window(), number, &mut blocks);
            blocks.into_iter().map(Ok).chain(result.err().map(Err)).collect::<Vec<_>>()
        })
    }

    pub(crate) fn check(&self) -> Vec<HeapFinding> {
        let mut findings = self.check_metadata();
        if findings.is_empty()
            && let Ok(roots) = self.roots()
        {
            let base = self.window().base();
            findings.extend(roots.iter().filter_map(|root| {
                let error = self.allocator.around(root.address, root.size).err()?;
                let offset = root.address.wrapping_sub(base) as u64;
                Some(HeapFinding {
                    offset,
                    what: format!("root {:?} is not in a block in use: {error}", root.name),
                })
            }));
        }
        findings
    }

    fn check_metadata(&self) -> Vec<HeapFinding> {
        let shared = &self.allocator.shared;
        let _inner = shared.lock();
        let mut findings = check(&shared.window);
        if let Some(guard) = &shared.guard {
            findings.extend(guard.check_all(&shared.window).into_iter().map(|error| {
                let offset = match error {
                    HeapError::Overwritten { address, .. } => shared.window.offset_of(address).unwrap_or(0),
                    _ => 0,
                };
                HeapFinding { offset, what: error.to_string() }
            }));
        }
        findings
    }

    pub(crate) fn stats(&self) -> Result<HeapStats> {
        let mut stats = {
            let _inner = self.allocator.shared.lock();
            count(self.window())?
        };
        stats.roots = roots::list(&self.allocator.shared)?.len() as u64;
        Ok(stats)
    }

    pub(crate) fn create_root(&self, name: &str, address: usize, size: u64, ty: &TypeInfo<'_>) -> Result<()> {
        roots::create(&self.allocator.shared, &self.new_root(name, address, size, ty)?)
    }

    pub(crate) fn replace_root(
        &self,
        name: &str,
        address: usize,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        roots::replace(&self.allocator.shared, &self.new_root(name, address, size, ty)?)
    }

    fn new_root(&self, name: &str, address: usize, size: u64, ty: &TypeInfo<'_>) -> Result<Root> {
        if !self.window().writable {
            return Err(HeapError::ReadOnly);
        }
        self.allocator.around(address, size)?;
        Ok(Root {
            name: name.to_owned(),
            address,
            size,
            type_name: ty.name.to_owned(),
            fingerprint: ty.fingerprint,
            layout: ty.layout.to_owned(),
        })
    }

    pub(crate) fn root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        roots::find(&self.allocator.shared, name)?.expect(ty)
    }

    pub(crate) fn root_any(&self, name: &str) -> Result<Root> {
        roots::find(&self.allocator.shared, name)
    }

    pub(crate) fn remove_root(&self, name: &str) -> Result<Root> {
        if !self.window().writable {
            return Err(HeapError::ReadOnly);
        }
        roots::remove(&self.allocator.shared, name)
    }

    pub(crate) fn far_entry(&self, index: u32) -> Result<FarEntry> {
        self.others.entry(&self.allocator.shared, index)
    }

    #[inline]
    pub(crate) fn far_entry_near(&self, index: u32) -> Option<FarEntry> {
        self.others.entry_near(&self.allocator.shared, index)
    }

    pub(crate) fn far_entries(&self) -> Result<Vec<(u32, FarEntry)>> {
        OtherObjects::all(&self.allocator.shared)
    }

    pub(crate) fn far_index(&self, entry: &FarEntry) -> Result<u32> {
        self.others.index(&self.allocator.shared, entry)
    }

    pub(crate) fn private_far_index(&self, entry: &FarEntry) -> Result<u32> {
        self.others.private_index(&self.allocator.shared, entry)
    }

    pub(crate) fn retarget(&self, index: u32, entry: &FarEntry) -> Result<()> {
        self.others.retarget(&self.allocator.shared, index, entry)
    }

    pub(super) fn remove_entries(&self, needed: &dyn Fn(u32) -> bool) -> Result<u32> {
        self.others.remove(&self.allocator.shared, needed)
    }

    pub(crate) fn roots(&self) -> Result<Vec<Root>> {
        roots::list(&self.allocator.shared)
    }
}

impl Extent {
    /// # Safety
    /// The extent is mapped as long as the window lives.
    unsafe fn window(&self) -> Window {
        // SAFETY: the caller's promise; objects begin on a page.
        unsafe { Window::new(self.base, self.len, self.writable, self.marks.clone()) }
    }
}
