//! Resize: in place where the pages behind the object are free and its addresses reach, else a larger
//! extent and a copy (S0.7). One table batch makes either real.
//!
//! A copy may take long, so that the table is not held meanwhile: the larger extent is a hidden object
//! until it takes the place of the old one. A crash leaves at most a hidden object that nobody has
//! locked, which the next resize removes.

use super::Store;
use super::attach::Writer;
use super::hold::Hold;
use super::objects::HIDDEN;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::entry::{FLAG_SPARSE, STATE_D};
use crate::format::{LINE, PAGE, pages_for};
use crate::lane::Batch;
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::space::{ADDRESSES, Draft};
use crate::table::{CreateOptions, Key, Located};
use std::sync::Arc;
use zerocopy::little_endian::U64;

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

impl Store {
    /// Gives an object nobody has attached another size. Shrinking cuts off its end.
    pub fn resize(self: &Arc<Self>, name: &str, key: Key<'_>, size: u64) -> Result<Located> {
        self.reap()?;
        let (mut object, hold, recovered) = self.update(|draft| {
            let object = draft.find(name)?.ok_or(StoreError::NotFound)?;
            if !object.opens_for_writing(key) {
                return Err(StoreError::WrongKey);
            }
            let hold = Hold::take(self, &object, LockMode::Exclusive)?;
            let recovered = self.recover(draft, &object)?;
            let mut object = object;
            object.entry.state = STATE_D;
            object.entry.lane = zerocopy::little_endian::U32::new(crate::format::entry::NO_LANE);
            draft.put_entry(&object)?;
            Ok((object, hold, recovered))
        })?;
        drop(recovered);
        if pages_for(size) < object.entry.pages.get() {
            self.shrink(&mut object, size)?;
        } else {
            self.grow(&mut object, size, None, true)?;
        }
        drop(hold);
        Ok(object)
    }

    fn shrink(&self, object: &mut Located, size: u64) -> Result<()> {
        if size == 0 {
            return Err(StoreError::BadSize { size, why: "an object has at least one byte" });
        }
        let keep = pages_for(size);
        let cut = object.entry.pages.get() - keep;
        *object = self.update_then(
            |draft| {
                let mut object = draft.entry(object.offset)?;
                draft.stock_up(false)?;
                let (first, pages) = (object.entry.primary.get(), object.entry.pages.get());
                draft.give_extent(first + keep, pages - keep)?;
                object.entry.pages = U64::new(keep);
                object.entry.size = U64::new(size);
                draft.put_entry(&object)?;
                Ok(object)
            },
            |object: Located| {
                let end = object.entry.primary_offset() + object.entry.extent_len();
                self.device.discard(end, cut * PAGE);
                object
            },
        )?;
        Ok(())
    }

    /// Grows an object the caller has exclusively; `lane` is the lane it is bound to. Without room behind
    /// it, it moves if it `may`.
    fn grow(self: &Arc<Self>, object: &mut Located, size: u64, lane: Option<u32>, may: bool) -> Result<()> {
        let pages = pages_for(size);
        if size > 1 << 46 {
            return Err(StoreError::BadSize { size, why: "the address range ends at 64 TiB" });
        }
        let old = object.entry.pages.get();
        // What a shrink left behind the end comes back as zeros; a writer has seen to that already.
        let kept = match lane {
            None if size >= object.entry.size.get() => object.entry.size.get(),
            _ => old * PAGE,
        };
        let grown = self.update(|draft| {
            let mut object = draft.entry(object.offset)?;
            draft.stock_up(true)?;
            let end = object.entry.primary.get() + old;
            if pages > old && !draft.extend_extent(end, pages - old)? {
                return Ok(None);
            }
            reach(draft, &mut object, pages * PAGE)?;
            object.entry.pages = U64::new(pages);
            object.entry.size = U64::new(size);
            self.prepare_extent(draft, &object, kept)?;
            draft.put_entry(&object)?;
            Ok(Some(object))
        })?;
        *object = match grown {
            Some(object) => object,
            None if may => self.move_larger(object, kept, size, lane)?,
            None => return Err(StoreError::NoRoom { needed: (pages - old) * PAGE, free: 0, largest: 0 }),
        };
        Ok(())
    }

    /// Copies the object into a larger extent and lets that take the old one's place.
    fn move_larger(
        self: &Arc<Self>,
        object: &Located,
        kept: u64,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        let tag = random_id()?.iter().fold(String::new(), |tag, byte| tag + &format!("{byte:02x}"));
        let name = format!("{HIDDEN}{tag}");
        let sparse = object.entry.flags & FLAG_SPARSE != 0;
        let (larger, hold) =
            self.create_hidden(&name, &CreateOptions { size, sparse, ..CreateOptions::default() })?;
        let result =
            self.copy(object, &larger, kept).and_then(|()| self.exchange(object, &larger, hold, size, lane));
        if result.is_err() {
            // What cannot be removed now is removed by the next resize.
            let _ = self.reap();
        }
        result
    }

    fn exchange(
        &self,
        object: &Located,
        larger: &Located,
        hold: Hold,
        size: u64,
        lane: Option<u32>,
    ) -> Result<Located> {
        if !Mutant::EarlyExchange.is_on() {
            self.device.barrier()?;
        }
        self.update_then(
            |draft| {
                let mut moved = draft.entry(object.offset)?;
                let mut spare = draft.entry(larger.offset)?;
                draft.stock_up(true)?;
                reach(draft, &mut moved, spare.entry.extent_len())?;
                // The two exchange extents; the spare goes, with the old one.
                std::mem::swap(&mut moved.entry.primary, &mut spare.entry.primary);
                std::mem::swap(&mut moved.entry.pages, &mut spare.entry.pages);
                moved.entry.size = U64::new(size);
                match lane {
                    Some(lane) => self.bind(draft, &mut moved, lane)?,
                    None => draft.put_entry(&moved)?,
                }
                draft.destroy(&spare)?;
                Ok((moved, spare))
            },
            |(moved, spare)| {
                self.device.discard(spare.entry.primary_offset(), spare.entry.extent_len());
                drop(hold);
                moved
            },
        )
    }

    /// Copies the first `len` bytes.
    fn copy(&self, from: &Located, to: &Located, len: u64) -> Result<()> {
        let (source, target) = (from.entry.primary_offset(), to.entry.primary_offset());
        let mut buffer = vec![0; PIECE.min(len) as usize];
        let mut at = 0;
        while at < len {
            let piece = (len - at).min(PIECE) as usize;
            self.device.read(source + at, &mut buffer[..piece])?;
            // Holes stay holes.
            if buffer[..piece].iter().any(|byte| *byte != 0) {
                self.device.reserve(target + at, piece as u64)?;
                self.device.write(target + at, &buffer[..piece])?;
            }
            at += piece as u64;
        }
        Ok(())
    }

    fn create_hidden(self: &Arc<Self>, name: &str, how: &CreateOptions<'_>) -> Result<(Located, Hold)> {
        let (id, now) = (random_id()?, now());
        self.update(|draft| {
            let object = draft.create_any(name, id, now, how)?;
            self.prepare_extent(draft, &object, 0)?;
            // Before others can see it: without a lock it is theirs to remove.
            let hold = Hold::take(self, &object, LockMode::Exclusive)?;
            Ok((object, hold))
        })
    }

    /// Removes what resizes that died left behind; returns how many there were.
    pub fn reap(self: &Arc<Self>) -> Result<u64> {
        let mut reaped = 0;
        let hidden = self.view(|draft| draft.hidden(HIDDEN))?;
        for object in hidden {
            let removed = self.update_then(
                |draft| {
                    // The slot may be another object's by now.
                    let Some(object) = draft.find_id(&object.entry.id)? else { return Ok(None) };
                    let Ok(hold) = Hold::take(self, &object, LockMode::Exclusive) else { return Ok(None) };
                    draft.destroy(&object)?;
                    Ok(Some(hold))
                },
                |hold| hold.is_some(),
            )?;
            reaped += u64::from(removed);
        }
        Ok(reaped)
    }
}

impl Writer {
    /// Grows the attached object. Returns whether it moved to another extent (its address stays).
    ///
    /// # Errors
    /// `BadSize` for a smaller size, `NoRoom`, `NoAddresses`: nothing changed.
    pub fn grow(&mut self, size: u64) -> Result<bool> {
        self.grow_if(size, true)
    }

    /// As [`grow`](Writer::grow), but only where the object stands.
    ///
    /// # Errors
    /// As for [`grow`](Writer::grow), and `NoRoom` if the pages behind it are taken.
    pub fn grow_in_place(&mut self, size: u64) -> Result<()> {
        self.grow_if(size, false).map(drop)
    }

    fn grow_if(&mut self, size: u64, may_move: bool) -> Result<bool> {
        if pages_for(size) < self.object.entry.pages.get() {
            return Err(StoreError::BadSize { size, why: "an attached object only grows" });
        }
        self.dissolve_twins()?;
        if size > self.object.entry.size.get() {
            self.clear_end()?;
        }
        // Copying, and leaving the lane's batches behind, needs the primary durable in place.
        self.settle()?;
        let before = self.object.entry.primary;
        let mut object = self.object;
        let store = self.store.clone();
        store.grow(&mut object, size, Some(self.lane.index), may_move)?;
        self.object = object;
        // Another extent, or a last piece that got longer.
        self.backed.clear();
        Ok(self.object.entry.primary != before)
    }
}

impl Writer {
    /// Clears what a shrink left in the last page, behind the object's end.
    fn clear_end(&mut self) -> Result<()> {
        let (size, end) = (self.object.entry.size.get(), self.object.entry.extent_len());
        let from = size / LINE * LINE;
        let mut bytes = vec![0; (end - from) as usize];
        self.store.device.read(self.object.entry.primary_offset() + from, &mut bytes)?;
        let behind = &mut bytes[(size - from) as usize..];
        if behind.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        behind.fill(0);
        self.psync(&mut |primary, batch: &mut Batch| {
            batch.copy_lines(primary + from, &bytes);
            Ok(end)
        })
    }
}

/// Makes the object's address range reach `len` bytes.
fn reach(draft: &mut Draft<'_>, object: &mut Located, len: u64) -> Result<()> {
    let (address, reserved) = (object.entry.address.get(), object.entry.reserved.get());
    if len <= reserved {
        return Ok(());
    }
    if !ADDRESSES.claim(draft, address + reserved, len - reserved)? {
        return Err(StoreError::NoAddresses { needed: len, largest: reserved });
    }
    object.entry.reserved = U64::new(len);
    Ok(())
}
