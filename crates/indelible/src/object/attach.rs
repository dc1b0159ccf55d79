use super::anchored::{self, Anchored, Opened};
use super::attach_options::Attach;
use super::beside::{Addresses, Follows};
use super::engine::Core;
use super::reader::{ReadCore, ReadObject};
use super::tracked::Finding;
use super::writer::Object;
use crate::error::{Cause, Result, ViewError};
use crate::pool::{CreateOptions, Inner, Pool};
use indelible_store::error::StoreError;
use indelible_store::store::Writer;
use indelible_store::table::Key;
use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Instant;

impl Pool {
    /// Attaches an object for writing, after recovery if its last writer died.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `ObjectReadOnly`, `WrongKey`, `AddressTaken`, `ReadOnly`, `Busy`.
    pub fn attach(&self, name: &str) -> Result<Object> {
        self.attach_with_key(name, b"")
    }

    /// As [`attach`](Pool::attach), for an object with a key.
    pub fn attach_with_key(&self, name: &str, key: &[u8]) -> Result<Object> {
        self.attach_as(name, &Attach::with_key(key))
    }

    pub(crate) fn attach_as(&self, name: &str, how: &Attach<'_>) -> Result<Object> {
        let inner = self.inner();
        let core = attach_core(inner, name, how);
        let result = core.and_then(|core| Object::new(inner.clone(), name, core));
        self.about("attach", name, result)
    }

    /// Creates an object of `size` bytes and attaches it, in one step.
    ///
    /// # Errors
    /// As for [`create`](Pool::create) and [`attach`](Pool::attach); no object is created.
    pub fn create_attached(&self, name: &str, size: u64) -> Result<Object> {
        self.create_attached_with(name, &CreateOptions::new(size))
    }

    /// As [`create_attached`](Pool::create_attached), with options.
    pub fn create_attached_with(&self, name: &str, options: &CreateOptions) -> Result<Object> {
        self.create_attached_as(name, options, Finding::Pool)
    }

    pub(crate) fn create_attached_as(
        &self,
        name: &str,
        options: &CreateOptions,
        finding: Finding,
    ) -> Result<Object> {
        let inner = self.inner();
        if let Some(seal) = options.first_seal_key() {
            self.create_with(name, options)?;
            return self.attach_sealed(name, options.as_store().write_key.0, seal);
        }
        let result = inner.alive().and_then(|()| {
            let how = options.as_store();
            let writer = self.with_room(|| Ok(inner.store.create_writer(name, &how)?))?;
            let attached = Core::new(inner.clone(), writer, finding)
                .and_then(|core| Object::new(inner.clone(), name, core));
            if attached.is_err() {
                let _ = inner.store.destroy(name, how.write_key);
            }
            attached
        });
        self.about("create", name, result)
    }

    /// Attaches an object for reading: shared with readers, never with a writer.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`, `AddressTaken`, `NeedsRecovery`.
    pub fn attach_read(&self, name: &str) -> Result<ReadObject> {
        self.attach_read_with_key(name, b"")
    }

    /// As [`attach_read`](Pool::attach_read), for an object with a key.
    pub fn attach_read_with_key(&self, name: &str, key: &[u8]) -> Result<ReadObject> {
        self.attach_read_as(name, &Attach::with_key(key))
    }

    /// Attaches the state of an object's last psync for reading, beside its writer, at the object's
    /// addresses; [`ReadObject::refresh`] goes to the newest. It needs free space in the pool as
    /// large as the object.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// # let pool = indelible::Pool::format(&path, 16 << 20)?;
    /// # pool.create("prices", 100_000)?;
    /// // In another process than the one that writes `prices`:
    /// let mut prices = pool.attach_snapshot("prices")?;
    /// println!("{}", prices.as_slice()[0]);
    /// if prices.refresh()? {
    ///     println!("now {}", prices.as_slice()[0]);
    /// }
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `AddressTaken`, `NoRoom`, `ReadOnly` pool; `Busy`: the writer is
    /// busy for longer than [`set_wait`](Pool::set_wait) allows.
    pub fn attach_snapshot(&self, name: &str) -> Result<ReadObject> {
        self.attach_snapshot_with_key(name, b"")
    }

    /// As [`attach_snapshot`](Pool::attach_snapshot), for an object with a key.
    pub fn attach_snapshot_with_key(&self, name: &str, key: &[u8]) -> Result<ReadObject> {
        self.attach_beside(name, Follows::new(key, Addresses::Own, None))
    }

    /// As [`attach_snapshot`](Pool::attach_snapshot), at addresses that the kernel chooses: for
    /// objects without pointers, in any number of states.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// # let pool = indelible::Pool::format(&path, 16 << 20)?;
    /// let mut prices = pool.create_attached("prices", 100_000)?;
    /// let before = pool.attach_snapshot_anywhere("prices", b"")?;
    /// prices.as_mut_slice()[0] = 7;
    /// prices.psync()?;
    /// let now = before.newer()?.expect("a psync came after it");
    /// assert_eq!((before.as_slice()[0], now.as_slice()[0]), (0, 7));
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`attach_snapshot`](Pool::attach_snapshot), except `AddressTaken`.
    pub fn attach_snapshot_anywhere(&self, name: &str, key: &[u8]) -> Result<ReadObject> {
        self.attach_beside(name, Follows::new(key, Addresses::Any, None))
    }

    pub(super) fn attach_read_as(&self, name: &str, how: &Attach<'_>) -> Result<ReadObject> {
        let core = attach_reader(self.inner(), name, how);
        self.about("attach", name, core.map(ReadObject::new))
    }

    pub(super) fn attach_beside(&self, name: &str, follows: Follows) -> Result<ReadObject> {
        let inner = self.inner();
        let made = || Ok(ReadObject::new(Arc::new(ReadCore::beside(inner.clone(), name, follows)?)));
        self.about("attach", name, inner.alive().and_then(|()| made()))
    }
}

impl Inner {
    /// The opened key of a sealed object; `None`: no seal key is given.
    fn opened(&self, name: &str, how: &Attach<'_>) -> Result<Option<Opened>, Cause> {
        self.alive()?;
        how.seal.map(|seal| self.unlock(name, how, seal)).transpose()
    }
}

pub(crate) fn attach_core(pool: &Arc<Inner>, name: &str, how: &Attach<'_>) -> Result<Core, Cause> {
    let opened = pool.opened(name, how)?;
    let writer = pool.patiently_for(how.wait, || {
        Ok(match &opened {
            Some(unlocked) => pool.store.attach_sealed_writer(name, Key(how.key), unlocked)?,
            None => pool.store.attach_writer(name, Key(how.key))?,
        })
    })?;
    core_of(pool, writer, opened.as_ref(), how.finding)
}

fn core_of(
    pool: &Arc<Inner>,
    mut writer: Writer,
    unlocked: Option<&Opened>,
    finding: Finding,
) -> Result<Core, Cause> {
    let anchored = Anchored::begin(&mut writer, unlocked.and_then(|opened| opened.anchor.as_ref()))?;
    writer.finish_rename()?;
    let mut core = Core::new(pool.clone(), writer, finding)?;
    core.anchored = anchored;
    Ok(core)
}

pub(crate) fn attach_cores(pool: &Arc<Inner>, names: &[&str]) -> Result<Vec<Result<Core, Cause>>, Cause> {
    let writers = pool.store.attach_writers(names)?;
    Ok(writers.into_iter().map(|writer| core_of(pool, writer?, None, Finding::Pool)).collect())
}

pub(crate) fn attach_reader(pool: &Arc<Inner>, name: &str, how: &Attach<'_>) -> Result<Arc<ReadCore>, Cause> {
    let opened = pool.opened(name, how)?;
    let reading = || {
        Ok(match &opened {
            Some(unlocked) => pool.store.attach_sealed_reader(name, Key(how.key), unlocked)?,
            None => pool.store.attach_reader(name, Key(how.key))?,
        })
    };
    let mut reader = pool.patiently_for(how.wait, reading)?;
    let anchor = opened.as_ref().and_then(|opened| opened.anchor.as_ref());
    if let Some(pages) = reader.sealed_pages() {
        anchored::check_reader(reader.object(), &pages, anchor)?;
    }
    let begin = Instant::now();
    loop {
        let entry = reader.object().offset;
        let mut shared = pool.shared();
        match shared.get(&entry).map(Weak::upgrade) {
            Some(Some(core)) => {
                if let Ok(core) = Arc::downcast::<ReadCore>(core) {
                    return if core.is_alone() { Err(ViewError::Closed.into()) } else { Ok(core) };
                }
            }
            Some(None) => {
                drop(shared);
                std::thread::yield_now();
                continue;
            }
            None => {}
        }
        let core = match ReadCore::attach(pool.clone(), reader)? {
            Some(core) => Arc::new(core),
            None if begin.elapsed() < pool.store.patience() => {
                drop(shared);
                reader = pool.patiently_for(how.wait, reading)?;
                continue;
            }
            None => {
                let seconds = pool.store.patience().as_secs_f64();
                return Err(StoreError::TableInMotion { seconds }.into());
            }
        };
        let erased: Arc<dyn Any + Send + Sync> = core.clone();
        shared.insert(entry, Arc::downgrade(&erased));
        return Ok(core);
    }
}
