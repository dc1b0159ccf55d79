//! Objects whose ID is the hash of their bytes (S2.1): equal bytes are one object, and never
//! change.

use super::hash::{ContentHash, PIECE, content_id, in_pieces};
use super::revive::Attributes;
use crate::entropy::now;
use crate::error::{Part, Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{FLAG_CONTENT, FLAG_HIDDEN, FLAG_POSITION_INDEPENDENT, FLAG_READ_ONLY};
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::store::locks::{Deadline, ObjectLock};
use crate::store::pool::Store;
use crate::table::{Key, Located, id_name, read_pages};
use std::sync::Arc;

impl Store {
    /// Creates a read-only object of these bytes with their hash as ID, or returns the present one,
    /// compared. Returns whether it was made.
    ///
    /// # Errors
    /// `Exists`: another object has the name, or the ID. `Damaged`: the present object has other
    /// bytes. `Held`: it is being deleted, or made, for longer than [`patience`](Store::patience).
    /// `BadSize` of no bytes. Those of [`revive`](Store::revive).
    pub fn create_by_content(self: &Arc<Self>, name: &str, content: &[u8]) -> Result<(Located, bool)> {
        let id = content_id(content);
        let mut deadline = Deadline::after(self.patience());
        loop {
            // A dead process's unfinished one.
            self.reap()?;
            let Some(found) = self.view(|table| table.find_id(&id))? else {
                match self.make_by_content(name, id, content) {
                    // Another process was first.
                    Err(StoreError::Exists) if self.view(|table| table.find_id(&id))?.is_some() => continue,
                    made => return made.map(|made| (made, true)),
                }
            };
            if !found.entry.has(FLAG_HIDDEN) {
                self.expect_content(&found, content)?;
                return Ok((found, false));
            }
            if !deadline.pause(std::thread::sleep) {
                let held = ObjectLock::take(&self.object_locks, &found, LockMode::Exclusive);
                return Err(held.err().unwrap_or(StoreError::Exists));
            }
        }
    }

    fn make_by_content(self: &Arc<Self>, name: &str, id: [u8; 16], content: &[u8]) -> Result<Located> {
        let size = content.len() as u64;
        let attributes = Attributes {
            name: name.to_owned(),
            id,
            size,
            flags: FLAG_READ_ONLY | FLAG_POSITION_INDEPENDENT | FLAG_CONTENT,
            created: now(),
            published: size,
            psyncs: 1,
            ..Attributes::default()
        };
        let revived = self.adopt_elsewhere(&attributes, None)?;
        let written = content.chunks(PIECE).zip((0..).step_by(PIECE)).try_for_each(|(piece, at)| match piece
            .len()
            .is_multiple_of(PAGE as usize)
        {
            true => revived.write(at, piece),
            false => {
                let mut whole = piece.to_vec();
                whole.resize(piece.len().next_multiple_of(PAGE as usize), 0);
                revived.write(at, &whole)
            }
        });
        let made = written.and_then(|()| revived.publish());
        if made.is_err() {
            let _ = self.reap();
        }
        made
    }

    fn expect_content(self: &Arc<Self>, found: &Located, content: &[u8]) -> Result<()> {
        if !found.entry.has(FLAG_CONTENT) {
            return Err(StoreError::Exists);
        }
        let mut same = found.entry.size.get() == content.len() as u64;
        self.read_still(&id_name(&found.entry.id), Key::default(), &mut |at, bytes| {
            same &= content.get(at as usize..at as usize + bytes.len()) == Some(bytes);
        })?;
        let offset = found.entry.primary_offset();
        match same || Mutant::ContentUnchecked.is_on() {
            true => Ok(()),
            false => Err(StoreError::Damaged { part: Part::Content, offset }),
        }
    }

    /// Whether an object's ID is the hash of its bytes; `None`: the ID is no hash.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`; the medium's.
    pub fn verify_content(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Option<bool>> {
        let found = self.find(name)?;
        if !found.entry.has(FLAG_CONTENT) {
            return Ok(None);
        }
        let mut hash = ContentHash::default();
        self.read_still(name, key, &mut |_, bytes| hash.add(bytes))?;
        Ok(Some(hash.id() == found.entry.id || Mutant::ContentUnchecked.is_on()))
    }

    fn read_still(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        tell: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<()> {
        let mut reader = self.attach_still(name, key)?;
        let (object, layers) = (*reader.object(), reader.take_layers());
        let read =
            &mut |at, bytes: &mut [u8]| Ok(read_pages(&*self.device, &object, layers.as_ref(), at, bytes)?);
        let done = in_pieces(object.entry.size.get(), read, tell);
        let ended = self.end_snapshot(reader);
        done.and(ended)
    }
}
