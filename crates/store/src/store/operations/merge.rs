//! Merging: an object, or a base, takes the place of its base, which nothing else needs.
//!
//! Its pages are copied over those in the base's extent, which becomes its own, or those of a
//! shorter, lowest base to free places of the upper extent. Both are durable before one batch of
//! the table.
//!
//! The chain down to the pair is locked, because readers keep layers in memory. The lane's revision
//! tells the writer.

use super::boundary::Right;
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{Entry, FLAG_BASE, FLAG_HIDDEN, FLAG_OVERLAY};
use crate::medium::{LockMode, Medium};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::attachment::renumber;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Bitmap, Key, Layers, Located};
use std::sync::Arc;

/// Each layer above a pair gets a number in the merge's batch.
const ABOVE: usize = 1000;
/// Most pages per copy.
const PIECE: u64 = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Lower,
    Upper,
}

struct Pair {
    /// The object and its bases down to the lower of the pair.
    chain: Vec<Located>,
    into: Into,
}

impl Pair {
    /// `live`: it has a writer.
    fn find(table: &TableTransaction<'_>, object: &Located, live: bool) -> Result<Option<Pair>> {
        let mut chain = vec![*object];
        while let Some(upper) = chain.last().filter(|upper| upper.entry.has(FLAG_OVERLAY)) {
            if chain.len() > ABOVE {
                break;
            }
            let (top, upper) = (chain.len() == 1, *upper);
            let lower = table.base(&upper)?;
            chain.push(lower);
            if lower.entry.users.get() != 1 {
                break;
            }
            if !lower.entry.has(FLAG_HIDDEN) || table.is_tied(&lower)? || top && live {
                continue;
            }
            let into = match lower.entry.pages >= upper.entry.pages {
                true => Into::Lower,
                // The writer may map the lowest extent.
                false if live || lower.entry.has(FLAG_OVERLAY) => continue,
                false => Into::Upper,
            };
            return Ok(Some(Pair { chain, into }));
        }
        Ok(None)
    }

    fn both(&self) -> (&Located, &Located) {
        let [.., upper, lower] = &self.chain[..] else { unreachable!("a pair is two") };
        (upper, lower)
    }

    fn is_current(&self, table: &TableTransaction<'_>) -> Result<bool> {
        for then in &self.chain[1..] {
            match table.find_id(&then.entry.id)? {
                Some(now) if now.offset == then.offset && now.entry.users == then.entry.users => {}
                _ => return Ok(false),
            }
        }
        let object = table.entry(self.chain[0].offset)?;
        let same = |now: &Located, then: &Located| {
            let of = |entry: &Entry| (entry.id, entry.base, entry.binding, entry.state, entry.pages);
            of(&now.entry) == of(&then.entry)
        };
        Ok(same(&object, &self.chain[0]))
    }

    /// Durable; returns the bytes.
    fn copy(&self, medium: &dyn Medium, layers: &Layers) -> Result<u64> {
        let (upper, lower) = self.both();
        let pages = upper.entry.pages.get();
        let (target, wanted): (_, Box<dyn Iterator<Item = u64>>) = match self.into {
            Into::Lower => (lower, Box::new(layers.own_pages(pages))),
            Into::Upper => (upper, Box::new((0..pages).filter(|page| !layers.owns(*page)))),
        };
        let (mut wanted, mut copied) = (wanted.peekable(), 0);
        let mut bytes = Vec::new();
        while let Some(first) = wanted.next() {
            let mut end = first + 1;
            while end - first < PIECE && wanted.next_if_eq(&end).is_some() {
                end += 1;
            }
            let len = (end - first) * PAGE;
            bytes.resize(len as usize, 0);
            layers.read(medium, first * PAGE, &mut bytes)?;
            let at = target.entry.primary_offset() + first * PAGE;
            medium.reserve(at, len)?;
            medium.write(at, &bytes)?;
            copied += len;
        }
        if self.into == Into::Lower && lower.entry.has(FLAG_OVERLAY) && !Mutant::MergedUnclaimed.is_on() {
            self.claim(medium, layers)?;
        }
        if !Mutant::MergeUnproven.is_on() {
            medium.barrier()?;
        }
        Ok(copied)
    }

    fn claim(&self, medium: &dyn Medium, layers: &Layers) -> Result<()> {
        let (upper, lower) = self.both();
        let bitmap = Bitmap::read(&lower.entry, |offset, bytes| medium.read(offset, bytes))?;
        let both = lower.entry.based.get().min(upper.entry.pages.get());
        let (first, then) = bitmap.claiming(layers.own_pages(both).filter(|page| !bitmap.has(*page)));
        for (offset, bytes) in &first {
            medium.reserve(*offset, bytes.len() as u64)?;
            medium.write(*offset, bytes)?;
        }
        if !first.is_empty() {
            medium.barrier()?;
        }
        then.iter().try_for_each(|(offset, bytes)| Ok(medium.write(*offset, bytes)?))
    }

    fn merge(&self, table: &mut TableTransaction<'_>) -> Result<Located> {
        // For readers without locks.
        for above in &self.chain[..self.chain.len() - 1] {
            let mut above = table.entry(above.offset)?;
            renumber(table, &mut above)?;
            table.put_entry(&above)?;
        }
        let (upper, lower) = self.both();
        let (mut upper, mut lower) = (table.entry(upper.offset)?, table.entry(lower.offset)?);
        match self.into {
            Into::Lower => table.take_place_of_base(&mut upper, &mut lower)?,
            Into::Upper => {
                table.leave_base(&mut upper)?;
                table.put_entry(&upper)?;
            }
        }
        table.destroy(&lower)?;
        Ok(lower)
    }
}

impl Store {
    /// Merges unattached bases that only this object needs, and the object if it has no writer;
    /// returns the bytes copied. Skips bases in use.
    ///
    /// # Errors
    /// `NotFound`; `NoSpace` and failures of the medium: earlier merges stay.
    pub fn merge(self: &Arc<Self>, name: &str) -> Result<u64> {
        let mut copied = 0;
        while let Some(bytes) = self.merge_pair(name)? {
            copied += bytes;
        }
        Ok(copied)
    }

    fn merge_pair(self: &Arc<Self>, name: &str) -> Result<Option<u64>> {
        let found = self.view(|table| {
            let object = table.object(name)?;
            let live = self.written_on(&object)?.is_some();
            Ok((!object.entry.has(FLAG_BASE) && Pair::find(table, &object, live)?.is_some()).then_some(live))
        })?;
        let Some(live) = found else { return Ok(None) };
        let own = match live {
            true => None,
            false => {
                match self.unless_held_still(|| self.take_recovered(name, Right::Upkeep, Key::default())) {
                    Ok((_, lock)) => Some(lock),
                    Err(StoreError::Held { .. }) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        };
        let found = self.view(|table| {
            let object = table.object(name)?;
            let Some(pair) = Pair::find(table, &object, live)? else { return Ok(None) };
            let mut locks = Vec::new();
            for base in &pair.chain[1..] {
                match ObjectLock::try_take(&self.object_locks, base, LockMode::Exclusive)? {
                    Some(lock) => locks.push(lock),
                    None => return Ok(None),
                }
            }
            let layers = table.upper_layers(pair.both().0, 1)?;
            Ok(Some((pair, layers, locks)))
        })?;
        let Some((pair, layers, _locks)) = found else { return Ok(None) };
        let copied = pair.copy(&self.latch.enter(), &layers)?;
        let change = |table: &mut TableTransaction<'_>| match pair.is_current(table)? {
            true => pair.merge(table).map(Some),
            false => Ok(None),
        };
        let gone = match own {
            Some(_) => self.update(|table| change(table))?,
            None => self.at_boundary(&[(name, Key::default())], Right::Upkeep, |table, _| change(table))?,
        };
        if let Some(gone) = gone {
            self.give_back_all(&gone);
            return Ok(Some(copied));
        }
        Ok(None)
    }
}
