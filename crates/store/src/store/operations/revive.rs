//! Objects from backups, with their identity and address, hidden until all bytes are in place, for
//! [`Store::reap`] after a crash.

use super::hash::hash_pieces;
use super::window::{ANY, Window};
use crate::entropy::{now, random_id};
use crate::error::{Part, Result, SealError, StoreError};
use crate::format::entry::{
    Entry, FLAG_BASE, FLAG_CONTENT, FLAG_FOREIGN, FLAG_SEALED, FLAG_SPARSE, FLAG_VOLATILE,
};
use crate::format::seal::Shape;
use crate::format::{PAGE, pages_for};
use crate::medium::{LockMode, Medium};
use crate::mutant::Mutant;
use crate::recovery::{Standing, put_progress};
use crate::space::TableTransaction;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located, check_name};
use std::sync::Arc;
use zerocopy::FromZeros;
use zerocopy::little_endian::{U32, U64};

/// All that a pool knows of an object but its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Its name.
    pub name: String,
    /// Identity, on which its keys depend.
    pub id: [u8; 16],
    /// Size in bytes.
    pub size: u64,
    /// Its address.
    pub address: u64,
    /// Bytes of addresses from there.
    pub reserved: u64,
    /// As in its entry.
    pub flags: u32,
    /// Durability class.
    pub class: u8,
    /// Retention model.
    pub retention: u8,
    /// Creation, in seconds since 1970.
    pub created: u64,
    /// Verifiers of its read and write keys.
    pub keys: [[u8; 16]; 2],
    /// Fingerprint of its layout.
    pub fingerprint: [u8; 16],
    /// High-water mark of psynced bytes; zeros follow.
    pub published: u64,
    /// Psyncs.
    pub psyncs: u64,
}

impl Attributes {
    /// The attributes for a new object, with another identity and these keys.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn renewed(mut self, read: Key<'_>, write: Key<'_>) -> Result<Self> {
        (self.id, self.created) = (random_id()?, now());
        let keys = CreateOptions { read_key: read, write_key: write, ..CreateOptions::default() };
        self.keys = keys.verifiers(&self.id);
        self.flags &= !FLAG_CONTENT;
        Ok(self)
    }

    /// Attributes of an entry; the caller adds `published` and `psyncs`.
    #[must_use]
    pub fn of(object: &Located) -> Self {
        let entry = &object.entry;
        Attributes {
            name: entry.name(),
            id: entry.id,
            size: entry.size.get(),
            address: entry.address.get(),
            reserved: entry.reserved.get(),
            flags: entry.flags.get(),
            class: entry.class,
            retention: entry.retention,
            created: entry.created.get(),
            keys: [entry.read_key, entry.write_key],
            fingerprint: entry.fingerprint,
            published: 0,
            psyncs: 0,
        }
    }

    /// Pages of contents and seals.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let content = pages_for(self.size);
        let shape = if self.is_sealed() { Shape::of(content) } else { None };
        shape.map_or(content, Shape::pages)
    }

    /// End of the bytes that may not be zeros.
    #[must_use]
    pub fn end(&self) -> u64 {
        // A pool relies on zeros behind.
        self.published.min(if self.is_sealed() { self.pages() * PAGE } else { self.size })
    }

    /// Whether its pages are encrypted.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.flags & FLAG_SEALED != 0
    }

    fn entry(&self) -> Result<Entry> {
        check_name(&self.name)?;
        let mut entry = Entry::new_zeroed();
        entry.id = self.id;
        entry.size = U64::new(self.size);
        entry.address = U64::new(self.address);
        entry.reserved = U64::new(self.reserved);
        entry.flags = U32::new(self.flags);
        (entry.class, entry.retention) = (self.class, self.retention);
        entry.created = U64::new(self.created);
        [entry.read_key, entry.write_key] = self.keys;
        entry.fingerprint = self.fingerprint;
        entry.set_name(&self.name);
        Ok(entry)
    }
}

/// An object being brought back; dropping it leaves a hidden one for [`reap`](Store::reap).
pub struct Revived {
    store: Arc<Store>,
    object: Located,
    _object_lock: ObjectLock,
}

impl Store {
    /// Begins to bring an object back, as hidden zeros in its place.
    ///
    /// # Errors
    /// `Exists`, `AddressesTaken`, `BadName`, `BadSize`, `ObjectFeature`, `NoRoom`, `NoSpace`:
    /// nothing happened.
    pub fn revive(self: &Arc<Self>, kept: &Attributes) -> Result<Revived> {
        let superblock = self.superblock();
        let window = (superblock.window.get(), superblock.window_len.get());
        let entry = kept.entry()?;
        self.revive_in(kept, &mut |_| Ok(entry), window, None)
    }

    /// [`revive`](Store::revive) of another pool's object. It keeps addresses that are not this
    /// pool's, or taken, without owning them.
    ///
    /// # Errors
    /// As for [`revive`](Store::revive); `AddressesTaken` only of impossible addresses.
    pub fn adopt(self: &Arc<Self>, kept: &Attributes) -> Result<Revived> {
        let (mut entry, superblock) = (kept.entry()?, self.superblock());
        let window = Window { start: superblock.window.get(), len: superblock.window_len.get() };
        let boot = entry.has(FLAG_VOLATILE).then_some(self.identity.boot);
        if window.has(kept.address, kept.reserved) {
            entry.set(FLAG_FOREIGN, false);
            match self.revive_in(kept, &mut |_| Ok(entry), (window.start, window.len), boot) {
                Err(StoreError::AddressesTaken { .. }) => {}
                done => return done,
            }
        }
        entry.set(FLAG_FOREIGN, true);
        self.revive_in(kept, &mut |_| Ok(entry), (ANY.start, ANY.len), boot)
    }

    /// [`adopt`](Store::adopt) at other addresses: `shared`, which another object has, or free
    /// ones. The caller changes the pointers in it.
    ///
    /// # Errors
    /// As for [`revive`](Store::revive); `NoAddresses`; `Refused` of a sealed object.
    pub fn adopt_elsewhere(self: &Arc<Self>, kept: &Attributes, shared: Option<u64>) -> Result<Revived> {
        if kept.is_sealed() {
            // Its pointers would change.
            let instead = "copy or move it as it is, and have it and its copy attached by two processes, or one after the other";
            return Err(SealError::Refused { what: "rebase", instead }.into());
        }
        let mut entry = kept.entry()?;
        let boot = entry.has(FLAG_VOLATILE).then_some(self.identity.boot);
        if let Some(address) = shared {
            entry.address = U64::new(address);
            entry.set(FLAG_FOREIGN, true);
            return self.revive_in(kept, &mut |_| Ok(entry), (ANY.start, ANY.len), boot);
        }
        // A snapshot owns none.
        entry.set(FLAG_FOREIGN, entry.has(FLAG_BASE));
        let placed = &mut |table: &mut TableTransaction<'_>| {
            let (address, reserved) = table.free_addresses(kept.size, kept.reserved)?;
            (entry.address, entry.reserved) = (U64::new(address), U64::new(reserved));
            Ok(entry)
        };
        let superblock = self.superblock();
        self.revive_in(kept, placed, (superblock.window.get(), superblock.window_len.get()), boot)
    }

    fn revive_in(
        self: &Arc<Self>,
        kept: &Attributes,
        place: &mut dyn FnMut(&mut TableTransaction<'_>) -> Result<Entry>,
        window: (u64, u64),
        boot: Option<[u8; 16]>,
    ) -> Result<Revived> {
        self.revive_made(|table| {
            let entry = place(table)?;
            let mut object = table.revive(&entry, window)?;
            object.entry.hold_in(boot);
            table.put_entry(&object)?;
            self.prepare_extent(table, &object, 0)?;
            let published = kept.published.min(object.entry.extent_len());
            let standing = Standing { published, psyncs: kept.psyncs, direct: 0 };
            Ok((object, standing))
        })
    }
}

impl Store {
    /// Adds a hidden object by `make`, with durable progress: a torn line would count as damaged.
    pub(super) fn revive_made(
        self: &Arc<Self>,
        mut make: impl FnMut(&mut TableTransaction<'_>) -> Result<(Located, Standing)>,
    ) -> Result<Revived> {
        let (object, object_lock) = self.update(|table| {
            let (object, standing) = make(table)?;
            put_progress(table.pages().medium(), self.seed, &object, &standing)?;
            Self::prove(table)?;
            let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
            Ok((object, object_lock))
        })?;
        Ok(Revived::of(self, object, object_lock))
    }
}

impl Revived {
    pub(super) fn of(store: &Arc<Store>, object: Located, object_lock: ObjectLock) -> Self {
        Revived { store: store.clone(), object, _object_lock: object_lock }
    }

    pub(super) fn object(&self) -> &Located {
        &self.object
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.object.entry.address.get()
    }

    /// Reads written bytes within [`extent_len`](Self::extent_len).
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.store.device.read(self.object.entry.primary_offset() + offset, bytes)?)
    }

    /// Bytes of its extent.
    #[must_use]
    pub fn extent_len(&self) -> u64 {
        self.object.entry.extent_len()
    }

    /// Writes bytes within [`extent_len`](Self::extent_len).
    ///
    /// # Errors
    /// `NoSpace`, or the medium's.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.object.entry.primary_offset() + offset;
        let medium = self.store.latch.enter();
        if self.object.entry.has(FLAG_SPARSE) {
            medium.reserve(at, bytes.len() as u64)?;
        }
        Ok(medium.write_once(at, bytes)?)
    }

    /// Starts the write-back of a range, so that `publish` waits less.
    pub fn begin_writeback(&self, offset: u64, len: u64) {
        let at = self.object.entry.primary_offset() + offset;
        self.store.latch.enter().begin_writeback(at, len);
    }

    /// Makes the written object durable and visible.
    ///
    /// # Errors
    /// `Exists`, or the medium's.
    pub fn publish(self) -> Result<Located> {
        let published = Revived::publish_all(vec![self]).map_err(|unpublished| unpublished.cause)?;
        published.into_iter().next().ok_or(StoreError::NotFound)
    }

    /// [`publish`](Revived::publish) of several objects of one pool by one batch of the table.
    ///
    /// # Errors
    /// As for `publish`; `Damaged`: an ID is not the hash that it should be; `NoRoom` also if a
    /// large batch finds no free space. All stay hidden, for [`reap`](Store::reap).
    pub fn publish_all(all: Vec<Revived>) -> Result<Vec<Located>, Unpublished> {
        let Some(store) = all.first().map(|first| first.store.clone()) else { return Ok(Vec::new()) };
        if Mutant::ImportApart.is_on() {
            let apart = all.into_iter().map(|one| reveal(&store, vec![one]));
            return apart.collect::<Result<Vec<_>, _>>().map(|all| all.concat());
        }
        reveal(&store, all)
    }
}

impl Revived {
    fn expect_content(&self) -> Result<()> {
        let entry = &self.object.entry;
        if !entry.has(FLAG_CONTENT) || Mutant::ContentUnchecked.is_on() {
            return Ok(());
        }
        let id = hash_pieces(entry.size.get(), &mut |at, bytes| self.read(at, bytes))?;
        let damaged = StoreError::Damaged { part: Part::Content, offset: entry.primary_offset() };
        if id == entry.id { Ok(()) } else { Err(damaged) }
    }
}

/// A failure to change objects together: none has changed.
#[derive(Debug)]
pub struct Unpublished {
    /// Name of the obstructing object, if one.
    pub object: Option<String>,
    /// Cause.
    pub cause: StoreError,
}

fn reveal(store: &Arc<Store>, all: Vec<Revived>) -> Result<Vec<Located>, Unpublished> {
    let medium = store.latch.enter();
    if !Mutant::RevivedUnproven.is_on() {
        medium.barrier().map_err(|cause| Unpublished { object: None, cause: cause.into() })?;
    }
    if let Some((one, cause)) = all.iter().find_map(|one| Some((one, one.expect_content().err()?))) {
        return Err(Unpublished { object: Some(one.object.entry.name()), cause });
    }
    let mut object = None;
    let in_the_way = &mut object;
    let done = store.update_then(
        move |table| {
            let mut revealed = Vec::with_capacity(all.len());
            for one in &all {
                let name = || one.object.entry.name();
                revealed.push(table.reveal(&one.object).inspect_err(|_| *in_the_way = Some(name()))?);
            }
            Ok((revealed, all))
        },
        |(revealed, all)| {
            // Their locks.
            drop(all);
            revealed
        },
    );
    done.map_err(|cause| Unpublished { object, cause })
}
