//! Objects in the table: find, create, destroy, resize, list.
//!
//! Invariants:
//! 1. A used slot is in both the name tree and the ID tree; a free slot is in the free list.
//! 2. Its extent and its address range belong to it alone.

use super::create_options::{CreateOptions, Key};
use super::names::{check_name, parse_id};
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{self, Entry, FLAG_FOREIGN, FLAG_HIDDEN, PROGRESS, Progress};
use crate::format::root::TreeId;
use crate::format::seal::Shape;
use crate::format::{LINE, PAGE, checksum, pages_for};
use crate::medium::read_struct;
use crate::mutant::Mutant;
use crate::space::{ADDRESSES, PAGES, TableTransaction, next_key};
use zerocopy::FromZeros;
use zerocopy::little_endian::{U32, U64};

const REACH_UNIT: u64 = 64 * 1024;

/// Pool lengths to which an object may grow, while addresses are plentiful.
const GROWTH: u64 = 8;

/// Bytes, while plentiful.
const LEAST_REACH: u64 = 1 << 30;

/// An entry and its place.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// Offset of the slot.
    pub offset: u64,
    /// The slot.
    pub entry: Entry,
    /// Its last line as read, unverified.
    pub line: Progress,
}

/// When a name leads to a new object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// At once.
    ByName,
    /// Once it is whole.
    Later,
    /// It has no addresses.
    Never,
}

/// A part of a listing.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Located>,
    /// Start of the next part; `None`: the end.
    pub next: Option<(u64, u64)>,
}

impl<'a> CreateOptions<'a> {
    /// Options with `key` for both keys, if `object` has any.
    #[must_use]
    pub fn with_keys_of(&self, object: &Located, key: Key<'a>) -> Self {
        let Entry { read_key, write_key, .. } = &object.entry;
        let keyed = self.read_key.0.is_empty() && self.write_key.0.is_empty();
        let inherit = |has: &[u8; 16], own: Key<'a>| if keyed && *has != [0; 16] { key } else { own };
        CreateOptions {
            read_key: inherit(read_key, self.read_key),
            write_key: inherit(write_key, self.write_key),
            ..*self
        }
    }
}

impl TableTransaction<'_> {
    /// Hash of a name.
    #[must_use]
    pub fn name_hash(&self, name: &str) -> u64 {
        name_hash(self.seed(), name)
    }

    /// Writes an entry back.
    pub fn put_entry(&mut self, located: &Located) -> Result<()> {
        let sealed = located.entry.sealed(self.seed());
        Ok(self.pages_mut().write(located.offset, &sealed)?)
    }

    /// The applied progress line.
    pub fn progress(&self, located: &Located) -> Result<Progress> {
        let line = read_struct(self.pages().medium(), located.offset + PROGRESS)?;
        Located { line, ..*located }.progress(self.seed())
    }

    /// The object called `name`, or with the ID in it.
    pub fn find(&self, name: &str) -> Result<Option<Located>> {
        if let Some(id) = parse_id(name) {
            return Ok(self.find_id(&id)?.filter(|found| !found.entry.has(FLAG_HIDDEN)));
        }
        let hash = self.name_hash(name);
        let mut from = Some((hash, 0));
        while let Some(key) = from {
            let Some(slot) = self.at_or_after(TreeId::Names, key)?.filter(|slot| slot.key().0 == hash) else {
                break;
            };
            let located = self.entry(slot.value.get())?;
            if located.entry.name_bytes() == name.as_bytes() && !located.entry.has(FLAG_HIDDEN) {
                return Ok(Some(located));
            }
            from = next_key(slot.key());
        }
        Ok(None)
    }

    /// The usable object called `name`.
    ///
    /// # Errors
    /// `NotFound`; `ObjectFeature`: unknown feature. Those of the table.
    pub fn object(&self, name: &str) -> Result<Located> {
        let found = self.find(name)?.ok_or(StoreError::NotFound)?;
        match found.entry.unknown().filter(|_| !Mutant::UnknownUsed.is_on()) {
            Some(unknown) => Err(StoreError::ObjectFeature { unknown }),
            None => Ok(found),
        }
    }

    /// The object with this ID.
    pub fn find_id(&self, id: &[u8; 16]) -> Result<Option<Located>> {
        let Some(offset) = self.get(TreeId::Ids, id_key(id))? else { return Ok(None) };
        let found = self.entry(offset)?;
        if found.entry.id == *id { Ok(Some(found)) } else { Err(StoreError::damaged(Part::Entry, offset)) }
    }

    /// At most `limit` objects from `from` on, in the table's order.
    pub fn list(&self, from: (u64, u64), limit: usize) -> Result<Page> {
        let mut page = Page::default();
        let mut from = Some(from);
        while let Some(key) = from {
            let Some(slot) = self.at_or_after(TreeId::Names, key)? else { break };
            if page.objects.len() == limit {
                page.next = Some(slot.key());
                break;
            }
            page.objects.push(self.entry(slot.value.get())?);
            from = next_key(slot.key());
        }
        Ok(page)
    }

    /// All hidden objects, neighbours in the tree of names.
    pub fn hidden(&self) -> Result<Vec<Located>> {
        let mut found = Vec::new();
        let mut from = Some((0, 0));
        while let Some(key) = from {
            let Some(slot) = self.at_or_after(TreeId::Names, key)?.filter(|slot| slot.key().0 == 0) else {
                break;
            };
            let object = self.entry(slot.value.get())?;
            if object.entry.has(FLAG_HIDDEN) {
                found.push(object);
            }
            from = next_key(slot.key());
        }
        Ok(found)
    }

    /// Renames an object.
    ///
    /// # Errors
    /// `Exists`; those of the table.
    pub fn rename(&mut self, object: &mut Located, new: &str) -> Result<()> {
        self.expect_free(new)?;
        self.stock_up(true)?;
        let old = self.name_hash(&object.entry.name());
        self.remove(TreeId::Names, (old, object.offset))?;
        object.entry.set_name(new);
        self.insert(TreeId::Names, (self.name_hash(new), object.offset), object.offset)?;
        self.put_entry(object)
    }

    /// Adds an object. The caller zeroes its extent.
    pub fn create(&mut self, name: &str, id: [u8; 16], now: u64, how: &CreateOptions<'_>) -> Result<Located> {
        self.expect_free(name)?;
        self.add(name, id, now, how, (Seen::ByName, None))
    }

    /// [`create`](Self::create) of a hidden object, to be [revealed](Self::reveal).
    pub fn create_unfinished(
        &mut self,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        self.expect_free(name)?;
        self.add(name, id, now, how, (Seen::Later, None))
    }

    pub(super) fn expect_free(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if self.find(name)?.is_some() { Err(StoreError::Exists) } else { Ok(()) }
    }

    /// Adds a hidden object without addresses; `name` describes it.
    pub fn create_hidden(
        &mut self,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        check_name(name)?;
        self.add(name, id, now, how, (Seen::Never, None))
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
        (seen, sealed): (Seen, Option<Shape>),
    ) -> Result<Located> {
        if how.size == 0 {
            return Err(StoreError::BadSize { size: 0, why: "an object has at least one byte" });
        }
        if how.size > 1 << 46 {
            return Err(StoreError::BadSize { size: how.size, why: "the address range ends at 64 TiB" });
        }
        how.check_boot()?;
        self.stock_up(true)?;
        let pages = sealed.map_or(pages_for(how.size), Shape::pages);
        let primary = self.take_extent(pages)?;
        let placed = seen != Seen::Never;
        let (address, reserved) =
            if placed { self.take_addresses(pages * PAGE, how)? } else { (0, pages * PAGE) };
        let mut entry = Entry::new_zeroed();
        entry.magic = U32::new(entry::MAGIC);
        entry.set(FLAG_FOREIGN, !placed);
        entry.set(entry::FLAG_READ_ONLY, how.read_only);
        entry.set(entry::FLAG_SPARSE, how.sparse);
        entry.set(entry::FLAG_POSITION_INDEPENDENT, how.position_independent);
        entry.set(entry::FLAG_HIDDEN, seen != Seen::ByName);
        entry.set(entry::FLAG_SEALED, sealed.is_some());
        entry.set(entry::FLAG_ECC, how.ecc);
        entry.hold_in(how.volatile);
        how.class.give(&mut entry)?;
        super::class::Class::let_read(&mut entry, how.readable_outside)?;
        entry.id = id;
        entry.size = U64::new(how.size);
        entry.pages = U64::new(pages);
        entry.primary = U64::new(primary);
        entry.address = U64::new(address);
        entry.reserved = U64::new(reserved);
        entry.lane = U32::new(entry::NO_LANE);
        entry.created = U64::new(now);
        how.keep_keys(&mut entry);
        entry.set_name(name);
        self.enter(entry)
    }

    pub(super) fn enter(&mut self, mut entry: Entry) -> Result<Located> {
        let offset = self.take_slot()?;
        entry.own_offset = U64::new(offset);
        let located = Located { offset, entry, line: Progress::default() };
        self.put_entry(&located)?;
        self.insert(TreeId::Names, (entry_hash(self.seed(), &entry), offset), offset)?;
        self.insert(TreeId::Ids, id_key(&entry.id), offset)?;
        self.root.objects = U64::new(self.root.objects.get().saturating_add(1));
        Ok(located)
    }

    /// Removes an object and frees its space. Returns its base, if that is unneeded now.
    pub fn destroy(&mut self, located: &Located) -> Result<Option<Located>> {
        self.stock_up(false)?;
        let base = self.leave_base(&mut { *located })?;
        self.remove_entry(located)?;
        Ok(base)
    }

    /// [`destroy`](Self::destroy) of an object whose base is gone.
    pub fn destroy_alone(&mut self, located: &Located) -> Result<()> {
        self.stock_up(false)?;
        self.give_extent(located.entry.overlay.get(), located.entry.bitmap_pages())?;
        self.remove_entry(located)
    }

    fn remove_entry(&mut self, located: &Located) -> Result<()> {
        let entry = &located.entry;
        self.remove(TreeId::Names, (entry_hash(self.seed(), entry), located.offset))?;
        self.remove(TreeId::Ids, id_key(&entry.id))?;
        if !Mutant::LeakedSpace.is_on() {
            self.give_extent(entry.primary.get(), entry.pages.get())?;
        }
        self.give_extent(entry.ties.get(), entry.ties_pages())?;
        if !entry.has(FLAG_FOREIGN) {
            ADDRESSES.release(self, entry.address.get(), entry.reserved.get())?;
        }
        self.give_slot(located.offset)?;
        self.root.objects = U64::new(self.root.objects.get().saturating_sub(1));
        Ok(())
    }

    /// Takes an extent of `pages` pages.
    pub fn take_extent(&mut self, pages: u64) -> Result<u64> {
        let first = PAGES.allocate(self, pages)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_sub(pages));
        Ok(first)
    }

    /// Takes an extent followed by as much free space as possible.
    pub fn take_roomy_extent(&mut self, pages: u64) -> Result<u64> {
        let first = PAGES.allocate_roomy(self, pages)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_sub(pages));
        Ok(first)
    }

    /// Returns an extent.
    pub fn give_extent(&mut self, first: u64, pages: u64) -> Result<()> {
        PAGES.release(self, first, pages)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_add(pages));
        Ok(())
    }

    /// Lengthens the extent that ends at page `end`, if the next pages are free.
    pub fn extend_extent(&mut self, end: u64, pages: u64) -> Result<bool> {
        let grown = PAGES.claim(self, end, pages)?;
        if grown {
            self.root.free_pages = U64::new(self.root.free_pages.get().saturating_sub(pages));
        }
        Ok(grown)
    }

    /// `reach`, if stated. Otherwise several times the pool's length, from the first half of the
    /// window, at most a 32nd of that, or a 16th to have the pool's length; then several times the
    /// size, less as addresses run short.
    pub(super) fn take_addresses(&mut self, len: u64, how: &CreateOptions<'_>) -> Result<(u64, u64)> {
        let round = |bytes: u64| bytes.max(len).next_multiple_of(REACH_UNIT);
        if how.reach > 0 {
            let wanted = round(how.reach);
            return Ok((ADDRESSES.allocate(self, wanted)?, wanted));
        }
        let free = ADDRESSES.largest(self)?;
        let ample = len.saturating_mul(8);
        let ample = if ample <= free / 4 { ample } else { len };
        let plenty = if how.window == 0 { 0 } else { free.saturating_sub(how.window / 2) / 16 };
        let longer = self.pool_len().saturating_mul(GROWTH).max(LEAST_REACH).min(plenty / 2);
        let generous = self.pool_len().min(plenty).max(longer);
        let wanted = round(ample.max(len.saturating_mul(64).min(free >> 20)).max(generous));
        Ok((ADDRESSES.allocate(self, wanted)?, wanted))
    }

    fn take_slot(&mut self) -> Result<u64> {
        if self.root.free_slot.get() == 0 {
            let page = self.take_fresh_page()?;
            // See `format::entry`.
            let line = |offset: u64| offset / LINE;
            let own = ((1_u64 << line(entry::SIZE)) - 1) & !((1 << line(PROGRESS)) - 1);
            let progress =
                (0..PAGE / entry::SIZE).fold(0, |mask, slot| mask | own << line(slot * entry::SIZE));
            self.pages_mut().fresh_page(page, !progress)?;
            for index in (0..PAGE / entry::SIZE).rev() {
                self.give_slot(page + index * entry::SIZE)?;
            }
        }
        let offset = self.root.free_slot.get();
        let free: Entry = self.pages().read(offset)?;
        if free.magic.get() != entry::FREE_MAGIC || free.own_offset.get() != offset {
            return Err(StoreError::damaged(Part::Entry, offset));
        }
        self.root.free_slot = free.next_free;
        Ok(offset)
    }

    pub(crate) fn give_slot(&mut self, offset: u64) -> Result<()> {
        let free = Entry::free(offset, self.root.free_slot.get());
        self.pages_mut().write(offset, &free)?;
        self.root.free_slot = U64::new(offset);
        Ok(())
    }
}

impl Located {
    /// The progress line read with the entry.
    pub fn progress(&self, seed: u64) -> Result<Progress> {
        let damaged = StoreError::damaged(Part::Progress, self.offset + PROGRESS);
        self.line.of(&self.entry.id, seed).ok_or(damaged)
    }

    /// Whether the read or write key is `key`.
    #[must_use]
    pub fn opens_for_reading(&self, key: Key<'_>) -> bool {
        let Entry { id, read_key, write_key, .. } = &self.entry;
        *read_key == [0; 16]
            || *read_key == key.verifier(id, "read")
            || (*write_key != [0; 16] && *write_key == key.verifier(id, "write"))
    }

    /// Whether `key` allows writing and destruction.
    #[must_use]
    pub fn opens_for_writing(&self, key: Key<'_>) -> bool {
        let Entry { id, write_key, .. } = &self.entry;
        // Writing needs read access.
        if *write_key == [0; 16] {
            self.opens_for_reading(key)
        } else {
            *write_key == key.verifier(id, "write")
        }
    }

    /// Whether the slot names a writer, alive or dead.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.entry.state == entry::STATE_W && self.entry.lane.get() != entry::NO_LANE
    }
}

/// Hash of a name in the pool with this seed.
#[must_use]
pub fn name_hash(seed: u64, name: &str) -> u64 {
    checksum(seed ^ 0x6e61_6d65, &[name.as_bytes()])
}

/// Hash of an entry in the tree of names; hidden objects share one.
#[must_use]
pub fn entry_hash(seed: u64, entry: &Entry) -> u64 {
    if entry.has(FLAG_HIDDEN) { 0 } else { name_hash(seed, &entry.name()) }
}

/// Key of an ID in its tree.
#[must_use]
pub fn id_key(id: &[u8; 16]) -> (u64, u64) {
    let half = |at: usize| id[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    (half(0), half(8))
}
