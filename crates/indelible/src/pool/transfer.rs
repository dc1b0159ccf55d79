//! Copies and moves of objects between pools: hidden there until all bytes are durable; only then a
//! move removes the original.

use super::Pool;
use crate::error::{Cause, Result};
use indelible_store::error::StoreError;
use indelible_store::format::PAGE;
use indelible_store::format::entry::{
    FLAG_BASE, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY, FLAG_READ_ONLY, FLAG_VOLATILE,
};
use indelible_store::store::{Attributes, Reader, Revived};
use indelible_store::table::{Key, read_pages};

/// Changes the pointers in an object that arrived in a pool, still hidden.
pub(crate) type Rebase<'r> = dyn Fn(&Attributes, &Revived) -> Result<()> + 'r;

const PIECE: u64 = 1 << 20;

impl Pool {
    /// Copies the last psync of an object, or a snapshot, to another pool, as an object `copy` with
    /// a new identity and the same addresses: a process attaches one of the two at a time. `key`
    /// opens the object, and becomes the copy's if the object has one. `progress` gets the bytes
    /// copied, and all.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Exists`; `NoRoom` and `NoSpace` of the other pool, or of this one
    /// if a process writes the object. Nothing happened.
    pub fn copy_to(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        copy: &str,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.copy_with(name, key, other, copy, progress, None)
    }

    /// With other addresses if `rebase` changes the pointers accordingly.
    pub(crate) fn copy_with(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        copy: &str,
        progress: &mut dyn FnMut(u64, u64),
        rebase: Option<&Rebase<'_>>,
    ) -> Result<()> {
        self.about("copy", name, self.inner.alive().and_then(|()| other.inner.alive()))?;
        let store = &self.inner.store;
        let held = self.inner.patiently(|| Ok(store.attach_still(name, Key(key))?));
        let mut reader = self.about("copy", name, held)?;
        let copied = self.copy_held(name, key, &mut reader, (other, copy), progress, rebase);
        let _ = store.end_snapshot(reader);
        copied
    }

    fn copy_held(
        &self,
        name: &str,
        key: &[u8],
        reader: &mut Reader,
        (other, copy): (&Pool, &str),
        progress: &mut dyn FnMut(u64, u64),
        rebase: Option<&Rebase<'_>>,
    ) -> Result<()> {
        let (store, object) = (&self.inner.store, *reader.object());
        let here = |error: StoreError| self.error("copy", error).object(name);
        let known = store.find(name).map_err(here)?;
        let status = store.status(&object).map_err(here)?;
        let keys = [known.entry.read_key, known.entry.write_key].map(|verifier| verifier != [0; 16]);
        let [read, write] = keys.map(|has| Key(if has { key } else { b"" }));
        let mut attributes = Attributes { name: copy.to_owned(), ..Attributes::of(&object) };
        (attributes.published, attributes.psyncs) = (status.published, status.psyncs);
        attributes.flags &= !(FLAG_BASE | FLAG_HIDDEN | FLAG_OVERLAY | FLAG_READ_ONLY | FLAG_VOLATILE);
        attributes.flags |= FLAG_FOREIGN;
        if !known.entry.has(FLAG_BASE) {
            attributes.flags |= known.entry.flags.get() & FLAG_READ_ONLY;
        }
        let attributes = attributes.renewed(read, write).map_err(here)?;
        let layers = reader.take_layers();
        let read = |offset: u64, bytes: &mut [u8]| {
            read_pages(&**store.device(), &object, layers.as_ref(), offset, bytes)
                .map_err(|error| here(error.into()))
        };
        let current = || match reader.is_current() {
            Ok(true) => Ok(()),
            Ok(false) => Err(here(StoreError::TableInMotion { seconds: 0.0 })),
            Err(error) => Err(here(error)),
        };
        other.receive(&attributes, &read, progress, rebase)?.publish_if(current, other, copy)
    }

    /// Moves an unattached object to another pool, on any medium, with its identity, keys and
    /// addresses. Snapshots and copies stay; ties end. After an interruption in both, a second call
    /// fails with `Exists`, and one of the two must be destroyed.
    ///
    /// # Errors
    /// As for [`copy_to`](Pool::copy_to); `Held`, `ObjectReadOnly` of a snapshot. The object is
    /// here unchanged, or in both pools if its final removal failed.
    pub fn move_to(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.move_with(name, key, other, progress, None)
    }

    /// As [`copy_with`](Pool::copy_with).
    pub(crate) fn move_with(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        progress: &mut dyn FnMut(u64, u64),
        rebase: Option<&Rebase<'_>>,
    ) -> Result<()> {
        self.about("move", name, self.inner.alive().and_then(|()| other.inner.alive()))?;
        let store = &self.inner.store;
        let taken = self.inner.patiently(|| Ok(store.begin_leaving(name, Key(key))?));
        let leaving = self.about("move", name, taken)?;
        let attributes = leaving.attributes();
        let read = |offset: u64, bytes: &mut [u8]| {
            leaving.read(offset, bytes).map_err(|error| self.error("move", error).object(name))
        };
        other.receive(&attributes, &read, progress, rebase)?.publish_if(|| Ok(()), other, name)?;
        self.about("remove the moved", name, leaving.remove().map_err(Cause::from))
    }

    fn receive(
        &self,
        kept: &Attributes,
        read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
        progress: &mut dyn FnMut(u64, u64),
        rebase: Option<&Rebase<'_>>,
    ) -> Result<Received> {
        let here = |error: StoreError| self.error("create", error).object(&kept.name);
        self.inner.store.reap().map_err(here)?;
        let store = &self.inner.store;
        let revived = match rebase {
            None => store.adopt(kept),
            Some(_) => store.adopt_elsewhere(kept, None),
        };
        let revived = revived.map_err(here)?;
        let end = kept.end().min(revived.extent_len());
        let mut bytes = vec![0; PIECE.min(end.next_multiple_of(PAGE)) as usize];
        let mut at = 0;
        while at < end {
            let piece = &mut bytes[..PIECE.min(end.next_multiple_of(PAGE) - at) as usize];
            read(at, piece)?;
            let within = (end - at).min(piece.len() as u64) as usize;
            piece[within..].fill(0);
            write_pages(&revived, at, piece).map_err(here)?;
            at += piece.len() as u64;
            progress(at.min(end), end);
        }
        if let Some(Err(error)) = rebase.map(|rebase| rebase(kept, &revived)) {
            drop(revived);
            let _ = store.reap();
            return Err(error);
        }
        Ok(Received(revived))
    }
}

struct Received(Revived);

impl Received {
    fn publish_if(self, check: impl FnOnce() -> Result<()>, pool: &Pool, name: &str) -> Result<()> {
        check()?;
        self.0.publish().map(drop).map_err(|error| pool.error("create", error).object(name))
    }
}

fn write_pages(revived: &Revived, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
    let size = PAGE as usize;
    let blank = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let mut run = None;
    for (nth, page) in bytes.chunks(size).enumerate() {
        match (blank(page), run) {
            (false, None) => run = Some(nth),
            (true, Some(first)) => {
                revived.write(at + first as u64 * PAGE, &bytes[first * size..nth * size])?;
                run = None;
            }
            _ => {}
        }
    }
    run.map_or(Ok(()), |first| revived.write(at + first as u64 * PAGE, &bytes[first * size..]))
}
