//! The objects of a pool as of one moment, while they are read.
//!
//! An idle object is attached for reading, which excludes writers at no cost. After these, the
//! others are kept as snapshots of one moment, under reserved names, so that the next backup
//! removes a killed one's.
//!
//! A pool opened for reading allows neither. No process may write an object there, and the table
//! must be unchanged at the end: an attach for writing changes it.

use crate::error::{BackupError, Result};
use crate::format::{PAGE, hex, is_generated};
use indelible::Pool;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{FLAG_BASE, FLAG_OVERLAY, FLAG_VOLATILE};
use indelible_store::store::{Attributes, Listed, Reader, SnapshotOf, Store};
use indelible_store::table::{Key, Layers, Located, read_pages};
use std::sync::Arc;

/// Prefix of such snapshots.
const PREFIX: &str = "pmo-backup.";
/// The table is not held longer than for these.
const MEASURED: usize = 1024;

/// The chosen objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// Their names; empty: all but volatile ones.
    pub objects: &'a [String],
    /// The key of those that have one.
    pub key: &'a [u8],
    /// Also snapshots idle objects, so that new writers need not wait. Each takes an object's pages
    /// of space.
    pub snapshots: bool,
}

pub(crate) struct Held {
    pub attributes: Attributes,
    object: Located,
    layers: Option<Layers>,
    _reader: Reader,
}

pub(crate) struct Source {
    store: Arc<Store>,
    pub held: Vec<Held>,
    /// Kept objects, with their snapshots' names.
    snapshots: Vec<(String, String)>,
    key: Vec<u8>,
    /// End of the table's lane, in a pool opened for reading.
    as_of: Option<(u64, u64)>,
}

impl Source {
    pub fn hold(pool: &Pool, id: &[u8; 16], choice: &Choice<'_>) -> Result<Source> {
        let store = pool.store().clone();
        let as_of = if store.is_read_only() { Some(store.info()?.position) } else { None };
        let all = all(&store)?;
        for left in all.iter().filter(|object| is_left(object)) {
            // Another backup may read it.
            let _ = store.destroy(&left.entry.name(), Key(choice.key));
        }
        for name in choice.objects {
            if !all.iter().any(|object| object.entry.name() == *name) {
                return Err(BackupError::NoObject(name.clone()));
            }
        }
        let meant = |object: &&Located| {
            // A volatile object must be named.
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
            // Reads ciphertext and the key page: needs no seal key.
            match pool.recovering(|store| store.attach_raw_reader(&name, Key(choice.key)))? {
                Ok(reader) => source.add(reader, object),
                Err(StoreError::Held { .. }) if as_of.is_none() => written.push(*object),
                // Destroyed after the listing.
                Err(StoreError::NotFound) if choice.objects.is_empty() => {}
                Err(error) => return Err(BackupError::object(&name)(error)),
            }
        }
        source.keep(pool, &written, id)?;
        source.measure()?;
        source.held.sort_by(|a, b| a.attributes.name.cmp(&b.attributes.name));
        Ok(source)
    }

    /// Fails if the objects may have changed.
    pub fn expect_same(&self) -> Result<()> {
        match self.as_of {
            Some(as_of) if self.store.info()?.position != as_of => Err(BackupError::Changed),
            _ => Ok(()),
        }
    }

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
        // A writer may have died.
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
            self.add(reader, object);
        }
        Ok(())
    }

    /// Adds `reader`'s content.
    fn add(&mut self, mut reader: Reader, known: &Located) {
        let object = *reader.object();
        let same = object.entry.id == known.entry.id;
        let own = Attributes::of(known);
        let mut attributes = Attributes {
            // They may have changed since the listing, or a snapshot takes them from its object.
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
    }

    /// Notes what is published of each held object. A look reads the open files of all processes,
    /// so one serves many objects.
    fn measure(&mut self) -> Result<()> {
        for part in self.held.chunks_mut(MEASURED) {
            let entries: Vec<Listed> =
                part.iter().map(|held| Listed { offset: held.object.offset, hash: 0 }).collect();
            let found = self.store.statuses(&entries, None, |_, status| (status.published, status.psyncs))?;
            for (Held { attributes, .. }, found) in part.iter_mut().zip(found) {
                let found = found.unwrap_or(Err(StoreError::NotFound));
                (attributes.published, attributes.psyncs) =
                    found.map_err(BackupError::object(&attributes.name))?;
            }
        }
        Ok(())
    }

    /// Zeros follow the end.
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
        // Readers go first.
        self.held.clear();
        for (object, snapshot) in &self.snapshots {
            // The next backup removes the rest.
            let _ = self.store.destroy(snapshot, Key(&self.key));
            let _ = self.store.merge(object);
        }
    }
}

fn is_left(object: &Located) -> bool {
    object.entry.has(FLAG_BASE) && is_generated(&object.entry.name(), PREFIX, 1)
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
