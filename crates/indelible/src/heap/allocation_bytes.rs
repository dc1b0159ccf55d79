//! A span's header and allocation bytes in the object.
//!
//! Invariant of [`AllocationBytes`]: (1) the header was verified, and the allocation bytes and
//! blocks lie in the window. The bytes are borrowed as the window is; spans that keep them longer
//! end with it.

#![allow(unsafe_code)]

use super::class::Geometry;
use super::error::{Result, damaged};
use super::layout::{CLASSES, PAGE, SPAN_MAGIC, SpanHeader, allocation};
use super::span::{SPARE, Site, Span};
use super::window::Window;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

impl Span {
    pub(super) fn format(window: &Window, page: u64, pages: u64, class: usize) -> Result<()> {
        let offset = page * PAGE;
        let Some(geometry) = Geometry::of(class, pages) else {
            return damaged(offset, "a span without room for blocks");
        };
        let bytes = geometry.allocation(page);
        window.fill(offset, size_of::<SpanHeader>(), 0)?;
        window.fill(offset + bytes as u64, geometry.count, 0)?;
        let header: &SpanHeader = window.at(offset)?;
        header.class.store(class as u32, Relaxed);
        header.page.store(page, Relaxed);
        header.pages.store(pages as u32, Relaxed);
        header.count.store(geometry.count as u32, Relaxed);
        header.data.store(geometry.data as u32, Relaxed);
        header.allocation.store(bytes as u32, Relaxed);
        header.magic.store(SPAN_MAGIC, Relaxed);
        Ok(())
    }

    pub(super) fn adopt(
        window: &Window,
        page: u64,
        pages: u64,
        class: usize,
        new: bool,
    ) -> Result<&'static Span> {
        let AllocationBytes { geometry: Geometry { size, data, .. }, bytes, first } =
            AllocationBytes::open(window, page, pages, class)?;
        let offset = page * PAGE;
        let strange = |byte: &AtomicU8| byte.load(Relaxed) > allocation::FREED;
        if !new && let Some(block) = bytes.iter().position(strange) {
            return damaged(first + block as u64, "an allocation byte of no meaning");
        }
        let span = SPARE.take(Span::blank);
        let data = window.base() + offset as usize + data;
        // SAFETY: verified and within the window (1), mapped as long as its heap has live spans.
        unsafe { span.become_of(&Site { page, pages, class, size, data, first }, bytes, new) };
        Ok(span)
    }
}

pub(super) struct AllocationBytes<'a> {
    pub(super) geometry: Geometry,
    pub(super) bytes: &'a [AtomicU8],
    pub(super) first: u64,
}

impl<'a> AllocationBytes<'a> {
    pub(super) fn open(
        window: &'a Window,
        page: u64,
        pages: u64,
        class: usize,
    ) -> Result<AllocationBytes<'a>> {
        let offset = page * PAGE;
        let geometry = if class < CLASSES { Geometry::of(class, pages.min(255)) } else { None };
        let Some(geometry) = geometry else {
            return damaged(offset, "a span of a class or length that does not exist");
        };
        let header: &SpanHeader = window.at(offset)?;
        let same = header.magic.load(Relaxed) == SPAN_MAGIC
            && header.class.load(Relaxed) == class as u32
            && header.page.load(Relaxed) == page
            && u64::from(header.pages.load(Relaxed)) == pages
            && header.count.load(Relaxed) == geometry.count as u32
            && header.data.load(Relaxed) == geometry.data as u32;
        let first = header.allocation.load(Relaxed) as usize;
        let placed = (size_of::<SpanHeader>()..=geometry.data - geometry.count).contains(&first);
        if !same || !placed {
            return damaged(offset, "the header of a span contradicts its chunk");
        }
        window.pointer(offset, (pages * PAGE) as usize)?;
        let first = offset + first as u64;
        Ok(AllocationBytes { geometry, bytes: window.slice(first, geometry.count)?, first })
    }

    pub(super) fn is_live(&self, block: usize) -> bool {
        self.bytes[block].load(Relaxed) == allocation::USED
    }
}
