//! Bytes of files: written, cut, punched and allocated.
//!
//! [`Change::reserve`] allocates a range's blocks before the first byte changes, so that a full
//! pool changes nothing.

use crate::change::Change;
use crate::error::{Error, Result};
use crate::format::{BLOCK, Blocks, Inode};
use indelible::collections::{HeapRef, PVec};
use std::ops::Range;

/// Offsets are signed.
const LONGEST: u64 = i64::MAX as u64;

/// How [`allocate`](crate::Volume::allocate) treats a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// Reserves room for later writes; the file grows to the range's end.
    Grow,
    /// As `Grow`; the file keeps its length.
    Keep,
    /// Zeros, and frees whole blocks: `FALLOC_FL_PUNCH_HOLE`.
    Punch,
    /// Zeros; the file grows to the range's end: `FALLOC_FL_ZERO_RANGE`.
    Zero,
    /// As `Zero`; the file keeps its length.
    ZeroKeep,
}

fn parts(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let blocks = if range.is_empty() { 0..0 } else { range.start / BLOCK..range.end.div_ceil(BLOCK) };
    blocks.map(move |index| {
        let base = index * BLOCK;
        let (from, to) = (range.start.max(base), range.end.min(base + BLOCK));
        (index, (from - base) as usize..(to - base) as usize)
    })
}

fn checked_end(offset: u64, length: u64) -> Result<u64> {
    let end = offset.checked_add(length).filter(|end| *end <= LONGEST);
    end.ok_or(Error::new(libc::EFBIG, "a file has at most 2^63 - 1 bytes"))
}

/// Gives a block room for `length` bytes in all; returns the added bytes.
fn make_room<'h>(block: &mut PVec<'h, u8>, length: usize, heap: HeapRef<'h>) -> Result<u64> {
    let old = block.capacity();
    if length <= old {
        return Ok(0);
    }
    // A small file's first bytes get exact room; growth doubles it.
    let room = if old == 0 { length } else { length.next_power_of_two().min(BLOCK as usize) };
    let mut larger = PVec::new_in(heap);
    larger.try_reserve(room)?;
    larger.try_extend_from_slice(block)?;
    *block = larger;
    Ok((block.capacity() - old) as u64)
}

fn put(block: &mut PVec<'_, u8>, part: Range<usize>, bytes: Option<&[u8]>) -> Result<()> {
    let old = block.len();
    if old < part.start {
        block.try_resize(part.start, 0)?;
    }
    let inside = part.start..part.end.min(block.len()).max(part.start);
    let (over, more) = (inside.len(), part.len());
    match bytes {
        Some(bytes) => {
            if over > 0 {
                block[inside].copy_from_slice(&bytes[..over]);
            }
            block.try_extend_from_slice(&bytes[over..more])?;
        }
        None if over > 0 => block[inside].fill(0),
        None => {}
    }
    Ok(())
}

impl<'h> Change<'h> {
    /// Reserves a range. After an error the file is unchanged.
    fn reserve(&mut self, number: u64, range: Range<u64>) -> Result<()> {
        let heap = self.heap;
        let inode = self.tree.inode_mut(number)?;
        let (mut more, mut made) = (0_u64, Vec::new());
        let blocks = inode.blocks_mut()?;
        let reserved = parts(range).try_for_each(|(index, part)| {
            let there = blocks.contains_key(&index);
            more += reserve_block(blocks, index, part.end, heap)?;
            made.extend((!there).then_some(index));
            Ok(())
        });
        if reserved.is_err() {
            // An empty block is a hole.
            for index in made {
                more -= blocks.remove(&index).map_or(0, |block| block.capacity() as u64);
            }
        }
        inode.held += more;
        reserved
    }

    pub(crate) fn write(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = checked_end(offset, bytes.len() as u64)?;
        self.tree.inode(number)?.blocks()?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.reserve(number, offset..end)?;
        let now = self.now;
        let inode = self.tree.inode_mut(number)?;
        let blocks = inode.blocks_mut()?;
        let mut rest = bytes;
        for (index, part) in parts(offset..end) {
            let (these, others) = rest.split_at(part.len());
            if let Some(block) = blocks.get_mut(&index) {
                put(block, part, Some(these))?;
            }
            rest = others;
        }
        inode.size = inode.size.max(end);
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }

    pub(crate) fn truncate(&mut self, number: u64, size: u64) -> Result<()> {
        checked_end(size, 0)?;
        let now = self.now;
        let inode = self.tree.inode_mut(number)?;
        inode.blocks()?;
        if size < inode.size {
            let end = inode.size.max(LONGEST);
            cut(inode, size..end, true)?;
        }
        inode.size = size;
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }

    pub(crate) fn allocate(&mut self, number: u64, range: Range<u64>, how: Allocate) -> Result<()> {
        if range.is_empty() {
            return Err(Error::new(libc::EINVAL, "an empty range"));
        }
        checked_end(range.end, 0)?;
        self.tree.inode(number)?.blocks()?;
        let now = self.now;
        if how != Allocate::Punch {
            self.reserve(number, range.clone())?;
        }
        let inode = self.tree.inode_mut(number)?;
        match how {
            Allocate::Punch => cut(inode, range, true)?,
            Allocate::Zero => {
                cut(inode, range.clone(), false)?;
                inode.size = inode.size.max(range.end);
            }
            Allocate::ZeroKeep => cut(inode, range, false)?,
            Allocate::Grow => inode.size = inode.size.max(range.end),
            Allocate::Keep => {}
        }
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }
}

/// Reserves a block's first `length` bytes; returns the heap's bytes.
fn reserve_block<'h>(blocks: &mut Blocks<'h>, index: u64, length: usize, heap: HeapRef<'h>) -> Result<u64> {
    if let Some(block) = blocks.get_mut(&index) {
        return make_room(block, length, heap);
    }
    let mut block = PVec::new_in(heap);
    let bytes = make_room(&mut block, length, heap)?;
    blocks.try_insert(index, block)?;
    Ok(bytes)
}

fn cut(inode: &mut Inode<'_>, range: Range<u64>, free: bool) -> Result<()> {
    let (first, last) = (range.start / BLOCK, (range.end - 1) / BLOCK);
    let (mut given_back, mut gone) = (0, Vec::new());
    let size = inode.size;
    let blocks = inode.blocks_mut()?;
    for (index, block) in blocks.range_mut(first..=last) {
        let base = index * BLOCK;
        let from = range.start.saturating_sub(base).min(BLOCK) as usize;
        // Nothing lies behind the file's end.
        let to = (range.end - base).min(BLOCK) as usize;
        let all = from == 0 && (to as u64 == BLOCK || base + to as u64 >= size);
        if all && free {
            gone.push(*index);
        } else if to >= block.len() {
            block.truncate(from);
        } else {
            put(block, from..to, None)?;
        }
    }
    for index in gone {
        given_back += blocks.remove(&index).map_or(0, |block| block.capacity() as u64);
    }
    inode.held = inode.held.wrapping_sub(given_back);
    Ok(())
}
