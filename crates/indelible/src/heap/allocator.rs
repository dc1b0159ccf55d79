//! Operations on blocks.
//!
//! A thread allocates and frees in its own spans without lock or atomic read-modify-write; freeing
//! another thread's block costs one atomic operation. All else is under the lock of `state`.

#![allow(unsafe_code)]

use super::allocation_bytes::AllocationBytes;
use super::cache::Cache;
use super::class::{SMALL_MAX, aligned_class, class_of, size_of_class};
use super::error::{HeapError, Result};
use super::guard::{BEHIND, Guard};
use super::layout::{Kind, PAGE, allocation};
use super::pages::Found;
use super::span::Span;
use super::state::Shared;
use super::window::Window;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

thread_local! {
    static LAST: Cell<(u64, Option<&'static Cache>)> = const { Cell::new((0, None)) };
    static LAST_SLOW: Cell<(u64, Option<&'static Cache>)> = const { Cell::new((0, None)) };
    static MEMBER: RefCell<Vec<Member>> = const { RefCell::new(Vec::new()) };
}

struct Member {
    id: u64,
    cache: &'static Cache,
    heap: Weak<Shared>,
}

impl Drop for Member {
    fn drop(&mut self) {
        LAST.set((0, None));
        LAST_SLOW.set((0, None));
        if let Some(heap) = self.heap.upgrade() {
            heap.part(self.cache);
        }
    }
}

pub(super) struct Allocator {
    id: u64,
    pub(super) shared: Arc<Shared>,
}

impl Drop for Allocator {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Allocator {
    pub(super) fn open(window: Window, reach: u64, debug: bool) -> Result<Allocator> {
        let guard = debug.then(Guard::default);
        let shared = Arc::new(Shared::new(window, reach, guard)?);
        Ok(Allocator { id: shared.id, shared })
    }

    #[inline]
    fn fast(&self) -> Option<&'static Cache> {
        let (id, cache) = LAST.get();
        if id == self.id { cache } else { None }
    }

    #[inline]
    fn cache(&self) -> &'static Cache {
        match LAST_SLOW.get() {
            (id, Some(cache)) if id == self.id => cache,
            _ => self.fast().unwrap_or_else(|| self.find_cache()),
        }
    }

    #[cold]
    fn find_cache(&self) -> &'static Cache {
        let member = |members: &RefCell<Vec<Member>>| {
            let mut members = members.borrow_mut();
            if let Some(member) = members.iter().find(|member| member.id == self.id) {
                return member.cache;
            }
            members.retain(|member| member.heap.strong_count() > 0);
            let cache = self.shared.join();
            members.push(Member { id: self.id, cache, heap: Arc::downgrade(&self.shared) });
            cache
        };
        // A thread's last destructors have no `MEMBER`: they use a cache of their own.
        let Ok(cache) = MEMBER.try_with(member) else { return self.shared.join() };
        let last = if self.shared.is_slow() { &LAST_SLOW } else { &LAST };
        last.set((self.id, Some(cache)));
        cache
    }

    #[inline]
    pub(super) fn malloc_at_hand(&self, size: usize) -> Option<NonNull<u8>> {
        let (cache, class) = (self.fast()?, class_of(size)?);
        cache.take(class).or_else(|| cache.take_next(class))
    }

    #[inline]
    pub(super) fn malloc(&self, size: usize) -> Result<NonNull<u8>, Box<HeapError>> {
        match self.malloc_at_hand(size) {
            Some(block) => Ok(block),
            None => self.allocate_boxed(size),
        }
    }

    #[inline(never)]
    fn allocate_boxed(&self, size: usize) -> Result<NonNull<u8>, Box<HeapError>> {
        self.allocate(size, 1, false).map_err(Box::new)
    }

    #[inline(never)]
    pub(super) fn allocate(&self, size: usize, align: usize, zero: bool) -> Result<NonNull<u8>> {
        match self.allocate_once(size, align, zero) {
            Err(HeapError::Full { .. }) if self.shed()? => self.allocate_once(size, align, zero),
            result => result,
        }
    }

    fn allocate_once(&self, size: usize, align: usize, zero: bool) -> Result<NonNull<u8>> {
        let shared = &*self.shared;
        if !shared.window.writable {
            return Err(HeapError::ReadOnly);
        }
        if !align.is_power_of_two() {
            return Err(HeapError::Alignment { align, why: "it is not a power of two" });
        }
        if align > 2 << 20 {
            return Err(HeapError::Alignment { align, why: "the most is 2 MiB" });
        }
        let asked = size;
        let size = if shared.guard.is_some() { size.saturating_add(BEHIND) } else { size };
        if size > isize::MAX as usize {
            return Err(HeapError::Overflow { count: 1, size });
        }
        let class = if align <= PAGE as usize { aligned_class(size, align.max(16)) } else { None };
        let (offset, room, zeroed) = match class.filter(|_| size <= SMALL_MAX) {
            Some(class) => {
                let block = self.small(class)?;
                ((block.addr().get() - shared.window.base()) as u64, size_of_class(class), false)
            }
            None => {
                let align = align.div_ceil(PAGE as usize) as u64;
                let run = shared.lock().run(shared, size.max(1), align)?;
                let room = size.max(1).next_multiple_of(PAGE as usize);
                (run.page * PAGE, room, run.zero)
            }
        };
        if let Some(guard) = &shared.guard {
            guard.given(&shared.window, offset, asked, room)?;
        }
        if zero && !zeroed {
            shared.window.fill(offset, asked, 0)?;
        }
        shared.window.pointer(offset, room)
    }

    fn small(&self, class: usize) -> Result<NonNull<u8>> {
        let shared = &*self.shared;
        let cache = self.cache();
        loop {
            if let Some(taken) = cache.take(class) {
                if shared.window.is_explicit()
                    && let Some(span) = cache.span(class)
                    && let Some(block) = span.block(taken.addr().get())
                {
                    shared.window.mark_dirty(span.allocation_offset(block), 1);
                }
                return Ok(taken);
            }
            if !self.releasing(|release| cache.advance(class, release))? {
                shared.lock().obtain(shared, cache, class)?;
            }
        }
    }

    fn shed(&self) -> Result<bool> {
        let cache = self.cache();
        self.releasing(|release| cache.shed(release))
    }

    fn releasing<R>(&self, f: impl FnOnce(&mut dyn FnMut(&'static Span)) -> R) -> Result<R> {
        let mut released = Ok(());
        let result = f(&mut |span| {
            if let Err(error) = self.shared.lock().release(&self.shared, span) {
                released = Err(error);
            }
        });
        released.map(|()| result)
    }

    /// Returns whether it freed the block.
    ///
    /// # Safety
    /// As for [`free`](Allocator::free).
    #[inline]
    pub(super) unsafe fn free_at_hand(&self, address: usize) -> bool {
        if let Some(cache) = self.fast()
            && let Some(span) = self.span_at(address)
            && span.at_hand.is(cache)
            && let Some(block) = span.block(address)
        {
            return span.free_unheeded(block);
        }
        false
    }

    /// # Safety
    /// The block is the caller's, and not used any more.
    #[inline]
    pub(super) unsafe fn free(&self, address: usize) -> Result<(), Box<HeapError>> {
        // SAFETY: the caller's promise.
        if unsafe { self.free_at_hand(address) } { Ok(()) } else { self.free_boxed(address) }
    }

    #[inline]
    pub(super) fn span_at(&self, address: usize) -> Option<&'static Span> {
        let page = address.wrapping_sub(self.shared.window.base()) / PAGE as usize;
        self.shared.table.get(page)?.get()
    }

    #[inline(never)]
    fn free_boxed(&self, address: usize) -> Result<(), Box<HeapError>> {
        if let Some(cache) = self.fast()
            && let Some(span) = self.span_at(address)
            && let Some(block) = span.block(address)
        {
            let unrooted = self.expect_no_root(address, span.size());
            return unrooted.and_then(|()| self.free_of_other(cache, span, block, address)).map_err(Box::new);
        }
        self.release(address).map_err(Box::new)
    }

    fn free_of_other(
        &self,
        cache: &'static Cache,
        span: &'static Span,
        block: usize,
        address: usize,
    ) -> Result<()> {
        if span.allocation(block).load(Relaxed) != allocation::USED {
            return Err(HeapError::DoubleFree { address });
        }
        if span.owner.get().is_none() {
            let _inner = self.shared.lock();
            if span.owner.get().is_none() {
                span.own(cache);
            }
        }
        if span.owner.is(cache) {
            span.free(block);
            if cache.look(span) {
                self.shared.lock().release(&self.shared, span)?;
            }
            return Ok(());
        }
        if span.free_for_owner(block) { Ok(()) } else { Err(HeapError::DoubleFree { address }) }
    }

    #[cold]
    #[inline(never)]
    fn release(&self, address: usize) -> Result<()> {
        let shared = &*self.shared;
        if !shared.window.writable {
            return Err(HeapError::ReadOnly);
        }
        let mut inner = shared.lock();
        let (found, start, room) = self.block_at(address)?;
        let offset = (start - shared.window.base()) as u64;
        inner.expect_no_root(shared, start, room)?;
        if let Some(guard) = &shared.guard {
            guard.check(&shared.window, offset)?;
        }
        if found.entry.kind == Kind::Run {
            if let Some(guard) = &shared.guard {
                guard.freed(&shared.window, offset, room, false)?;
            }
            return inner.pages(shared)?.free(found.page, Kind::Run);
        }
        let span = inner.known(shared, found.page, found.entry.pages, usize::from(found.entry.class))?;
        if span.owner.get().is_none() {
            shared.window.mark_dirty(found.page * PAGE, PAGE as usize);
        }
        drop(inner);
        let Some(block) = span.block(address) else { return Err(HeapError::Foreign { address }) };
        let cache = self.cache();
        if let Some(guard) = &shared.guard {
            guard.freed(&shared.window, offset, room, true)?;
        }
        let freed = self.free_of_other(cache, span, block, address);
        shared.window.mark_dirty(span.allocation_offset(block), 1);
        freed
    }

    pub(super) fn block_at(&self, address: usize) -> Result<(Found, usize, usize)> {
        let shared = &*self.shared;
        let Some(found) = shared.find(address)? else { return Err(HeapError::Foreign { address }) };
        let first = shared.window.base() + (found.page * PAGE) as usize;
        match found.entry.kind {
            Kind::Run if first == address => Ok((found, first, (found.entry.pages * PAGE) as usize)),
            Kind::Run => Err(HeapError::Interior { address, block: first }),
            Kind::Span => {
                let class = usize::from(found.entry.class);
                let allocated = AllocationBytes::open(&shared.window, found.page, found.entry.pages, class)?;
                let geometry = allocated.geometry;
                let delta = (address - first).wrapping_sub(geometry.data);
                let block = delta / geometry.size;
                if block >= geometry.count {
                    return Err(HeapError::Foreign { address });
                }
                let start = first + geometry.data + block * geometry.size;
                if start != address {
                    return Err(HeapError::Interior { address, block: start });
                }
                if !allocated.is_live(block) {
                    return Err(HeapError::DoubleFree { address });
                }
                Ok((found, start, geometry.size))
            }
            Kind::Header | Kind::Meta | Kind::Tail => Err(HeapError::Foreign { address }),
        }
    }

    pub(super) fn usable_size(&self, address: usize) -> Result<usize> {
        if self.shared.guard.is_none()
            && let Some(span) = self.span_at(address)
            && let Some(block) = span.block(address)
            && span.allocation(block).load(Relaxed) == allocation::USED
        {
            return Ok(span.size());
        }
        let _inner = self.shared.lock();
        let (_, start, room) = self.block_at(address)?;
        let offset = (start - self.shared.window.base()) as u64;
        let asked = self.shared.guard.as_ref().and_then(|guard| guard.asked(offset));
        Ok(asked.unwrap_or(room))
    }

    #[inline]
    pub(super) fn around(&self, address: usize, size: u64) -> Result<(usize, usize)> {
        let (start, len) = match self.around_in_span(address) {
            Some(found) => found,
            None => self.around_anywhere(address)?,
        };
        let room = (start + len).saturating_sub(address) as u64;
        if size > room { Err(HeapError::Beyond { size, room }) } else { Ok((start, len)) }
    }

    #[inline]
    fn around_in_span(&self, address: usize) -> Option<(usize, usize)> {
        if self.shared.guard.is_some() {
            return None;
        }
        let span = self.span_at(address)?;
        let block = span.block(address).or_else(|| span.block_around(address))?;
        let is_used = span.allocation(block).load(Relaxed) == allocation::USED;
        is_used.then(|| (span.address(block), span.size()))
    }

    #[inline(never)]
    fn around_anywhere(&self, address: usize) -> Result<(usize, usize)> {
        let _inner = self.shared.lock();
        let (_, start, room) = match self.block_at(address) {
            Err(HeapError::Interior { block, .. }) => self.block_at(block)?,
            found => found?,
        };
        let offset = (start - self.shared.window.base()) as u64;
        let asked = self.shared.guard.as_ref().and_then(|guard| guard.asked(offset));
        Ok((start, asked.unwrap_or(room)))
    }

    /// # Safety
    /// As for [`free`](Allocator::free).
    pub(super) unsafe fn realloc(&self, address: usize, size: usize) -> Result<NonNull<u8>> {
        let shared = &*self.shared;
        if !shared.window.writable {
            return Err(HeapError::ReadOnly);
        }
        let old = self.usable_size(address)?;
        self.expect_no_root(address, old)?;
        let offset = (address - shared.window.base()) as u64;
        if shared.guard.is_none() && self.fits(address, size, old)? {
            return shared.window.pointer(offset, size);
        }
        let new = self.allocate(size, 1, false)?;
        let target = (new.addr().get() - shared.window.base()) as u64;
        shared.window.copy(offset, target, old.min(size))?;
        // SAFETY: the caller's promise.
        unsafe { self.free(address) }.map_err(|error| *error)?;
        Ok(new)
    }

    fn fits(&self, address: usize, size: usize, old: usize) -> Result<bool> {
        if old <= SMALL_MAX && size <= SMALL_MAX {
            return Ok(class_of(size).map(size_of_class) == Some(old));
        }
        if old <= SMALL_MAX || size <= SMALL_MAX || size > isize::MAX as usize {
            return Ok(false);
        }
        let mut inner = self.shared.lock();
        let (found, ..) = self.block_at(address)?;
        match found.entry.kind {
            Kind::Run => inner.pages(&self.shared)?.resize(found, size.div_ceil(PAGE as usize) as u64),
            _ => Ok(false),
        }
    }
}
