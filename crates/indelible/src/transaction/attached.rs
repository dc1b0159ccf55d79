//! A transactional object in memory: a mapping for transactions, and closed or read-only pages at
//! the object's own address.

#![allow(unsafe_code)]

use super::checked::Pairs;
use super::exposed::Exposed;
use super::leaving::Leaver;
use super::marks::Marks;
use super::outside::Outside;
use super::space::{Space, Users};
use super::view::View;
use crate::dirty::Rung;
use crate::error::{Cause, Error, Result, TransactionError};
use crate::mapping::Mapping;
use crate::mapping::strays::{Access, Named};
use crate::memory::Area;
use crate::pool::{Class, Inner, PageOrigin, inside_transaction};
use crate::shadow::{Params, Shadow};
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, FLAG_ECC};
use indelible_store::store::Writer;
use indelible_store::table::Key;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Attached {
    pub(super) space: Arc<Space>,
    pub(super) memory: Mutex<Option<Memory>>,
    base: *const u8,
    /// Bytes that programs see. Grows while no transaction runs, or in one that is alone.
    pub(super) len: AtomicUsize,
    pairs: Option<Pairs>,
    address: usize,
    readable: bool,
    slot: u64,
    pub(super) class: Class,
    pub(super) pool: Arc<Inner>,
    name: String,
    /// For blocks that cannot be undone.
    exposed: Option<Exposed>,
}

// SAFETY: `base` is handed out only as references to a `T` (`TxObject`).
unsafe impl Send for Attached {}
// SAFETY: as for `Send`.
unsafe impl Sync for Attached {}

pub(super) enum Kind {
    Own(Shadow),
    /// Private, and visible to loads at the object's own address.
    Seen(Outside),
    Kept(Area),
}

impl Kind {
    pub(super) fn room(&self) -> usize {
        match self {
            Kind::Own(view) => view.room(),
            Kind::Seen(view) => view.words.room(),
            Kind::Kept(area) => area.room(),
        }
    }
}

pub(super) struct Memory {
    pub(super) view: Kind,
    /// Closed to all accesses, or to stores.
    pub(super) closed: Mapping,
    pub(super) _named: Named,
    /// `None`: no view, or the object left that extent.
    pub(super) shown: Option<u64>,
}

const ROOM: usize = 256 << 30;

impl Attached {
    pub(crate) fn new(
        pool: &Arc<Inner>,
        name: &str,
        key: &[u8],
        (needed, with_on_demand): (usize, bool),
    ) -> Result<Attached, Cause> {
        let on_demand = || {
            Ok(match class_of(pool, name)? {
                Some(Class::OnDemand) => true,
                Some(Class::Transactional) => with_on_demand,
                _ => false,
            })
        };
        Attached::attach(pool, name, (Key(key), needed), Users::Functions, on_demand)
    }

    pub(crate) fn durable(pool: &Arc<Inner>, name: &str, key: &[u8]) -> Result<Attached, Cause> {
        Attached::attach(pool, name, (Key(key), 0), Users::Functions, || Ok(false))
    }

    pub(crate) fn for_blocks(pool: &Arc<Inner>, name: &str, key: &[u8]) -> Result<Attached, Cause> {
        let on_demand = || Ok(class_of(pool, name)? == Some(Class::OnDemand));
        let mut attached = Attached::attach(pool, name, (Key(key), 0), Users::Blocks, on_demand)?;
        // Loads do not fault, and shown pages cannot be exposed.
        if !attached.readable {
            let (view, checked) = attached.view();
            let room = attached.room() / if checked { 2 } else { 1 };
            attached.exposed = Some(Exposed::new(attached.address, (view, checked), attached.size(), room)?);
        }
        Ok(attached)
    }

    fn attach(
        pool: &Arc<Inner>,
        name: &str,
        (key, needed): (Key<'_>, usize),
        users: Users,
        on_demand: impl Fn() -> Result<bool, Cause>,
    ) -> Result<Attached, Cause> {
        if inside_transaction() {
            return Err(TransactionError::Inside.into());
        }
        pool.patiently(|| match on_demand()? {
            true => Attached::on_demand(pool, name, key, needed, users),
            false => Attached::transactional(pool, name, key, needed, users),
        })
    }

    #[inline]
    pub(super) fn expect_together<'o>(
        &self,
        mut objects: impl Iterator<Item = &'o Attached>,
        classes: TransactionError,
    ) -> Result<(), Cause> {
        let Some(other) = objects.find(|object| !Arc::ptr_eq(&object.space, &self.space)) else {
            return Ok(());
        };
        let of_two_classes = other.space.class() != self.space.class();
        match of_two_classes && Arc::ptr_eq(&other.pool, &self.pool) {
            true => Err(classes.into()),
            false => Err(StoreError::DifferentPools.into()),
        }
    }

    fn transactional(
        pool: &Arc<Inner>,
        name: &str,
        key: Key<'_>,
        needed: usize,
        users: Users,
    ) -> Result<Attached, Cause> {
        let writer = pool.store.attach_transactional_writer(name, key)?;
        let entry = writer.object().entry;
        let len = entry.content_len() as usize;
        let room = (entry.reserved.get() as usize).min(ROOM.max(len.saturating_mul(4)));
        let (closed, view, base, shown) = if entry.is_readable_outside() {
            let outside = Outside::new(len, room)?;
            let closed = closed(&entry, needed, |at, protection| Ok(outside.show(at, protection)?))?;
            outside.fill(&writer)?;
            let base = outside.words.base();
            (closed, Kind::Seen(outside), base, None)
        } else {
            let closed = closed(&entry, needed, |_, _| Err(Cause::Detached))?;
            let params = pool.mapping_of(&entry, PageOrigin::of(&writer), true);
            let rung = Some(Rung::Explicit);
            let view = Shadow::attach(Params { addr: None, room, rung, pending: false, ..params })?;
            let (base, shown) = (view.base(), view.is_file().then(|| entry.primary_offset()));
            (closed, Kind::Own(view), base, shown)
        };
        let base = base.as_ptr().cast_const();
        let space = Space::of(pool, Class::Transactional)?;
        space.claim(users)?;
        let object = writer.object().offset;
        space.commits().join(writer)?;
        let memory = Memory { view, closed, _named: named(&entry, name), shown };
        Ok(Attached::taken_in(pool, space, memory, (base, object, None), &entry))
    }

    /// `marks`: its lines to publish.
    pub(super) fn taken_in(
        pool: &Arc<Inner>,
        space: Arc<Space>,
        memory: Memory,
        (bytes, slot, marks): (*const u8, u64, Option<Arc<Marks>>),
        entry: &Entry,
    ) -> Attached {
        let (len, name) = (entry.usable(entry.size.get()) as usize, entry.name());
        let (address, class) = (entry.address.get() as usize, Class::of(entry).unwrap_or_default());
        let (memory, len, pool) = (Mutex::new(Some(memory)), AtomicUsize::new(len), pool.clone());
        let readable = entry.is_readable_outside();
        let (first, extent) = (bytes.expose_provenance(), entry.content_len() as usize);
        let pairs = entry.has(FLAG_ECC).then_some(Pairs { own: address, len: extent / 2, base: first });
        let base = pairs.map_or(bytes, |pairs| std::ptr::with_exposed_provenance(pairs.own));
        // Code that runs blocks keeps check words itself, and tells of lines as the pool has them.
        let seen = pairs.filter(|_| !space.is_for_blocks());
        let (first, len_seen) = seen.map_or((first, extent), |pairs| (pairs.own, pairs.len));
        space.add(View { base: first, len: len_seen, object: slot, marks, pairs: seen });
        let exposed = None;
        Attached { space, memory, base, len, pairs, address, readable, slot, class, pool, name, exposed }
    }

    fn room(&self) -> usize {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.as_ref().map_or(0, |memory| memory.view.room())
    }

    pub(super) fn exposed(&self) -> Option<&Exposed> {
        self.exposed.as_ref()
    }

    pub(super) fn pairs(&self) -> Option<Pairs> {
        self.pairs.map(|pairs| Pairs { len: self.size(), ..pairs })
    }

    pub(crate) fn view(&self) -> (usize, bool) {
        self.pairs.map_or_else(|| (self.base.expose_provenance(), false), |pairs| (pairs.base, true))
    }

    pub(crate) fn offset(&self, address: usize) -> u64 {
        let offset = (address - self.address) as u64;
        if self.pairs.is_some() { 2 * offset } else { offset }
    }

    pub(super) fn base(&self) -> *const u8 {
        self.base
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn slot(&self) -> u64 {
        self.slot
    }

    pub(crate) fn own(&self) -> usize {
        self.address
    }

    pub(super) fn readable_at(&self) -> Option<*const u8> {
        self.readable.then(|| std::ptr::with_exposed_provenance(self.address))
    }

    /// `None`: not all are in the object.
    #[inline]
    pub(crate) fn place(&self, address: usize, len: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.address);
        let inside = offset < self.size() && len <= self.size() - offset;
        inside.then(|| self.base.expose_provenance() + offset)
    }

    #[inline]
    pub(super) fn range(&self) -> Range<usize> {
        self.base.addr()..self.base.addr() + self.size()
    }

    pub(crate) fn error(&self, operation: &'static str, cause: impl Into<Cause>) -> Error {
        Error::new(operation, cause).pool(&self.pool.path).object(&self.name)
    }

    pub(crate) fn is_for(&self, users: Users) -> bool {
        self.space.claim(users).is_ok()
    }

    pub(crate) fn alive(&self) -> Result<(), Cause> {
        self.pool.alive()
    }

    pub(crate) fn psync(&self) -> Result<()> {
        self.outside("psync", || self.space.publish())
    }

    pub(super) fn outside(&self, what: &'static str, work: impl FnOnce() -> Result<(), Cause>) -> Result<()> {
        let result = self.pool.alive().and_then(|()| match inside_transaction() {
            true => Err(TransactionError::Inside.into()),
            false => work(),
        });
        result.map_err(|cause| self.error(what, cause))
    }

    pub(crate) fn end(&mut self) -> Result<(), Cause> {
        self.exposed = None;
        let memory = self.memory.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(memory) = memory else { return Ok(()) };
        if let Err(forked) = self.pool.alive() {
            std::mem::forget(self.space.clone());
            return Err(forked);
        }
        let view = match memory.view {
            Kind::Kept(area) => return self.space.let_go(Leaver { object: self.slot, area }),
            view @ (Kind::Own(_) | Kind::Seen(_)) => view,
        };
        let published = self.space.publish();
        let (writer, flushed) = self.space.commits().leave(self.slot);
        self.space.remove(self.slot);
        drop(view);
        let detached = writer.map_or(Ok(()), Writer::detach);
        published.and(flushed.map_err(Cause::from)).and(detached.map_err(Cause::from))
    }
}

fn class_of(pool: &Inner, name: &str) -> Result<Option<Class>, Cause> {
    Ok(Class::of(&pool.store.find(name)?.entry))
}

/// At the object's own address; `show` maps those of a readable object.
pub(super) fn closed(
    entry: &Entry,
    needed: usize,
    show: impl FnOnce(usize, Protection) -> Result<Mapping, Cause>,
) -> Result<Mapping, Cause> {
    let size = entry.usable(entry.size.get()) as usize;
    if size < needed {
        return Err(Cause::RootTooLarge { needed, size });
    }
    if entry.is_readable_outside() {
        let writable = Mutant::OutsideWritable.is_on();
        let protection = if writable { Protection::ReadWrite } else { Protection::Read };
        return show(entry.address.get() as usize, protection);
    }
    let open = if Mutant::AddressOpen.is_on() { Protection::ReadWrite } else { Protection::None };
    Ok(Mapping::anonymous(entry.address.get() as usize, entry.content_len() as usize, open)?)
}

pub(super) fn named(entry: &Entry, name: &str) -> Named {
    let len = entry.reserved.get().max(entry.content_len()) as usize;
    Named::new(entry.address.get() as usize, len, name, Access::Transactions)
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
