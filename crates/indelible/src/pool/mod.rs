//! Pools: open, format, and operations on whole objects.

mod anchor;
mod attributes;
mod class;
mod command;
mod content;
mod copies;
mod create_options;
mod dirty;
mod guard;
mod import;
mod info;
mod length;
mod lifetimes;
mod list;
mod lives;
mod mapped;
mod memory;
mod options;
mod pending;
mod registry;
mod seal_key;
mod seen;
mod selection;
mod thin;
mod transacting;
mod transfer;
mod wait;
mod windows;

pub use anchor::{Anchor, CommandAnchor, Counter, FileAnchor, TpmAnchor};
pub use class::Class;
pub use content::ByContent;
pub use copies::{Collected, Difference, PageRange};
pub use create_options::CreateOptions;
pub(crate) use guard::Guards;
pub use guard::guard_sockets;
pub use import::Import;
pub(crate) use info::living_writer;
pub use info::{LaneUse, Logged, PoolInfo, Stat, State};
pub use lifetimes::Tie;
pub use list::List;
pub use memory::EpochBounds;
pub(crate) use memory::{Bounds, Groups, memory_place};
pub use options::{MediumKind, PoolOptions, Tracking};
pub use pending::PendingCommits;
pub use seal_key::{SealKey, SignKey, VerifyKey};
pub(crate) use seen::Seen;
pub use selection::Selection;
pub use thin::{BadKeep, Keep};

use crate::error::{Cause, Error, ErrorKind, Result};
use crate::media::{Access, Media};
use crate::sys::{boot, fork, process};
use indelible_store::error::StoreError;
use indelible_store::format::{MAX_POOL, MIN_POOL};
use indelible_store::store::{Identity, Status, Store, Window};
use indelible_store::table::{Key, Located};
pub(crate) use mapped::PageOrigin;
use options::Settings;
use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
pub(crate) use transacting::{Inside, inside_transaction};
pub(crate) use wait::patiently;

/// An open pool. Clones, and further opens of a path in one process, are the same pool.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("notes.pmo");
/// use indelible::Pool;
///
/// let pool = Pool::format(&path, 16 << 20)?; // 16 MiB
/// pool.create("runs", 4096)?;
///
/// let mut runs = pool.attach("runs")?;
/// *runs.root_mut::<u64>()? += 1;
/// runs.psync()?; // durable, as one step
/// # assert_eq!(*runs.root::<u64>()?, 1);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// Dropped first: its end needs the others.
    lives: lives::Lives,
    pub(crate) path: PathBuf,
    pub(crate) media: Media,
    pub(crate) store: Arc<Store>,
    settings: Settings,
    wait: wait::Wait,
    generation: u32,
    shared: Mutex<HashMap<u64, Weak<dyn Any + Send + Sync>>>,
    transactions: Mutex<HashMap<Class, Weak<dyn Any + Send + Sync>>>,
    epochs: Arc<memory::Bounds>,
    groups: Arc<memory::Groups>,
    guards: Arc<guard::Guards>,
}

impl Pool {
    /// Opens an existing pool for reading and writing, in constant time.
    ///
    /// # Errors
    /// `NoPool`, `NotAPool`, `Version`, `Gone` (truncated), `Damaged`, `ReadOnly`, `Unsuitable`.
    pub fn open(path: impl AsRef<Path>) -> Result<Pool> {
        PoolOptions::new().open(path)
    }

    /// Creates a sparse file of `len` bytes and formats it.
    ///
    /// # Errors
    /// `PoolExists`, `BadSize`, `NoSpace`, `ReadOnly`, `Unsuitable`.
    pub fn format(path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        PoolOptions::new().format(path, len)
    }

    /// Opens the pool at `path`, or formats one of `len` bytes if nothing is there.
    ///
    /// # Errors
    /// As for [`open`](Pool::open) and [`format`](Pool::format).
    pub fn open_or_format(path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        PoolOptions::new().open_or_format(path, len)
    }

    /// Path the pool was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Random 128-bit identity.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.inner.store.id()
    }

    /// Kind of medium.
    #[must_use]
    pub fn medium(&self) -> MediumKind {
        self.inner.media.kind().into()
    }

    pub(crate) fn error(&self, operation: &'static str, cause: impl Into<Cause>) -> Error {
        Error::new(operation, cause).pool(&self.inner.path)
    }

    pub(crate) fn about<T>(
        &self,
        operation: &'static str,
        name: &str,
        result: Result<T, Cause>,
    ) -> Result<T> {
        result.map_err(|cause| self.error(operation, cause).object(name))
    }

    /// Creates a detached object of `size` zero bytes. Its space is claimed until it is destroyed.
    ///
    /// # Errors
    /// `Exists`, `BadName`, `BadSize`, `NoRoom`, `NoSpace`, `NoAddresses`.
    pub fn create(&self, name: &str, size: u64) -> Result<()> {
        self.create_with(name, &CreateOptions::new(size))
    }

    /// As [`create`](Pool::create), with options.
    pub fn create_with(&self, name: &str, options: &CreateOptions) -> Result<()> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| {
            let (how, seals) = (options.as_store(), options.seal_keys());
            self.with_room(|| {
                Ok(match seals.is_empty() {
                    true => inner.store.create(name, &how)?,
                    false => inner.store.create_sealed(name, &how, &seals)?,
                })
            })
        });
        self.about("create", name, result.map(drop))
    }

    /// Destroys an unattached object and frees its space. [`delete`](Pool::delete) is for attached
    /// objects.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`.
    pub fn destroy(&self, name: &str) -> Result<()> {
        self.destroy_with_key(name, b"")
    }

    /// As [`destroy`](Pool::destroy), for an object with a key.
    pub fn destroy_with_key(&self, name: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let destroy = || {
            let before = inner.store.find(name)?;
            inner.store.destroy(name, Key(key))?;
            inner.remove_shared_memory(&before);
            Ok(())
        };
        let result = inner.alive().and_then(|()| inner.patiently(destroy));
        self.about("destroy", name, result)
    }

    /// State, size, holder and more of an object.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn stat(&self, name: &str) -> Result<Stat> {
        self.inner.stat(name)
    }

    /// The pool's objects, in no particular order, read in pieces. A damaged one is an error; the
    /// iterator continues.
    #[must_use]
    pub fn list(&self) -> List {
        List::of(self.clone())
    }

    /// The store under the pool, for tools. Not part of the stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.inner.store
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Inner {
    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Cause> {
        if fork::is_stale(self.generation) { Err(Cause::Forked) } else { Ok(()) }
    }

    pub(crate) fn inherits_reads(&self) -> bool {
        self.settings.inherit_reads
    }

    pub(crate) fn is_untrusted(&self) -> bool {
        self.settings.untrusted
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, HashMap<u64, Weak<dyn Any + Send + Sync>>> {
        self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn stat(&self, name: &str) -> Result<Stat> {
        self.stat_by(name, || self.store.stat(name))
    }

    pub(crate) fn stat_attached(&self, name: &str, object: &Located) -> Result<Stat> {
        self.stat_by(name, || self.store.stat_id(&object.entry.id))
    }

    fn stat_by(
        &self,
        name: &str,
        find: impl FnOnce() -> Result<(Located, Status), StoreError>,
    ) -> Result<Stat> {
        let result = self.alive().and_then(|()| Ok(find()?));
        match result {
            Ok((object, status)) => Ok(Stat::of(&object.entry, &status)),
            Err(cause) => Err(Error::new("inspect", cause).pool(&self.path).object(name)),
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("path", &self.inner.path).field("medium", &self.medium()).finish()
    }
}

pub(crate) fn identity() -> Identity {
    Identity { pid: boot::pid(), boot: boot::boot_id(), namespace: process::namespace() }
}

impl Inner {
    fn new(path: &Path, media: Media, store: Arc<Store>, settings: Settings) -> Arc<Inner> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Arc::new(Inner {
            path,
            media,
            store,
            settings,
            wait: wait::Wait::default(),
            generation: fork::generation(),
            shared: Mutex::default(),
            transactions: Mutex::default(),
            epochs: Arc::default(),
            groups: Arc::default(),
            guards: Arc::default(),
            lives: lives::Lives::default(),
        })
    }
}

impl PoolOptions {
    /// Opens an existing pool with these options.
    ///
    /// # Errors
    /// As for [`Pool::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Pool> {
        let path = path.as_ref();
        self.open_cause(path).map_err(|cause| Error::new("open", cause).pool(path))
    }

    fn open_cause(&self, path: &Path) -> Result<Pool, Cause> {
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let mut media = self.model(crate::media::open(path, &self.as_media(access))?);
        let settings = self.settings()?;
        let inner = patiently(self.wait.unwrap_or(Duration::ZERO), || {
            registry::share(&mut media, self.read_only, &settings, |media| {
                if !self.read_only {
                    media.claim(path, self.allow_remote)?;
                }
                let store = Store::open(media.device().clone(), identity())?;
                Ok(Inner::new(path, media.clone(), store, settings.clone()))
            })
        })?;
        if let Some(wait) = self.wait {
            inner.set_wait(wait);
        }
        Ok(Pool { inner })
    }

    /// Creates and formats a pool with these options.
    ///
    /// # Errors
    /// As for [`Pool::format`].
    pub fn format(&self, path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        let path = path.as_ref();
        self.format_cause(path, len).map_err(|cause| Error::new("format", cause).pool(path))
    }

    fn format_cause(&self, path: &Path, len: u64) -> Result<Pool, Cause> {
        let settings = self.settings()?;
        let zeroed = path.metadata().map_or(true, |metadata| metadata.is_file());
        // A device has a fixed length. With `force`, an existing file has lost its content when the
        // store refuses.
        if zeroed && !(MIN_POOL..=MAX_POOL).contains(&len) {
            return Err(StoreError::BadLength { len, min: MIN_POOL, max: MAX_POOL }.into());
        }
        let mut media = self.model(self.create_media(path, len)?);
        media.claim(path, self.allow_remote)?;
        if !zeroed && !self.force {
            options::refuse_data(path, &media)?;
        }
        let store = Store::format(
            media.device().clone(),
            identity(),
            &self.as_format((zeroed, true), windows::known),
        )?;
        media.publish(path)?;
        let superblock = store.superblock();
        let window = Window { start: superblock.window.get(), len: superblock.window_len.get() };
        windows::remember(window, superblock.length.get());
        let inner = Inner::new(path, media, store, settings);
        if let Some(wait) = self.wait {
            inner.set_wait(wait);
        }
        Ok(Pool { inner: registry::add(inner) })
    }

    /// Opens the pool at `path`, or formats one of `len` bytes if nothing is there.
    ///
    /// # Errors
    /// As for [`Pool::open_or_format`].
    pub fn open_or_format(&self, path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        let path = path.as_ref();
        let missing = |error: &Error| error.kind() == ErrorKind::NoPool && !self.read_only;
        match self.open(path) {
            Err(error) if missing(&error) => match self.format(path, len) {
                Err(error) if error.kind() == ErrorKind::PoolExists => self.open(path),
                formatted => formatted,
            },
            opened => opened,
        }
    }

    /// Opens, or formats, a pool on any device, such as a simulated one.
    ///
    /// # Errors
    /// As for [`Pool::open`] and [`Pool::format`].
    pub fn on_device(&self, device: Arc<dyn indelible_store::medium::Device>, format: bool) -> Result<Pool> {
        self.on_file(device, (Path::new("(device)"), None), format)
    }

    /// As [`on_device`](PoolOptions::on_device), with a file's path, device and inode. For tests;
    /// not part of the stable interface.
    #[doc(hidden)]
    pub fn on_file(
        &self,
        device: Arc<dyn indelible_store::medium::Device>,
        (path, file): (&Path, Option<(u64, u64)>),
        format: bool,
    ) -> Result<Pool> {
        let open = || -> Result<Pool, Cause> {
            let media = self.model(Media::from_device(device.clone(), file));
            let device = media.device().clone();
            let store = if format {
                Store::format(device, identity(), &self.as_format((true, false), windows::known))?
            } else {
                Store::open(device, identity())?
            };
            Ok(Pool { inner: Inner::new(path, media, store, self.settings()?) })
        };
        open().map_err(|cause| Error::new(if format { "format" } else { "open" }, cause).pool(path))
    }
}
