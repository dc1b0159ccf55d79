//! Ties: an object outlives the objects that it is tied to. A list in its own extent has their IDs.
//!
//! A change writes a new list, durably, before the entry points to it. An ID without an object
//! means nothing, so removing an object needs no search.
//!
//! Invariants:
//! 1. Nothing in the list of an object is tied to that object, directly or through others
//!    (`expect_no_cycle`).
//! 2. No object is tied to a base: a base outlives its users, which would allow other cycles.
//!
//! Cost: a tie writes the whole list, of [`TIES_MAX`] IDs at most.

use super::Located;
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{Entry, FLAG_BASE, FLAG_DELETED, FLAG_TARGET, FLAG_TIED, TIES_MAX};
use crate::format::{PAGE, checksum};
use crate::medium::{Medium, write_fresh};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use std::collections::BTreeSet;
use zerocopy::little_endian::U64;

/// Granularity, in bytes, at which `virgin` rises.
const AHEAD: u64 = 1 << 20;

type Id = [u8; 16];

/// A tie to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// ID of the outlived object.
    pub id: Id,
    /// Its present or last name.
    pub name: String,
    /// Whether it is deleted, but still attached or tied itself.
    pub deleted: bool,
}

/// An object's list.
///
/// # Errors
/// `Damaged`. The medium's.
pub fn tied_to(medium: &dyn Medium, seed: u64, entry: &Entry) -> Result<Vec<Id>> {
    if !entry.has(FLAG_TIED) {
        return Ok(Vec::new());
    }
    let mut list = vec![[0; 16]; entry.tie_count.get().min(TIES_MAX) as usize];
    medium.read(entry.ties.get() * PAGE, list.as_flattened_mut())?;
    if checksum(seed, &[&entry.id, list.as_flattened()]) != entry.ties_sum.get() {
        return Err(StoreError::damaged(Part::Ties, entry.ties.get() * PAGE));
    }
    Ok(list)
}

impl TableTransaction<'_> {
    fn tied_to(&self, object: &Located) -> Result<Vec<Id>> {
        tied_to(self.pages().medium(), self.seed(), &object.entry)
    }

    /// Whether an object exists that this one is tied to. True if its list is damaged: only a
    /// repair may drop that.
    pub fn is_tied(&self, object: &Located) -> Result<bool> {
        if Mutant::TieIgnored.is_on() {
            return Ok(false);
        }
        let list = match self.tied_to(object) {
            Err(StoreError::Damaged { part: Part::Ties, .. }) => return Ok(true),
            list => list?,
        };
        for id in list {
            if self.find_id(&id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The objects that this one is tied to.
    ///
    /// # Errors
    /// `Damaged`. The table's.
    pub fn ties(&self, object: &Located) -> Result<Vec<Located>> {
        let mut found = Vec::new();
        for id in self.tied_to(object)? {
            found.extend(self.find_id(&id)?);
        }
        Ok(found)
    }

    /// Ties the object to `to`. `false`: the list would lie in known-zero space, claimed now; the
    /// caller tries again.
    ///
    /// # Errors
    /// `TieTarget`, `TieCycle`, `TooManyTies`, `NoRoom`, `Damaged`.
    pub fn tie(&mut self, object: &mut Located, to: &mut Located) -> Result<bool> {
        if to.entry.has(FLAG_BASE) {
            return Err(StoreError::TieTarget);
        }
        let mut list = self.tied_to(object)?;
        if list.contains(&to.entry.id) {
            return Ok(true);
        }
        if list.len() as u64 == TIES_MAX {
            list = self.ties(object)?.iter().map(|target| target.entry.id).collect();
        }
        if list.len() as u64 == TIES_MAX {
            return Err(StoreError::TooManyTies { most: TIES_MAX });
        }
        self.expect_no_cycle(object, to)?;
        list.push(to.entry.id);
        if !self.put_ties(object, &list)? {
            return Ok(false);
        }
        // Its removal looks for objects tied to it.
        to.entry.set(FLAG_TARGET, true);
        self.put_entry(to)?;
        Ok(true)
    }

    /// Removes the ties that `goes` selects; returns their number, or `None` as `false` of
    /// [`tie`](Self::tie).
    ///
    /// # Errors
    /// `Damaged`, `NoRoom`.
    pub fn untie(&mut self, object: &mut Located, goes: impl Fn(&Located) -> bool) -> Result<Option<u64>> {
        let ties = self.ties(object)?;
        let left: Vec<Id> = ties.iter().filter(|tie| !goes(tie)).map(|tie| tie.entry.id).collect();
        if left.len() == ties.len() {
            return Ok(Some(0));
        }
        let untied = (ties.len() - left.len()) as u64;
        Ok(self.put_ties(object, &left)?.then_some(untied))
    }

    /// Drops an object's list, damaged or cyclic.
    pub fn drop_ties(&mut self, object: &mut Located) -> Result<()> {
        self.give_extent(object.entry.ties.get(), object.entry.ties_pages())?;
        object.entry.point_to_ties(0, 0, 0);
        self.put_entry(object)
    }

    fn put_ties(&mut self, object: &mut Located, list: &[Id]) -> Result<bool> {
        if list.is_empty() {
            return self.drop_ties(object).map(|()| true);
        }
        self.stock_up(true)?;
        let (count, sum) =
            (list.len() as u64, checksum(self.seed(), &[&object.entry.id, list.as_flattened()]));
        let pages = (count * 16).div_ceil(PAGE);
        let first = self.take_extent(pages)?;
        let (start, len) = (first * PAGE, pages * PAGE);
        if start + len > self.root.virgin.get() {
            // It must stay zeros through a crash.
            self.give_extent(first, pages)?;
            self.raise_virgin((start + len + AHEAD).min(self.pool_len()));
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        bytes[..list.as_flattened().len()].copy_from_slice(list.as_flattened());
        if Mutant::TieUnproven.is_on() {
            self.pages().medium().write(start, &bytes)?;
        } else {
            write_fresh(self.pages().medium(), start, &bytes)?;
        }
        self.give_extent(object.entry.ties.get(), object.entry.ties_pages())?;
        object.entry.point_to_ties(first, count, sum);
        self.put_entry(object)?;
        Ok(true)
    }

    fn expect_no_cycle(&self, object: &Located, to: &Located) -> Result<()> {
        let (mut seen, mut next) = (BTreeSet::from([to.entry.id]), vec![*to]);
        while let Some(at) = next.pop() {
            if at.entry.id == object.entry.id {
                return Err(StoreError::TieCycle);
            }
            for target in self.ties(&at)? {
                if seen.insert(target.entry.id) {
                    next.push(target);
                }
            }
        }
        Ok(())
    }
}

impl Located {
    /// The tie that names this object.
    #[must_use]
    pub fn as_tie(&self) -> Tie {
        Tie { id: self.entry.id, name: self.entry.name(), deleted: self.entry.has(FLAG_DELETED) }
    }
}

impl Entry {
    pub(super) fn forget_ties(&mut self) {
        self.point_to_ties(0, 0, 0);
        self.set(FLAG_TARGET, false);
    }

    fn point_to_ties(&mut self, first: u64, count: u64, sum: u64) {
        self.set(FLAG_TIED, count > 0);
        (self.ties, self.tie_count, self.ties_sum) = (U64::new(first), U64::new(count), U64::new(sum));
    }
}
