//! Absorption: a new base takes over pages of bases below it, to keep chains short.
//!
//! Readers keep layers in memory, so no base that a reader may know is changed or removed. Missing
//! pages are copied to the new base, then bits; once durable, it rests on the next remaining base.
//!
//! A base is absorbed if it has at most [`RATIO`] times the pages of the new one by then, so a page
//! is copied at most `RATIO` times per step of the chain.

use super::boundary::Right;
use crate::error::Result;
use crate::format::PAGE;
use crate::format::entry::{FLAG_HIDDEN, FLAG_OVERLAY, FLAG_SPARSE};
use crate::medium::{LockMode, Medium};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::attachment::renumber;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Key, Located, Writes};
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::little_endian::U64;

const RATIO: u64 = 8;
/// Most pages per copy.
const PIECE: usize = 256;

struct Absorption {
    object: Located,
    base: Located,
    absorbed: Vec<Located>,
    /// Pages to copy: (page, offset in the pool).
    pages: Vec<(u64, u64)>,
    /// See [`Layers::claiming`].
    claims: (Writes, Writes),
}

impl Absorption {
    fn find(
        table: &TableTransaction<'_>,
        object: &Located,
        base: &Located,
        live: bool,
    ) -> Result<Option<Self>> {
        if object.entry.base.get() != base.offset || base.entry.users.get() != 1 {
            return Ok(None);
        }
        if !base.entry.has(FLAG_OVERLAY) || !table.base(base)?.entry.has(FLAG_HIDDEN) {
            return Ok(None);
        }
        let layers = table.upper_layers(base, 0)?;
        let based = base.entry.based.get();
        let mut own: BTreeSet<u64> = layers.own_pages(based).collect();
        let beyond = base.entry.pages.get() - based;
        let (mut absorbed, mut pages, mut upper) = (Vec::new(), Vec::new(), *base);
        while upper.entry.has(FLAG_OVERLAY) {
            let lower = table.base(&upper)?;
            if !lower.entry.has(FLAG_HIDDEN) {
                break;
            }
            let below = table.upper_layers(&lower, 0)?;
            let theirs = below.own_pages(lower.entry.pages.get()).count() as u64;
            let mapped = live && !lower.entry.has(FLAG_OVERLAY);
            let most = (own.len() as u64 + beyond).saturating_mul(RATIO);
            if mapped || theirs > most {
                break;
            }
            for page in below.own_pages(based.min(lower.entry.pages.get())) {
                if own.insert(page) {
                    pages.push((page, below.home(page)));
                }
            }
            absorbed.push(lower);
            upper = lower;
        }
        pages.sort_unstable();
        let claims = layers.claiming(pages.iter().map(|(page, _)| *page));
        let (object, base) = (*object, *base);
        Ok((!absorbed.is_empty()).then_some(Absorption { object, base, absorbed, pages, claims }))
    }

    /// Durable on return.
    fn copy(&self, medium: &dyn Medium) -> Result<()> {
        let start = self.base.entry.primary_offset();
        let mut bytes = Vec::new();
        let mut at = 0;
        while at < self.pages.len() {
            let first = at;
            while at < self.pages.len() && at - first < PIECE {
                let next = (at - first) as u64;
                if self.pages[at] != (self.pages[first].0 + next, self.pages[first].1 + next * PAGE) {
                    break;
                }
                at += 1;
            }
            let (page, home) = self.pages[first];
            bytes.resize((at - first) * PAGE as usize, 0);
            medium.read(home, &mut bytes)?;
            medium.reserve(start + page * PAGE, bytes.len() as u64)?;
            medium.write(start + page * PAGE, &bytes)?;
        }
        let (first, then) = &self.claims;
        for (offset, bytes) in first {
            medium.reserve(*offset, bytes.len() as u64)?;
            medium.write(*offset, bytes)?;
        }
        // A page precedes its bit.
        if !Mutant::AbsorbedEarly.is_on() {
            medium.barrier()?;
        }
        for (offset, bytes) in then.iter().filter(|_| !Mutant::AbsorbedUnclaimed.is_on()) {
            medium.write(*offset, bytes)?;
        }
        if !Mutant::MergeUnproven.is_on() {
            medium.barrier()?;
        }
        Ok(())
    }

    /// Returns the next base below, if unneeded. `None`: the table has changed.
    fn relink(&self, table: &mut TableTransaction<'_>) -> Result<Option<Option<Located>>> {
        let (mut object, mut base) = (table.entry(self.object.offset)?, table.entry(self.base.offset)?);
        let of =
            |object: &Located| (object.entry.id, object.entry.base, object.entry.binding, object.entry.state);
        let link = |base: &Located| (base.entry.id, base.entry.base, base.entry.users);
        if of(&object) != of(&self.object) || link(&base) != link(&self.base) {
            return Ok(None);
        }
        let Some(last) = self.absorbed.last() else { return Ok(None) };
        let last = table.entry(last.offset)?;
        let unused = if last.entry.has(FLAG_OVERLAY) {
            let mut next = table.base(&last)?;
            next.entry.users = U64::new(next.entry.users.get().saturating_add(1));
            table.put_entry(&next)?;
            let mut first = table.base(&base)?;
            first.entry.users = U64::new(first.entry.users.get().saturating_sub(1));
            table.put_entry(&first)?;
            base.entry.base = last.entry.base;
            table.narrow(&mut base, last.entry.based.get())?;
            first.is_unused_base().then_some(first)
        } else {
            if base.entry.based == base.entry.pages {
                // Each page was written.
                base.entry.set(FLAG_SPARSE, last.entry.has(FLAG_SPARSE));
            }
            table.leave_base(&mut base)?
        };
        table.put_entry(&base)?;
        // For readers without locks.
        renumber(table, &mut object)?;
        table.put_entry(&object)?;
        Ok(Some(unused))
    }
}

impl Store {
    /// Shortens the chain below a new base, where unused.
    pub(super) fn absorb(self: &Arc<Self>, name: &str, base: &Located) -> Result<()> {
        let found = self.view(|table| {
            let object = table.object(name)?;
            let lock = match self.written_on(&object)? {
                Some(_) => None,
                // Pending psyncs count under the present number.
                None if object.is_bound() && !Mutant::AbsorbedUnrecovered.is_on() => return Ok(None),
                None => match ObjectLock::try_take(&self.object_locks, &object, LockMode::Exclusive)? {
                    None => return Ok(None),
                    lock => lock,
                },
            };
            let found = Absorption::find(table, &object, &table.entry(base.offset)?, lock.is_none())?;
            Ok(found.map(|absorption| (absorption, lock)))
        })?;
        let Some((absorption, lock)) = found else { return Ok(()) };
        absorption.copy(&self.latch.enter())?;
        let unused = match lock {
            Some(_) => self.update(|table| absorption.relink(table))?,
            None => self
                .at_boundary(&[(name, Key::default())], Right::Upkeep, |table, _| absorption.relink(table))?,
        };
        let _ = self.remove_left(unused.flatten());
        Ok(())
    }
}
