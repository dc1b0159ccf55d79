//! Objects come back from a backup: with their identity and address, hidden until all of their bytes are in place.
//!
//! One that a crash leaves is hidden, and removed as what a resize left is ([`Store::reap`]).

use super::window::{ANY, Window};
use crate::entropy::{now, random_id};
use crate::error::{Result, SealError, StoreError};
use crate::format::entry::{Entry, FLAG_BASE, FLAG_FOREIGN, FLAG_SEALED, FLAG_VOLATILE};
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
    /// Identity; its keys are verified by it.
    pub id: [u8; 16],
    /// In bytes.
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
    /// Seconds since 1970.
    pub created: u64,
    /// Verifiers of its keys: for reading, for writing.
    pub keys: [[u8; 16]; 2],
    /// Fingerprint of its layout.
    pub fingerprint: [u8; 16],
    /// High-water mark of the bytes that were psynced: all behind are zeros.
    pub published: u64,
    /// Psyncs.
    pub psyncs: u64,
}

impl Attributes {
    /// The same for another object, with an identity of its own, whose keys are `read` and `write`.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn renewed(mut self, read: Key<'_>, write: Key<'_>) -> Result<Self> {
        (self.id, self.created) = (random_id()?, now());
        let keys = CreateOptions { read_key: read, write_key: write, ..CreateOptions::default() };
        self.keys = keys.verifiers(&self.id);
        Ok(self)
    }

    /// Those of an object as its entry has them; the caller adds `published` and `psyncs`.
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

    /// Pages that the object has: those of its contents, and, if it is sealed, of its seals.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let content = pages_for(self.size);
        let shape = if self.is_sealed() { Shape::of(content) } else { None };
        shape.map_or(content, Shape::pages)
    }

    /// Bytes from its first one on that may be other than zeros.
    #[must_use]
    pub fn end(&self) -> u64 {
        // Behind what was published a pool relies on zeros.
        self.published.min(if self.is_sealed() { self.pages() * PAGE } else { self.size })
    }

    /// Whether its pages are encrypted.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.flags & FLAG_SEALED != 0
    }

    fn entry(&self) -> Entry {
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
        entry
    }
}

/// An object that comes back; dropping it leaves a hidden one, which the next resize, snapshot or `pmo gc` removes.
pub struct Revived {
    store: Arc<Store>,
    object: Located,
    object_lock: ObjectLock,
}

impl Store {
    /// Begins to bring an object back: it has its place, and is zeros that nobody sees.
    ///
    /// # Errors
    /// `Exists`, `AddressesTaken`, `BadName`, `BadSize`, `ObjectFeature`, `NoRoom`, `NoSpace`: nothing happened.
    pub fn revive(self: &Arc<Self>, kept: &Attributes) -> Result<Revived> {
        let superblock = self.superblock();
        let window = (superblock.window.get(), superblock.window_len.get());
        self.revive_in(kept, &mut |_| Ok(kept.entry()), window, None)
    }

    /// As [`revive`](Store::revive), of an object of any other pool: if its addresses are none of this pool's, or another object owns them, it has
    /// them all the same, and does not own them. (Windows of two pools may overlap; whether they do must not decide what fails.)
    ///
    /// # Errors
    /// As for [`revive`](Store::revive); `AddressesTaken` only if they are none that an object can have.
    pub fn adopt(self: &Arc<Self>, kept: &Attributes) -> Result<Revived> {
        let (mut entry, superblock) = (kept.entry(), self.superblock());
        let window = Window { start: superblock.window.get(), len: superblock.window_len.get() };
        // It is there: its contents hold in this boot.
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

    /// As [`adopt`](Store::adopt), at other addresses than it had: those at `shared`, which another object has, or else free ones of this pool. The
    /// caller changes the pointers in it.
    ///
    /// # Errors
    /// As for [`revive`](Store::revive); `NoAddresses`; `Refused` of a sealed object.
    pub fn adopt_elsewhere(self: &Arc<Self>, kept: &Attributes, shared: Option<u64>) -> Result<Revived> {
        if kept.is_sealed() {
            // Pointers are changed in what they lie in.
            let instead = "copy or move it as it is, and have it and its copy attached by two processes, or one after the other";
            return Err(SealError::Refused { what: "rebase", instead }.into());
        }
        let mut entry = kept.entry();
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
        check_name(&kept.name)?;
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
    /// As [`revive`](Store::revive), of an object that `make` adds to the table, hidden, with the progress that it is to have. That is whole before the entry is in
    /// force: a line that a power cut left in part would count as damaged.
    pub(super) fn revive_made(
        self: &Arc<Self>,
        mut make: impl FnMut(&mut TableTransaction<'_>) -> Result<(Located, Standing)>,
    ) -> Result<Revived> {
        let (object, object_lock) = self.update(|table| {
            let (object, standing) = make(table)?;
            put_progress(table.pages().medium(), self.seed, &object, &standing)?;
            Self::prove(table)?;
            // Before others can see it: they may remove a hidden object without a lock.
            let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
            Ok((object, object_lock))
        })?;
        Ok(Revived { store: self.clone(), object, object_lock })
    }
}

impl Revived {
    /// Its address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.object.entry.address.get()
    }

    /// Reads bytes of it that were written, all within [`extent_len`](Self::extent_len).
    ///
    /// # Errors
    /// The medium's.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.store.device.read(self.object.entry.primary_offset() + offset, bytes)?)
    }

    /// Bytes that there is place for: whole pages.
    #[must_use]
    pub fn extent_len(&self) -> u64 {
        self.object.entry.extent_len()
    }

    /// Writes bytes of it, which all lie within [`extent_len`](Self::extent_len).
    ///
    /// # Errors
    /// `NoSpace`, or the medium's.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.object.entry.primary_offset() + offset;
        let medium = self.store.latch.enter();
        medium.reserve(at, bytes.len() as u64)?;
        Ok(medium.write(at, bytes)?)
    }

    /// All was written: durable, and an object as any other, on return.
    ///
    /// # Errors
    /// `Exists`, or the medium's.
    pub fn publish(self) -> Result<Located> {
        let Revived { store, object, object_lock } = self;
        let medium = store.latch.enter();
        if !Mutant::RevivedUnproven.is_on() {
            medium.barrier()?;
        }
        store.update_then(
            |table| table.reveal(&object),
            |object| {
                drop(object_lock);
                object
            },
        )
    }
}
