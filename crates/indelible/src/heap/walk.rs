use super::allocation_bytes::AllocationBytes;
use super::directory::Directory;
use super::error::Result;
use super::layout::{CHUNK_PAGES, Kind, PAGE, Use};
use super::pages::{Found, whole};
use super::window::Window;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Its address.
    pub address: usize,
    /// Bytes it has, at least those asked for.
    pub size: usize,
}

/// Figures of a heap, counted when asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Bytes of the heap.
    pub bytes: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Bytes of live blocks.
    pub block_bytes: u64,
    /// Bytes of free pages.
    pub free_bytes: u64,
    /// Bytes of the longest piece of these for one block.
    pub largest_free: u64,
    /// Bytes of free small blocks, for their class.
    pub class_bytes: u64,
    /// All other bytes: headers, allocation bytes, roots, ends of spans.
    pub overhead: u64,
    /// Named roots.
    pub roots: u64,
}

pub(super) fn chunk_contents(directory: &Directory<'_>, number: u64) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    match directory.get(number)? {
        Use::Large { pages, meta } => {
            let kind = if meta { Kind::Meta } else { Kind::Run };
            let entry = super::layout::Entry { kind, class: 0, pages };
            all.push(Found { page: number * CHUNK_PAGES, entry });
        }
        Use::Pages { .. } => {
            let chunk = directory.chunk(number)?;
            for index in 0..chunk.len {
                if let Some(entry) = chunk.entry(index)? {
                    all.push(Found { page: chunk.page(index), entry });
                }
            }
        }
        Use::Free | Use::Body => {}
    }
    Ok(all)
}

pub(super) fn chunk_blocks(window: &Window, number: u64, blocks: &mut Vec<Block>) -> Result<()> {
    let directory = Directory::open(window)?;
    for Found { page, entry } in chunk_contents(&directory, number)? {
        let address = window.base() + (page * PAGE) as usize;
        match entry.kind {
            Kind::Run => blocks.push(Block { address, size: (entry.pages * PAGE) as usize }),
            Kind::Span => {
                let span = AllocationBytes::open(window, page, entry.pages, usize::from(entry.class))?;
                let (size, data) = (span.geometry.size, address + span.geometry.data);
                let live = |block: &usize| span.is_live(*block);
                let all = (0..span.geometry.count).filter(live);
                blocks.extend(all.map(|block| Block { address: data + block * size, size }));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn count(window: &Window) -> Result<HeapStats> {
    let directory = Directory::open(window)?;
    let mut stats = HeapStats { bytes: directory.pages * PAGE, ..HeapStats::default() };
    let (mut chunks, mut largest_free) = (0, 0);
    for number in 0..directory.frontier() {
        let what = directory.get(number)?;
        let len = directory.len_of(number);
        match what {
            Use::Free => {
                stats.free_bytes += len * PAGE;
                chunks += len;
                largest_free = largest_free.max(whole(chunks));
            }
            Use::Pages { largest, .. } => {
                chunks = 0;
                largest_free = largest_free.max(largest);
                let used: u32 = directory.chunk(number)?.used().iter().map(|word| word.count_ones()).sum();
                stats.free_bytes += (CHUNK_PAGES - u64::from(used)) * PAGE;
            }
            Use::Large { .. } | Use::Body => chunks = 0,
        }
        for Found { page, entry } in chunk_contents(&directory, number)? {
            let bytes = entry.pages * PAGE;
            match entry.kind {
                Kind::Run => {
                    stats.blocks += 1;
                    stats.block_bytes += bytes;
                }
                Kind::Span => {
                    let span = AllocationBytes::open(window, page, entry.pages, usize::from(entry.class))?;
                    let (size, count) = (span.geometry.size as u64, span.geometry.count);
                    let live = (0..count).filter(|block| span.is_live(*block)).count() as u64;
                    stats.blocks += live;
                    stats.block_bytes += live * size;
                    stats.class_bytes += (count as u64 - live) * size;
                }
                _ => {}
            }
        }
    }
    let beyond = directory.pages.saturating_sub(directory.frontier() * CHUNK_PAGES);
    stats.free_bytes += beyond * PAGE;
    stats.largest_free = largest_free.max(whole(chunks + beyond)) * PAGE;
    let rest = stats.block_bytes + stats.free_bytes + stats.class_bytes;
    stats.overhead = stats.bytes.saturating_sub(rest);
    Ok(stats)
}
