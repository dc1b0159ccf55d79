//! Objects written once: their bytes go straight to the pool, without shadow or log.

use super::Pool;
use crate::error::{Cause, Result};
use indelible_store::error::StoreError;
use indelible_store::format::PAGE;
use indelible_store::format::entry::{FLAG_BASE, FLAG_FOREIGN, FLAG_POSITION_INDEPENDENT, FLAG_READ_ONLY};
use indelible_store::store::{Attributes, Revived};
use indelible_store::table::Key;

const PIECE: usize = 1 << 20;

const WRITEBACK: u64 = 8 << 20;

/// An object being written from start to end, hidden until [`publish`](Import::publish) makes it
/// durable as one step; dropping it leaves nothing.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// let mut new = pool.import("weights", 100_000)?;
/// new.append(b"first")?; // bytes that are not appended are zeros
/// assert!(pool.stat("weights").is_err());
/// new.publish()?;
/// assert_eq!(&pool.attach_snapshot("weights")?.as_slice()[..6], b"first\0");
/// # Ok::<(), indelible::Error>(())
/// ```
pub struct Import {
    pool: Pool,
    name: String,
    size: u64,
    revived: Option<Revived>,
    at: u64,
    rest: Vec<u8>,
    begun: u64,
}

impl Pool {
    /// Begins an object of `size` bytes that is written once, in order, and then is a snapshot.
    /// Nothing in it may depend on its addresses.
    ///
    /// # Errors
    /// `Exists`, `BadName`, `BadSize`, `NoRoom`, `NoSpace`, `NoAddresses`: nothing happened.
    pub fn import(&self, name: &str, size: u64) -> Result<Import> {
        let store = &self.inner.store;
        let begin = || -> Result<Revived, Cause> {
            self.inner.alive()?;
            store.reap()?;
            let attributes = Attributes {
                name: name.to_owned(),
                size,
                flags: FLAG_BASE | FLAG_FOREIGN | FLAG_READ_ONLY | FLAG_POSITION_INDEPENDENT,
                published: size,
                psyncs: 1,
                ..Attributes::default()
            };
            Ok(store.adopt_elsewhere(&attributes.renewed(Key::default(), Key::default())?, None)?)
        };
        let revived = self.about("create", name, self.with_room(begin))?;
        let (pool, name) = (self.clone(), name.to_owned());
        Ok(Import { pool, name, size, revived: Some(revived), at: 0, rest: Vec::new(), begun: 0 })
    }
}

impl Import {
    /// Bytes appended.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.at + self.rest.len() as u64
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `BadSize`: they end behind the object. `NoSpace`, or the medium's: nothing is left of the
    /// import. `Poisoned`: an earlier append failed.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 > self.size - self.len() {
            let size = self.len() + bytes.len() as u64;
            let error = StoreError::BadSize { size, why: "the object was begun with fewer bytes" };
            return self.pool.about("write", &self.name, Err(error.into()));
        }
        while !bytes.is_empty() {
            let pages = bytes.len() - bytes.len() % PAGE as usize;
            if self.rest.is_empty() && pages > 0 {
                self.write(&bytes[..pages])?;
                bytes = &bytes[pages..];
                continue;
            }
            let page = self.rest.len().next_multiple_of(PAGE as usize) - self.rest.len();
            let most = if bytes.len() >= PIECE { page } else { PIECE - self.rest.len() };
            let (now, later) = bytes.split_at(most.min(bytes.len()));
            self.rest.extend_from_slice(now);
            bytes = later;
            if self.rest.len() == PIECE || bytes.len() >= PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Makes the object durable and visible on return.
    ///
    /// # Errors
    /// `Exists`, `NoSpace`: there is no object. `Poisoned`: none either, as an
    /// [`append`](Import::append) failed. The medium's: it is there if the table has it.
    pub fn publish(mut self) -> Result<()> {
        self.rest.resize(self.rest.len().next_multiple_of(PAGE as usize), 0);
        self.flush()?;
        let published = match self.revived.take() {
            Some(revived) => revived.publish().map(drop),
            None => Err(StoreError::Poisoned),
        };
        if published.is_err() {
            let _ = self.pool.inner.store.reap();
        }
        self.pool.about("create", &self.name, published.map_err(Cause::from))
    }

    fn flush(&mut self) -> Result<()> {
        let mut rest = std::mem::take(&mut self.rest);
        let written = self.write(&rest);
        rest.clear();
        self.rest = rest;
        written
    }

    /// A failure discards the import: later bytes would take the place of the lost ones.
    fn write(&mut self, pages: &[u8]) -> Result<()> {
        let Some(revived) = &self.revived else {
            return self.pool.about("write", &self.name, Err(StoreError::Poisoned.into()));
        };
        if pages.is_empty() {
            return Ok(());
        }
        if let Err(error) = revived.write(self.at, pages) {
            self.give_up();
            return self.pool.about("write", &self.name, Err(error.into()));
        }
        self.at += pages.len() as u64;
        if self.at - self.begun >= WRITEBACK {
            revived.begin_writeback(self.begun, self.at - self.begun);
            self.begun = self.at;
        }
        Ok(())
    }

    fn give_up(&mut self) {
        let Some(revived) = self.revived.take() else { return };
        if self.pool.inner.alive().is_err() {
            std::mem::forget(revived);
            return;
        }
        drop(revived);
        let _ = self.pool.inner.store.reap();
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("name", &self.name).field("at", &self.len()).finish()
    }
}
