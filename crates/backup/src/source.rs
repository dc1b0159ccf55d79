//! The objects of a pool, all as of one moment, for as long as they are read.
//!
//! An object that no process writes is attached for reading: that keeps writers away, and costs
//! nothing. The others are kept as snapshots, of one moment, once the first ones are held.
//! Snapshots have names that nothing else has, so that those which a backup that was killed left
//! are known, and removed by the next.
//!
//! In a pool that is opened for reading nothing keeps writers away, and no snapshot can be made.
//! There no process may write an object, and the table must be the same once all was read: an
//! attach for writing changes it.

use crate::error::{BackupError, Result};
use crate::format::{PAGE, hex};
use indelible::Pool;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{FLAG_BASE, FLAG_OVERLAY, FLAG_VOLATILE};
use indelible_store::store::{Attributes, Reader, SnapshotOf, Store};
use indelible_store::table::{Key, Layers, Located, read_pages};
use std::sync::Arc;

/// How the names of such snapshots begin.
const PREFIX: &str = "pmo-backup.";

/// The objects that are meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// Their names; none: all but volatile ones.
    pub objects: &'a [String],
    /// The key of those that have one.
    pub key: &'a [u8],
    /// Also snapshot idle objects, so that new writers need not wait. A snapshot takes as many
    /// pages of the pool as the object has.
    pub snapshots: bool,
}

/// An object that stays as it is.
pub(crate) struct Held {
    pub attributes: Attributes,
    object: Located,
    layers: Option<Layers>,
    _reader: Reader,
}

/// See the module.
pub(crate) struct Source {
    store: Arc<Store>,
    pub held: Vec<Held>,
    /// The objects that were kept, and the names of their snapshots.
    snapshots: Vec<(String, String)>,
    key: Vec<u8>,
    /// End of the table's lane, if the pool is opened for reading.
    as_of: Option<(u64, u64)>,
}

impl Source {
    /// Holds the objects.
    pub fn hold(pool: &Pool, id: &[u8; 16], choice: &Choice<'_>) -> Result<Source> {
        let store = pool.store().clone();
        let as_of = if store.is_read_only() { Some(store.info()?.position) } else { None };
        let all = all(&store)?;
        for left in all.iter().filter(|object| is_left(object)) {
            // One that another backup reads is left alone.
            let _ = store.destroy(&left.entry.name(), Key(choice.key));
        }
        for name in choice.objects {
            if !all.iter().any(|object| object.entry.name() == *name) {
                return Err(BackupError::NoObject(name.clone()));
            }
        }
        let meant = |object: &&Located| {
            // A volatile object is left out, unless the backup names it.
            let chosen = match choice.objects.is_empty() {
                true => !object.entry.has(FLAG_VOLATILE),
                false => choice.objects.contains(&object.entry.name()),
            };
            !is_left(object) && chosen
        };
        let key = choice.key.to_vec();
        let mut source = Source { store: store.clone(), held: Vec::new(), snapshots: Vec::new(), key, as_of };
        let mut written = Vec::new();
        for object in all.iter().filter(meant) {
            let name = object.entry.name();
            if choice.snapshots && as_of.is_none() && !object.entry.has(FLAG_BASE) {
                written.push(*object);
                continue;
            }
            // Reads a sealed object's ciphertext, with the key page: no seal key is needed.
            match pool.recovering(|store| store.attach_raw_reader(&name, Key(choice.key)))? {
                Ok(reader) => source.add(reader, object)?,
                Err(StoreError::Held { .. }) if as_of.is_none() => written.push(*object),
                // Another process destroyed it after the listing.
                Err(StoreError::NotFound) if choice.objects.is_empty() => {}
                Err(error) => return Err(BackupError::object(&name)(error)),
            }
        }
        source.keep(pool, &written, id)?;
        source.held.sort_by(|a, b| a.attributes.name.cmp(&b.attributes.name));
        Ok(source)
    }

    /// Fails if the objects may have changed since they were held.
    pub fn expect_same(&self) -> Result<()> {
        match self.as_of {
            Some(as_of) if self.store.info()?.position != as_of => Err(BackupError::Changed),
            _ => Ok(()),
        }
    }

    /// Keeps objects that processes write as snapshots.
    fn keep(&mut self, pool: &Pool, written: &[Located], id: &[u8; 16]) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let names: Vec<(String, String)> = written
            .iter()
            .enumerate()
            .map(|(n, object)| (object.entry.name(), format!("{PREFIX}{}.{n}", hex(&id[..8]))))
            .collect();
        let of: Vec<_> =
            names.iter().map(|(object, name)| SnapshotOf { object, key: Key(&self.key), name }).collect();
        // One of the writers may have died since.
        pool.recovering(|store| store.snapshot(&of))?.map_err(|error| match error {
            error @ (StoreError::NoRoom { .. } | StoreError::NoSpace) => BackupError::NoRoomToKeep(error),
            cause => BackupError::Object { name: names[0].0.clone(), cause },
        })?;
        self.snapshots.clone_from(&names);
        for (object, (name, snapshot)) in written.iter().zip(&names) {
            let now = self.store.find(name).map_err(BackupError::object(name))?;
            if now.entry.id != object.entry.id {
                return Err(BackupError::Replaced(name.clone()));
            }
            let reader =
                self.store.attach_raw_reader(snapshot, Key(&self.key)).map_err(BackupError::object(name))?;
            self.add(reader, object)?;
        }
        Ok(())
    }

    /// Adds what `reader` has, as the object that people know.
    fn add(&mut self, mut reader: Reader, known: &Located) -> Result<()> {
        let object = *reader.object();
        let name = known.entry.name();
        let status = self.store.status(&object).map_err(BackupError::object(&name))?;
        let same = object.entry.id == known.entry.id;
        let own = Attributes::of(known);
        let mut attributes = Attributes {
            published: status.published,
            psyncs: status.psyncs,
            // Fields that may have changed since the listing, or that a snapshot takes from its
            // object.
            size: object.entry.size.get(),
            reserved: object.entry.reserved.get(),
            ..own
        };
        if same {
            attributes.flags = object.entry.flags.get();
        }
        attributes.flags &= !FLAG_OVERLAY;
        let layers = reader.take_layers();
        self.held.push(Held { attributes, object, layers, _reader: reader });
        Ok(())
    }

    /// Reads pages of an object, zeros behind its end.
    pub fn read(&self, held: &Held, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let medium = &**self.store.device();
        read_pages(medium, &held.object, held.layers.as_ref(), offset, bytes)
            .map_err(|error| BackupError::object(&held.attributes.name)(error.into()))?;
        let all =
            if held.attributes.is_sealed() { held.attributes.pages() * PAGE } else { held.attributes.size };
        let end = all.saturating_sub(offset).min(bytes.len() as u64) as usize;
        bytes[end..].fill(0);
        Ok(())
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Their readers go first.
        self.held.clear();
        for (object, snapshot) in &self.snapshots {
            // One that cannot be removed now is removed by the next backup, and pages that cannot
            // be merged now are merged then.
            let _ = self.store.destroy(snapshot, Key(&self.key));
            let _ = self.store.merge(object);
        }
    }
}

/// Whether it is a snapshot that a backup made.
fn is_left(object: &Located) -> bool {
    object.entry.has(FLAG_BASE) && object.entry.name().starts_with(PREFIX)
}

fn all(store: &Store) -> Result<Vec<Located>> {
    let (mut all, mut from) = (Vec::new(), Some((0, 0)));
    while let Some(key) = from {
        let listing = store.list(key, 1024)?;
        all.extend(listing.objects);
        from = listing.next;
    }
    Ok(all)
}
