//! Bases in the table: extents become bases, objects rest on them, unneeded bases go.
//!
//! Invariants, beside those of the objects:
//! 1. `users` of a base counts the objects, bases included, that rest on it.
//! 2. A base without a name and users awaits removal.

use super::{CreateOptions, Located};
use crate::error::Result;
use crate::format::PAGE;
use crate::format::entry::{
    FLAG_BASE, FLAG_CONTENT, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY, FLAG_READ_ONLY, FLAG_SPARSE, NO_LANE,
    STATE_D,
};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use zerocopy::little_endian::{U32, U64};

impl TableTransaction<'_> {
    /// Makes an object's extent a base with its own entry; the caller lets the object
    /// [rest](Self::rest) on it. A base without `name` cannot be attached.
    pub fn freeze(
        &mut self,
        object: &Located,
        name: Option<&str>,
        id: [u8; 16],
        now: u64,
        keys: &CreateOptions<'_>,
    ) -> Result<Located> {
        name.map_or(Ok(()), |name| self.expect_free(name))?;
        self.stock_up(true)?;
        let mut entry = object.entry;
        entry.id = id;
        entry.created = U64::new(now);
        (entry.state, entry.lane) = (STATE_D, U32::new(NO_LANE));
        (entry.binding, entry.pid, entry.boot) = Default::default();
        // Verifiers of keys depend on the ID.
        keys.keep_keys(&mut entry);
        for flag in [FLAG_BASE, FLAG_READ_ONLY, FLAG_FOREIGN] {
            entry.set(flag, true);
        }
        entry.set(FLAG_CONTENT, false);
        entry.set(FLAG_HIDDEN, name.is_none());
        entry.hold_in(None);
        entry.forget_ties();
        entry.keep_in(None);
        entry.users = U64::new(0);
        entry.set_name(name.unwrap_or("base"));
        self.enter(entry)
    }

    /// Adds an object on `base`. The caller clears its bitmap.
    pub fn create_on(
        &mut self,
        base: &mut Located,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        self.expect_free(name)?;
        how.check_boot()?;
        self.stock_up(true)?;
        let mut entry = base.entry;
        entry.id = id;
        entry.created = U64::new(now);
        entry.binding = U64::new(0);
        for flag in [FLAG_BASE, FLAG_HIDDEN] {
            entry.set(flag, false);
        }
        entry.set(FLAG_READ_ONLY, how.read_only);
        entry.hold_in(how.volatile);
        entry.forget_ties();
        entry.keep_in(None);
        entry.set(FLAG_FOREIGN, true);
        entry.users = U64::new(0);
        how.keep_keys(&mut entry);
        entry.set_name(name);
        let mut object = self.enter(entry)?;
        self.rest(&mut object, base)?;
        Ok(object)
    }

    /// Lets the object rest on `base` with a new, empty extent, with room to grow if possible. The
    /// caller clears its bitmap.
    pub fn rest(&mut self, object: &mut Located, base: &mut Located) -> Result<()> {
        self.rest_in(object, base, None)
    }

    /// [`rest`](Self::rest) with the object's own extent at page `kept`, if given.
    pub fn rest_in(&mut self, object: &mut Located, base: &mut Located, kept: Option<u64>) -> Result<()> {
        let entry = &mut object.entry;
        entry.set(FLAG_OVERLAY, true);
        entry.set(FLAG_SPARSE, true);
        entry.base = U64::new(base.offset);
        entry.based = entry.pages;
        let (pages, bitmap) = (entry.pages.get(), entry.bitmap_pages());
        object.entry.overlay = U64::new(self.take_extent(bitmap)?);
        object.entry.primary = U64::new(kept.map_or_else(|| self.take_roomy_extent(pages), Ok)?);
        base.entry.users = U64::new(base.entry.users.get().saturating_add(1));
        self.put_entry(base)?;
        self.put_entry(object)
    }

    /// Detaches an object with only own pages from its base; the caller puts the entry. Returns the
    /// base if it is unused and nameless now.
    pub fn leave_base(&mut self, object: &mut Located) -> Result<Option<Located>> {
        if !object.entry.has(FLAG_OVERLAY) {
            return Ok(None);
        }
        self.give_extent(object.entry.overlay.get(), object.entry.bitmap_pages())?;
        let mut base = self.base(object)?;
        base.entry.users = U64::new(base.entry.users.get().saturating_sub(1));
        self.put_entry(&base)?;
        object.entry.set(FLAG_OVERLAY, false);
        (object.entry.base, object.entry.based, object.entry.overlay) = Default::default();
        let unused = base.is_unused_base() || Mutant::BaseFreed.is_on() && base.entry.has(FLAG_HIDDEN);
        Ok(unused.then_some(base))
    }

    /// Gives the object its base's extent, with the pages of both, and the base's base. The base
    /// keeps the object's former extent, for the caller to destroy.
    pub fn take_place_of_base(&mut self, object: &mut Located, base: &mut Located) -> Result<()> {
        self.give_extent(object.entry.overlay.get(), object.entry.bitmap_pages())?;
        let (own, entry) = (object.entry.primary, base.entry);
        for flag in [FLAG_OVERLAY, FLAG_SPARSE] {
            object.entry.set(flag, entry.has(flag));
        }
        object.entry.primary = entry.primary;
        (object.entry.base, object.entry.based, object.entry.overlay) =
            (entry.base, entry.based, entry.overlay);
        let pages = object.entry.pages.get();
        self.give_extent(entry.primary.get() + pages, entry.pages.get() - pages)?;
        self.narrow(object, pages)?;
        (base.entry.primary, base.entry.pages) = (own, object.entry.pages);
        base.entry.set(FLAG_OVERLAY, false);
        (base.entry.base, base.entry.based, base.entry.overlay) = Default::default();
        self.put_entry(base)?;
        self.put_entry(object)
    }

    /// Sets the object's size, with `pages` of its extent; the caller puts the entry.
    pub fn shorten(&mut self, object: &mut Located, pages: u64, size: u64) -> Result<()> {
        let (first, before) = (object.entry.primary.get(), object.entry.pages.get());
        if pages < before {
            self.give_extent(first + pages, before - pages)?;
            self.narrow(object, pages)?;
        }
        (object.entry.pages, object.entry.size) = (U64::new(pages), U64::new(size));
        Ok(())
    }

    /// Lets a new, cleared object take its first `pages` pages from `base`, but for those that the
    /// caller marks as its own.
    pub fn rest_in_part(&mut self, object: &mut Located, base: &mut Located, pages: u64) -> Result<()> {
        let kept = object.entry.primary.get();
        self.rest_in(object, base, Some(kept))?;
        self.narrow(object, pages)?;
        self.put_entry(object)
    }

    /// Takes only the first `pages` pages from the base.
    pub fn narrow(&mut self, object: &mut Located, pages: u64) -> Result<()> {
        if object.entry.based.get() <= pages || !object.entry.has(FLAG_OVERLAY) {
            return Ok(());
        }
        let before = object.entry.bitmap_pages();
        object.entry.based = U64::new(pages);
        let left = object.entry.bitmap_pages();
        if left < before {
            self.give_extent(object.entry.overlay.get() + left, before - left)?;
        }
        Ok(())
    }
}

impl Located {
    /// Whether it is a base that nothing needs.
    #[must_use]
    pub fn is_unused_base(&self) -> bool {
        self.entry.has(FLAG_BASE) && self.entry.has(FLAG_HIDDEN) && self.entry.users.get() == 0
    }

    /// Whether it is a base with users.
    #[must_use]
    pub fn is_used_base(&self) -> bool {
        self.entry.has(FLAG_BASE) && self.entry.users.get() > 0
    }

    /// The bitmap's offset in the pool and its length; empty without a base.
    #[must_use]
    pub fn bitmap(&self) -> (u64, u64) {
        (self.entry.bitmap_offset(), self.entry.bitmap_pages() * PAGE)
    }
}
