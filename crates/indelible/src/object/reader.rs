#![allow(unsafe_code)]

use super::beside::{Addresses, Follows};
use crate::error::{Cause, Error, Result, TransactionError};
use crate::fault::PredictionStats;
use crate::plain::{Plain, frozen};
use crate::pool::{Inner as PoolInner, PageOrigin, Stat};
use crate::shadow::Shadow;
use indelible_store::error::{SealError, StoreError};
use indelible_store::format::entry::FLAG_ECC;
use indelible_store::medium::LockKey;
use indelible_store::store::Reader;
use indelible_store::table::Key;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct ReadCore {
    /// Goes first: nothing is mapped once the lock is released.
    pub(super) shadow: Option<Shadow>,
    pub(super) reader: Option<Reader>,
    pub(super) inherited: Inherited,
    pub(super) follows: Option<Follows>,
    pub(crate) pool: Arc<PoolInner>,
    pub(crate) name: String,
    pub(super) alone: AtomicBool,
}

pub(super) enum Inherited {
    No,
    Copy,
    /// The pool's file, locked as long as a process has the descriptor.
    File {
        _lock: OwnedFd,
    },
}

impl Inherited {
    fn of(shadow: &mut Shadow, pool: &PoolInner, reader: &Reader) -> Inherited {
        let inherited = match (pool.inherits_reads(), shadow.is_file()) {
            (false, _) => return Inherited::No,
            (true, false) => Inherited::Copy,
            (true, true) => match pool.media.inheritable_lock(LockKey::Object(reader.object().offset)) {
                Some(lock) => Inherited::File { _lock: lock },
                None => return Inherited::No,
            },
        };
        if shadow.inherit() { inherited } else { Inherited::No }
    }
}

impl ReadCore {
    pub(crate) fn attach(pool: Arc<PoolInner>, mut reader: Reader) -> Result<Option<ReadCore>, Cause> {
        let mapped = Self::map(&pool, &mut reader, Addresses::Own);
        // Last: the copy is one psync's state if no writer came until now.
        if !reader.is_current()? {
            return Ok(None);
        }
        let (shadow, inherited) = mapped?;
        let name = reader.object().entry.name();
        let (shadow, reader) = (Some(shadow), Some(reader));
        let alone = AtomicBool::new(false);
        Ok(Some(ReadCore { shadow, reader, inherited, follows: None, pool, name, alone }))
    }

    pub(super) fn map(
        pool: &PoolInner,
        reader: &mut Reader,
        addresses: Addresses,
    ) -> Result<(Shadow, Inherited), Cause> {
        if reader.object().is_sealed() && reader.sealed_pages().is_none() {
            return Err(StoreError::from(SealError::KeyNeeded).into());
        }
        let layers = reader.take_layers().map(|layers| Arc::new(Mutex::new(layers)));
        let place = reader.sealed_pages().map_or_else(|| layers.into(), PageOrigin::Sealed);
        let entry = &reader.object().entry;
        let mut shadow = match addresses {
            Addresses::Own => pool.map(entry, place, false)?,
            Addresses::Any => pool.map_anywhere(entry, place)?,
        };
        let inherited = Inherited::of(&mut shadow, pool, reader);
        Ok((shadow, inherited))
    }

    pub(crate) fn beside(pool: Arc<PoolInner>, name: &str, mut follows: Follows) -> Result<ReadCore, Cause> {
        // Before keeping the writer waiting for nothing.
        let object = pool.store.find(name)?;
        match (object.is_sealed(), &follows.opener) {
            (true, None) => return Err(StoreError::from(SealError::KeyNeeded).into()),
            (false, Some(_)) => return Err(StoreError::from(SealError::NotSealed).into()),
            _ if object.entry.has(FLAG_ECC) => {
                return Err(TransactionError::Checked("it is not read beside its writer").into());
            }
            _ => {}
        }
        pool.store.reap()?;
        // A usable base of another reader leaves the writer undisturbed, but may be older than the
        // anchor's state.
        let others = match follows.anchor() {
            Some(_) => None,
            None => Self::base_of_others(&pool, name, &mut follows)?,
        };
        if let Some((base, lines)) = others {
            follows.judge(&object, &base, None)?;
            let again = Follows::new(&follows.key, follows.addresses, follows.opener.clone());
            let mut found = ReadCore::following(pool.clone(), name, base, again)?;
            if found.lay_first(&lines) {
                return Ok(found);
            }
        }
        let told = follows.told()?;
        let reader = pool.patiently(|| Ok(pool.store.attach_snapshot(name, Key(&follows.key))?))?;
        let reader = follows.open(&pool, reader)?;
        if let Err(refused) = follows.judge(&object, &reader, told.as_ref()) {
            let _ = pool.store.end_snapshot(reader);
            return Err(refused);
        }
        ReadCore::following(pool, name, reader, follows)
    }

    pub(super) fn following(
        pool: Arc<PoolInner>,
        name: &str,
        mut reader: Reader,
        follows: Follows,
    ) -> Result<ReadCore, Cause> {
        let (shadow, inherited) = Self::map(&pool, &mut reader, follows.addresses)?;
        let (shadow, reader) = (Some(shadow), Some(reader));
        let (name, alone) = (name.to_owned(), AtomicBool::new(false));
        Ok(ReadCore { shadow, reader, inherited, follows: Some(follows), pool, name, alone })
    }

    pub(crate) fn keep_alone(self: &Arc<Self>) -> bool {
        let _shared = self.pool.shared();
        let alone = Arc::strong_count(self) == 1;
        if alone {
            self.alone.store(true, Ordering::Relaxed);
        }
        alone
    }

    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.shadow
            .as_ref()
            .map_or(NonNull::<u8>::dangling().as_ptr().cast_const(), |shadow| shadow.base().as_ptr())
    }

    pub(crate) fn id(&self) -> Option<[u8; 16]> {
        Some(self.reader.as_ref()?.object().entry.id)
    }

    pub(crate) fn len(&self) -> usize {
        if self.shadow.is_none() {
            return 0;
        }
        self.reader.as_ref().map_or(0, |reader| {
            let entry = &reader.object().entry;
            entry.usable(entry.size.get()) as usize
        })
    }

    pub(crate) fn prefault(&self, pages: Range<usize>) -> Result<usize, Cause> {
        self.pool.alive()?;
        Ok(self.shadow.as_ref().ok_or(Cause::Detached)?.prefault(pages)?)
    }

    pub(crate) fn end(&mut self) -> Result<(), Cause> {
        let Some(reader) = self.reader.take() else { return Ok(()) };
        self.shadow = None;
        self.inherited = Inherited::No;
        if self.follows.is_none() {
            self.pool.shared().remove(&reader.object().offset);
            return Ok(reader.detach()?);
        }
        Ok(self.pool.store.end_snapshot(reader)?)
    }
}

impl Drop for ReadCore {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// An object attached for reading: by any number of processes and threads, while none has it
/// attached for writing.
pub struct ReadObject {
    core: Arc<ReadCore>,
}

impl ReadObject {
    pub(crate) fn new(core: Arc<ReadCore>) -> Self {
        ReadObject { core }
    }

    pub(super) fn prefault_piece(&self, pages: Range<usize>) -> Result<usize, Cause> {
        self.core.prefault(pages)
    }

    pub(super) fn limit(&self) -> Option<usize> {
        self.core.shadow.as_ref()?.limit()
    }

    pub(super) fn prediction_counts(&self) -> Option<PredictionStats> {
        self.core.shadow.as_ref()?.prediction()
    }

    pub(crate) fn error(&self, operation: &'static str, cause: Cause) -> Error {
        Error::new(operation, cause).pool(&self.core.pool.path).object(&self.core.name)
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    pub(crate) fn id(&self) -> Option<[u8; 16]> {
        self.core.id()
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether forked children keep the object's bytes: see
    /// [`PoolOptions::inherit_reads`](crate::PoolOptions::inherit_reads).
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        !matches!(self.core.inherited, Inherited::No)
    }

    /// Never: an object has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First byte: the object's fixed address, unless attached elsewhere.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.core.base()
    }

    /// The object's bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: mapped until drop; no process writes the object while this one reads it (the
        // lock), or it is a copy (in a read-only pool). SAFETY.md lists the effects of processes
        // outside the protocol.
        unsafe { std::slice::from_raw_parts(self.core.base(), self.core.len()) }
    }

    /// The value at the start of the object. Types with atomics do not compile: a reader's pages
    /// are read-only.
    ///
    /// ```compile_fail,E0080
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # fn example(object: &indelible::ReadObject) -> indelible::Result<()> {
    /// object.root::<AtomicU64>()?.store(1, Ordering::Relaxed);
    /// # Ok(()) }
    /// # let _ = example as fn(_) -> _;
    /// ```
    ///
    /// # Errors
    /// `BadSize` if the object is smaller than a `T`.
    pub fn root<T: Plain>(&self) -> Result<&T> {
        const { frozen::<T>() };
        if size_of::<T>() > self.core.len() {
            let cause = Cause::RootTooLarge { needed: size_of::<T>(), size: self.core.len() };
            return Err(self.error("read the root of", cause));
        }
        // SAFETY: large enough, page-aligned, every bit pattern is a T, and as for `as_slice`.
        Ok(unsafe { &*self.core.base().cast::<T>() })
    }

    /// State, size, holder and more; beside a writer those of the object of that name.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn stat(&self) -> Result<Stat> {
        match &self.core.reader {
            Some(reader) if self.core.follows.is_none() => {
                self.core.pool.stat_attached(&self.core.name, reader.object())
            }
            _ => self.core.pool.stat(&self.core.name),
        }
    }

    /// Attaches the newest psync's state beside this one, at addresses that the kernel chooses;
    /// `None` if this is the newest. Only for snapshots, as of
    /// [`attach_snapshot`](crate::Pool::attach_snapshot).
    ///
    /// # Errors
    /// As for [`attach_snapshot_anywhere`](crate::Pool::attach_snapshot_anywhere).
    pub fn newer(&self) -> Result<Option<ReadObject>> {
        let newer = self.core.newer().map_err(|cause| self.error("refresh", cause))?;
        Ok(newer.map(|core| ReadObject::new(Arc::new(core))))
    }

    /// Moves to the object's newest psync; returns whether there was a newer one. Only for objects
    /// of [`attach_snapshot`](crate::Pool::attach_snapshot).
    ///
    /// # Errors
    /// As for [`attach_snapshot`](crate::Pool::attach_snapshot); the object may have no bytes until
    /// a later call succeeds. `NotFound` if another object has its name now.
    pub fn refresh(&mut self) -> Result<bool> {
        let Some(core) = Arc::get_mut(&mut self.core) else { return Ok(false) };
        // SAFETY: references into the object borrow this value, which is borrowed mutably here.
        let done = unsafe { core.refresh(|| {}) };
        done.map_err(|cause| Error::new("refresh", cause).pool(&core.pool.path).object(&core.name))
    }

    /// Detaches. The bytes become inaccessible when the process's last `ReadObject` of it is gone.
    ///
    /// # Errors
    /// The table could not be changed; the lock is released in any case.
    pub fn detach(self) -> Result<()> {
        match Arc::into_inner(self.core) {
            Some(mut core) => {
                let result = core.end();
                result.map_err(|cause| Error::new("detach", cause).pool(&core.pool.path).object(&core.name))
            }
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for ReadObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadObject").field("name", &self.name()).field("address", &self.as_ptr()).finish()
    }
}
