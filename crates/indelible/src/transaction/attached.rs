//! A transactional object in memory: a mapping where the kernel likes, for transactions, and pages at the object's own address that nobody may touch.

#![allow(unsafe_code)]

use super::space::{Space, Users, View};
use crate::dirty::Rung;
use crate::error::{Cause, Error, Result, TransactionError};
use crate::mapping::Mapping;
use crate::pool::{Inner, Place, inside_transaction};
use crate::shadow::{Params, Shadow};
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use indelible_store::table::Key;
use std::ops::Range;
use std::sync::Arc;

/// An attached object, whatever lies in it.
pub struct Attached {
    pub(super) space: Arc<Space>,
    /// `None` once it is detached.
    memory: Option<Memory>,
    base: *const u8,
    len: usize,
    /// The object's own, which its pointers have.
    address: usize,
    slot: u64,
    pub(super) pool: Arc<Inner>,
    name: String,
}

// SAFETY: `base` is that of `memory`, and is given to nobody but as references to a `T` (`TxObject`).
unsafe impl Send for Attached {}
// SAFETY: as for `Send`.
unsafe impl Sync for Attached {}

struct Memory {
    _view: Shadow,
    /// The object's own address.
    _closed: Mapping,
}

impl Attached {
    /// See [`Pool::attach_transactional`](crate::Pool::attach_transactional); the object has `needed` bytes at least.
    pub(crate) fn new(
        pool: &Arc<Inner>,
        name: &str,
        key: &[u8],
        needed: usize,
        users: Users,
    ) -> Result<Attached, Cause> {
        if inside_transaction() {
            return Err(TransactionError::Inside.into());
        }
        let writer = pool.patiently(|| Ok(pool.store.attach_transactional_writer(name, Key(key))?))?;
        let (slot, entry) = (writer.object().offset, writer.object().entry);
        let size = entry.size.get() as usize;
        if size < needed {
            return Err(Cause::RootTooLarge { needed, size });
        }
        let (address, len) = (entry.address.get() as usize, entry.content_len() as usize);
        let open = if Mutant::AddressOpen.is_on() { Protection::ReadWrite } else { Protection::None };
        let closed = Mapping::anonymous(address, len, open)?;
        let params = pool.mapping_of(&entry, Place::of(&writer), true);
        // Lines that change are told, so that nothing has to be found; and nobody drops pages whose address nobody knows.
        let view =
            Shadow::attach(Params { addr: None, rung: Some(Rung::Explicit), pending: false, ..params })?;
        let base = view.base().as_ptr().cast_const();
        let space = Space::of(pool)?;
        space.claim(users)?;
        space.commits().join(writer)?;
        space.add(View { base: base.expose_provenance(), len, object: slot });
        let memory = Some(Memory { _view: view, _closed: closed });
        let (pool, name) = (pool.clone(), name.to_owned());
        Ok(Attached { space, memory, base, len: size, address, slot, pool, name })
    }

    /// First byte, in the mapping that is for transactions.
    pub(super) fn base(&self) -> *const u8 {
        self.base
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// In bytes.
    pub(crate) fn size(&self) -> usize {
        self.len
    }

    /// Offset of the object's entry.
    pub(super) fn slot(&self) -> u64 {
        self.slot
    }

    /// The object's own address.
    pub(crate) fn own(&self) -> usize {
        self.address
    }

    /// Where bytes are for transactions, given by the object's own addresses. `None`: not all of them are in the object.
    #[inline]
    pub(crate) fn place(&self, address: usize, len: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.address);
        let inside = offset < self.len && len <= self.len - offset;
        inside.then(|| self.base.expose_provenance() + offset)
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.base.addr()..self.base.addr() + self.len
    }

    pub(crate) fn error(&self, operation: &'static str, cause: impl Into<Cause>) -> Error {
        Error::new(operation, cause).pool(&self.pool.path).object(&self.name)
    }

    pub(crate) fn is_for(&self, users: Users) -> bool {
        self.space.claim(users).is_ok()
    }

    /// Waits until everything is durable that was committed in the pool.
    pub(crate) fn psync(&self) -> Result<()> {
        let result = self.pool.alive().and_then(|()| match inside_transaction() {
            true => Err(TransactionError::Inside.into()),
            false => Ok(self.space.commits().flush()?),
        });
        result.map_err(|cause| self.error("psync", cause))
    }

    /// Detaches.
    pub(crate) fn end(&mut self) -> Result<(), Cause> {
        let Some(memory) = self.memory.take() else { return Ok(()) };
        if let Err(forked) = self.pool.alive() {
            // Locks in there may be those of threads that the child does not have.
            std::mem::forget(self.space.clone());
            return Err(forked);
        }
        let (writer, flushed) = self.space.commits().leave(self.slot);
        self.space.remove(self.slot);
        drop(memory);
        let detached = writer.map_or(Ok(()), |writer| writer.detach());
        Ok(flushed.and(detached)?)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
