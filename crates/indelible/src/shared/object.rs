use super::memory::Memory;
use super::word::{Word, error};
use crate::error::{Cause, Result, SharedError};
use crate::pool::{Pool, Stat};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// An attached object of the class [`Shared`](crate::Class::Shared): memory that any number of
/// processes map at the same address, with words to wait for, and queues. Nothing in it becomes
/// durable; its contents stay while the machine runs, or until
/// [`forget_shared`](Pool::forget_shared). Clones are the same attachment.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("example.pmo");
/// use indelible::{Class, CreateOptions, Pool};
/// use std::sync::atomic::Ordering;
///
/// let pool = Pool::format(&path, 16 << 20)?;
/// pool.create_with("hits", &CreateOptions::new(4096).class(Class::Shared))?;
/// let hits = pool.attach_shared("hits")?; // in as many processes as you like
/// hits.words()[0].fetch_add(1, Ordering::Relaxed);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedObject {
    pub(super) memory: Arc<Memory>,
}

impl Pool {
    /// Attaches an object of the class shared, beside its other attachments.
    ///
    /// # Errors
    /// `ClassMismatch`; `VolatileGone`: the machine was restarted since its creation; `Gone`: its
    /// users see another `/dev/shm`, as in another container; `NoSpace`: no memory for it;
    /// `NotFound`, `Held`, `WrongKey`, `ObjectReadOnly`, `AddressTaken`, `ReadOnly`. `Io`: the
    /// memory is another user's.
    pub fn attach_shared(&self, name: &str) -> Result<SharedObject> {
        self.attach_shared_with_key(name, b"")
    }

    /// As [`attach_shared`](Pool::attach_shared), with a write key.
    pub fn attach_shared_with_key(&self, name: &str, key: &[u8]) -> Result<SharedObject> {
        let inner = self.inner();
        let result = inner.alive().and_then(|()| Memory::attach(inner, name, key));
        Ok(SharedObject { memory: self.about("attach", name, result)? })
    }

    /// Gives back the memory of an object of the class shared, unless a process has it attached
    /// (`false`). The next attach finds zeros.
    ///
    /// # Errors
    /// As for [`attach_shared`](Pool::attach_shared); `Held`: a process is just attaching it.
    pub fn forget_shared(&self, name: &str, key: &[u8]) -> Result<bool> {
        let inner = self.inner();
        let result = inner.alive().and_then(|()| Memory::forget(inner, name, key));
        self.about("give back the memory of", name, result)
    }
}

impl SharedObject {
    pub(super) fn about<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce() -> Result<T, Cause>,
    ) -> Result<T> {
        work().map_err(|cause| error(&self.memory, operation, cause))
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.memory.name
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Always false: an object has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object's address, the same in all processes.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.base()
    }

    /// The bytes as words, including the whole last page; any sharing process may change them at
    /// any time. Truncating the memory's file zeros them: see [`check`](Self::check).
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// The four bytes at `offset`, to wait for.
    ///
    /// # Errors
    /// `BadSize`: not a multiple of 4, or not in the object.
    pub fn word(&self, offset: usize) -> Result<Word<'_>> {
        self.about("wait for", || {
            let size = self.len();
            let value = self.memory.half(offset).ok_or(SharedError::NoWord { offset, size })?;
            Ok(Word { memory: &self.memory, value })
        })
    }

    /// Checks that the memory's file was not truncated, as all other calls do.
    ///
    /// # Errors
    /// `Gone`, `Forked`.
    pub fn check(&self) -> Result<()> {
        self.about("check", || self.memory.check_whole())
    }

    /// This object's status, even if deleted or renamed meanwhile.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn stat(&self) -> Result<Stat> {
        self.memory.stat()
    }

    /// Detaches. The memory stays while this process has clones, queues or lives.
    pub fn detach(self) {}
}

impl std::fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedObject").field("name", &self.name()).field("address", &self.as_ptr()).finish()
    }
}
