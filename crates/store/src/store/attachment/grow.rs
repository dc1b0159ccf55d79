//! Growth: in place if possible, else by a copy to a larger, hidden extent; one table batch
//! publishes either. The next resize removes what a crash leaves.

use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_SPARSE;
use crate::format::{LINE, PAGE};
use crate::lane::Batch;
use crate::medium::{Epoch, Medium, write_fresh};
use crate::mutant::Mutant;
use crate::space::{ADDRESSES, TableTransaction};
use crate::store::lanes::Changing;
use crate::store::locks::ObjectLock;
use crate::store::pool::{KEEP, Store};
use crate::table::{CreateOptions, Layers, Located, read_pages};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::little_endian::U64;

const PIECE: u64 = 1 << 20;
/// Granularity, in bytes, at which `virgin` rises.
const AHEAD: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Alone,
    Beside,
    Kept,
}

impl Store {
    /// Zeros follow the first `kept` bytes. `None`: no free pages behind.
    pub(in crate::store) fn grow_here(
        &self,
        object: &Located,
        size: u64,
        kept: u64,
    ) -> Result<Option<Located>> {
        let (old, pages) = (object.entry.pages.get(), pages_of(object, size)?);
        self.update(|table| {
            let mut object = table.entry(object.offset)?;
            table.stock_up(true)?;
            let end = object.entry.primary.get() + old;
            if pages > old && !table.extend_extent(end, pages - old)? {
                return Ok(None);
            }
            reach(table, &mut object, pages * PAGE)?;
            object.entry.pages = U64::new(pages);
            object.entry.size = U64::new(size);
            self.prepare_extent(table, &object, kept)?;
            table.put_entry(&object)?;
            Ok(Some(object))
        })
    }

    pub(in crate::store) fn move_larger(
        self: &Arc<Self>,
        object: &Located,
        kept: u64,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        if pages_of(object, size)? * PAGE <= KEEP && !object.entry.has(FLAG_SPARSE) {
            // The second time, space not known as zeros can be found.
            for _ in 0..2 {
                if let Some(moved) = self.move_at_once(object, kept, size, lane)? {
                    return Ok(moved);
                }
            }
        }
        self.move_by_hidden(object, kept, size, lane)
    }

    fn move_at_once(
        self: &Arc<Self>,
        object: &Located,
        kept: u64,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Option<Located>> {
        let done = self.update_then(
            |table| {
                let mut moved = table.entry(object.offset)?;
                table.stock_up(true)?;
                let pages = pages_of(object, size)?;
                let first = table.take_extent(pages)?;
                let (start, len) = (first * PAGE, pages * PAGE);
                if start + len > table.root.virgin.get() {
                    table.give_extent(first, pages)?;
                    table.raise_virgin((start + len + AHEAD).min(table.pool_len()));
                    return Ok(None);
                }
                let mut bytes = vec![0; len as usize];
                let medium = table.pages().medium();
                table.read_object(&moved, 0, &mut bytes[..kept as usize])?;
                if Mutant::EarlyExchange.is_on() {
                    medium.reserve(start, len)?;
                    medium.write(start, &bytes)?;
                } else {
                    write_fresh(medium, start, &bytes)?;
                }
                reach(table, &mut moved, len)?;
                let left = moved;
                table.give_extent(left.entry.primary.get(), left.entry.pages.get())?;
                let base = table.leave_base(&mut moved)?;
                moved.entry.primary = U64::new(first);
                moved.entry.pages = U64::new(pages);
                moved.entry.size = U64::new(size);
                match lane {
                    Some(lane) => self.bind(table, &mut moved, lane)?,
                    None => table.put_entry(&moved)?,
                }
                Ok(Some((moved, left, base)))
            },
            |done| {
                done.map(|(moved, left, base)| {
                    self.give_back_all(&left);
                    (moved, base)
                })
            },
        )?;
        Ok(done.map(|(moved, base)| self.without_bases(moved, base)))
    }

    fn without_bases(self: &Arc<Self>, object: Located, base: Option<Located>) -> Located {
        let _ = self.remove_left(base);
        object
    }

    fn move_by_hidden(
        self: &Arc<Self>,
        object: &Located,
        kept: u64,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        let (larger, object_lock) =
            self.create_lender(pages_of(object, size)?, object.entry.has(FLAG_SPARSE))?;
        let layers = self.view(|table| table.layers(object))?;
        let result = self
            .copy(object, layers.as_ref(), &larger, std::iter::once(0..kept))
            .and_then(|copied| self.exchange_proven(object, (&larger, object_lock), &copied, size, lane));
        self.unless_left(result)
    }

    pub(super) fn exchange_proven(
        self: &Arc<Self>,
        object: &Located,
        (hidden, object_lock): (&Located, ObjectLock),
        written: &Epoch,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        if !Mutant::EarlyExchange.is_on() {
            written.barrier()?;
        }
        self.exchange(object, hidden, object_lock, size, lane)
    }

    pub(super) fn unless_left<R>(self: &Arc<Self>, result: Result<R>) -> Result<R> {
        if result.is_err() {
            let _ = self.reap();
        }
        result
    }

    fn exchange(
        self: &Arc<Self>,
        object: &Located,
        larger: &Located,
        object_lock: ObjectLock,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        let (moved, base) = self.update_then(
            |table| {
                let mut moved = table.entry(object.offset)?;
                let mut spare = table.entry(larger.offset)?;
                table.stock_up(true)?;
                reach(table, &mut moved, spare.entry.extent_len())?;
                let left = moved;
                let base = table.leave_base(&mut moved)?;
                std::mem::swap(&mut moved.entry.primary, &mut spare.entry.primary);
                std::mem::swap(&mut moved.entry.pages, &mut spare.entry.pages);
                moved.entry.size = U64::new(size);
                match lane {
                    Some(lane) => self.bind(table, &mut moved, lane)?,
                    None => table.put_entry(&moved)?,
                }
                table.destroy(&spare)?;
                Ok((moved, left, base))
            },
            |(moved, left, base)| {
                self.give_back_all(&left);
                drop(object_lock);
                (moved, base)
            },
        )?;
        Ok(self.without_bases(moved, base))
    }

    /// Durable after a barrier of the returned epoch.
    pub(super) fn copy(
        &self,
        from: &Located,
        layers: Option<&Layers>,
        to: &Located,
        runs: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Epoch> {
        let medium = self.latch.enter();
        let target = to.entry.primary_offset();
        let mut buffer = Vec::new();
        for run in runs {
            buffer.resize(buffer.len().max(PIECE.min(run.end - run.start) as usize), 0);
            for at in run.clone().step_by(PIECE as usize) {
                let piece = &mut buffer[..(run.end - at).min(PIECE) as usize];
                read_pages(&medium, from, layers, at, piece)?;
                // Holes stay holes.
                if piece.iter().any(|byte| *byte != 0) {
                    medium.reserve(target + at, piece.len() as u64)?;
                    medium.write(target + at, piece)?;
                }
            }
        }
        Ok(medium)
    }

    pub(super) fn create_lender(self: &Arc<Self>, pages: u64, sparse: bool) -> Result<(Located, ObjectLock)> {
        let how = CreateOptions { size: pages * PAGE, sparse, ..CreateOptions::default() };
        match self.create_hidden("resize", &how) {
            Err(StoreError::NoRoom { .. } | StoreError::NoAddresses { .. }) if self.reap()? > 0 => {
                self.create_hidden("resize", &how)
            }
            created => created,
        }
    }
}

impl Writer {
    /// Grows the attached object. Returns whether it moved to another extent; its address stays.
    ///
    /// # Errors
    /// `BadSize` for a smaller size, `NoRoom`, `NoAddresses`, `HeldStill`: nothing changed.
    pub fn grow(&mut self, size: u64) -> Result<bool> {
        self.grow_by(size, Way::Alone)
    }

    /// [`grow`](Writer::grow) while this process's memory shows the object. An extent that it is
    /// `mapped` from stays until the detach, or until [given up](Writer::give_former_up).
    pub fn grow_beside(&mut self, size: u64, mapped: bool) -> Result<bool> {
        self.grow_by(size, if mapped { Way::Kept } else { Way::Beside })
    }

    fn grow_by(&mut self, size: u64, way: Way) -> Result<bool> {
        self.check()?;
        if self.sealed.is_some() {
            self.finish_resize()?;
        }
        if pages_of(&self.object, size)? < self.object.entry.pages.get() {
            return Err(StoreError::BadSize { size, why: "an attached object only grows" });
        }
        if self.sealed.is_some() {
            return self.resize_sealed(size);
        }
        if size > self.object.entry.size.get() {
            self.clear_end()?;
        }
        self.extend(size, way)
    }

    pub(super) fn extend(&mut self, size: u64, way: Way) -> Result<bool> {
        let changing = self.change()?;
        let (store, mut object) = (self.store.clone(), self.object);
        let old = object.entry.pages.get();
        if let Some(grown) = store.grow_here(&object, size, old * PAGE)? {
            self.object = grown;
            self.backed.clear();
            return Ok(false);
        }
        match way {
            Way::Alone => {
                self.settle_to_move(&changing)?;
                object = store.move_larger(&object, old * PAGE, size, Some(self.lane.index))?;
                self.object = object;
                self.take_layers(None);
            }
            Way::Beside | Way::Kept => self.move_beside(&changing, size, way == Way::Kept)?,
        }
        self.backed.clear();
        Ok(true)
    }
}

impl Writer {
    /// A copy needs a durable primary.
    pub(super) fn settle_to_move(&mut self, changing: &Changing) -> Result<()> {
        self.dissolve_page_cache(changing)?;
        self.settle_within(changing)
    }

    /// A shrink may have left bytes there.
    fn clear_end(&mut self) -> Result<()> {
        let (size, end) = (self.object.entry.size.get(), self.object.entry.extent_len());
        let from = size / LINE * LINE;
        let mut bytes = vec![0; (end - from) as usize];
        self.apply()?;
        self.read_primary(from, &mut bytes)?;
        let behind = &mut bytes[(size - from) as usize..];
        if behind.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        behind.fill(0);
        self.psync_step(&mut |primary, batch: &mut Batch| {
            batch.copy_lines(primary + from, &bytes);
            Ok(end)
        })
    }
}

pub(super) fn pages_of(object: &Located, size: u64) -> Result<u64> {
    let pages = object.entry.pages_of(size).filter(|_| size <= 1 << 46);
    pages.ok_or(StoreError::BadSize { size, why: "the address range ends at 64 TiB" })
}

pub(in crate::store) fn reach(
    table: &mut TableTransaction<'_>,
    object: &mut Located,
    len: u64,
) -> Result<()> {
    let (address, reserved) = (object.entry.address.get(), object.entry.reserved.get());
    if len <= reserved {
        return Ok(());
    }
    if !ADDRESSES.claim(table, address + reserved, len - reserved)? {
        return Err(StoreError::NoAddresses { needed: len, largest: reserved });
    }
    object.entry.reserved = U64::new(len);
    Ok(())
}
