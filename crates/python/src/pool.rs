//! A pool and its table.

use crate::error::{closed, forked};
use crate::held::Held;
use crate::kept::Kept;
use crate::keys::Keys;
use crate::object::Object;
use crate::options::{choice, options};
use crate::patience;
use crate::process;
use crate::progress::Progress;
use crate::seal_key::{SealKey, Slot, slot};
use crate::stat::{fields, numbers};
use crate::unsynced::{self, Opened};
use indelible::{BadKeep, CreateOptions, ErrorKind, Keep, Stat};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const PAGE: u64 = 4096;

/// Ranges of bytes, and the two sizes compared.
type Compared = (Vec<(u64, u64)>, u64, u64);

/// A pool. `indelible.Pool` adds arrays and dicts.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct Pool {
    pub(crate) pool: Mutex<Option<indelible::Pool>>,
    path: PathBuf,
    process: u32,
    /// For the end of its `with` block.
    pub(crate) kept: Arc<Kept>,
}

impl Pool {
    /// The pool, if it is open and this process's.
    pub(crate) fn get(&self, py: Python<'_>, operation: &str) -> PyResult<indelible::Pool> {
        let what = format!("pool {}", self.path.display());
        if self.process != process::generation() {
            return Err(forked(py, operation, &what));
        }
        self.handle().ok_or_else(|| closed(py, operation, &what))
    }

    /// An object that `f` attaches.
    fn attached(
        slf: &Bound<'_, Self>,
        name: &str,
        f: impl FnMut(&indelible::Pool) -> indelible::Result<Held> + Send,
    ) -> PyResult<Object> {
        let held = slf.get().with(slf.py(), "attach", f)?;
        Ok(Object::new(slf.py(), slf.clone().unbind(), name, held))
    }
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (path, size = None, *, read_only = false, medium = "auto", tracking = "auto", allow_remote = false, wait = None, memory_limit = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        size: Option<u64>,
        read_only: bool,
        medium: &str,
        tracking: &str,
        allow_remote: bool,
        wait: Option<f64>,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let mut options = options(read_only, medium, tracking, allow_remote, wait)?;
        if let Some(bytes) = memory_limit {
            options = options.memory_limit(bytes);
        }
        let pool = patience::in_slices(py, || match size {
            Some(size) => options.open_or_format(&path, size),
            None => options.open(&path),
        })?;
        Ok(Pool {
            path: pool.path().to_owned(),
            pool: Mutex::new(Some(pool)),
            process: process::generation(),
            kept: Arc::default(),
        })
    }

    /// Path of the pool.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Random identity of the pool, 16 bytes.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, "inspect", |pool| Ok(pool.id()))?))
    }

    /// Kind of medium: "file", "memory", "dax" or "devdax".
    #[getter]
    fn medium(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, "inspect", |pool| Ok(pool.medium().word()))
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.get(py, "inspect").is_err()
    }

    /// The pool in numbers.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.with(py, "inspect", indelible::Pool::info)?;
        numbers(py, &info)
    }

    fn _list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all: Vec<Stat> = self.with(py, "list", |pool| pool.list().collect())?;
        all.iter().map(|stat| fields(py, stat)).collect()
    }

    fn _stat<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        fields(py, &self.with(py, "inspect", |pool| pool.stat(name))?)
    }

    /// Creates an object of `size` bytes, all zero. A volatile one is worth nothing once the
    /// machine was started anew: after that an attach is VolatileGone, and a new object takes its
    /// place. With a seal key, all that is in the pool of the object is encrypted and
    /// authenticated. A position-independent one holds nothing that depends on its addresses:
    /// copy_to and move_to give it others as it is.
    #[pyo3(signature = (name, size, *, key = None, sparse = false, reach = 0, volatile = false, position_independent = false, seal = None, label = ""))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn create(
        &self,
        py: Python<'_>,
        name: &str,
        size: u64,
        key: Option<&[u8]>,
        sparse: bool,
        reach: u64,
        volatile: bool,
        position_independent: bool,
        seal: Option<&Bound<'_, SealKey>>,
        label: &str,
    ) -> PyResult<()> {
        let options = CreateOptions::new(size).sparse(sparse).reach(reach).volatile(volatile);
        let mut options = options.position_independent(position_independent).key(key.unwrap_or_default());
        if let Some(seal) = seal {
            options = options.sealed(&seal.get().key, label);
        }
        self.with(py, "create", |pool| pool.create_with(name, &options))
    }

    /// Destroys a detached object.
    #[pyo3(signature = (name, *, key = None))]
    fn remove(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "remove", |pool| pool.destroy_with_key(name, key.unwrap_or_default()))
    }

    /// Deletes an object, attached or not: its name is free at once, and no process can attach it
    /// any more. Processes with it attached keep it; its space is free once the last detaches.
    #[pyo3(signature = (name, *, key = None))]
    fn delete(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "delete", |pool| pool.delete(name, key.unwrap_or_default()))
    }

    /// Ties an object to another one, which it then outlives: deleted or removed, it goes when the
    /// other one has gone.
    #[pyo3(signature = (name, to, *, key = None))]
    fn tie(&self, py: Python<'_>, name: &str, to: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie(name, to, key.unwrap_or_default()))
    }

    /// Ties an object to this process: deleted or removed meanwhile, it goes when the process ends,
    /// however it ends, and not before. For a pool it ends when the process's last handle of the
    /// pool is closed.
    #[pyo3(signature = (name, *, key = None))]
    fn tie_to_process(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie_to_process(name, key.unwrap_or_default()))
    }

    /// As tie_to_process, to the thread that calls this.
    #[pyo3(signature = (name, *, key = None))]
    fn tie_to_thread(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie_to_thread(name, key.unwrap_or_default()))
    }

    /// Takes a tie back, to an object as `ties` names it; returns whether there was one.
    #[pyo3(signature = (name, to, *, key = None))]
    fn untie(&self, py: Python<'_>, name: &str, to: &str, key: Option<&[u8]>) -> PyResult<bool> {
        self.with(py, "untie", |pool| pool.untie(name, to, key.unwrap_or_default()))
    }

    fn _ties(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(String, bool)>> {
        let ties = self.with(py, "list the ties of", |pool| pool.ties(name))?;
        Ok(ties.into_iter().map(|tie| (tie.name, tie.deleted)).collect())
    }

    /// Makes the pool `size` bytes long, rounded down to whole pages; returns its length. Processes
    /// that have it open use the new space as objects need it. A pool on a device becomes as long
    /// as the device at most; none becomes shorter.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        self.with(py, "grow", |pool| pool.grow(size))
    }

    /// Copies the state of an object's last psync, or a snapshot, to a pool, and tells `progress`.
    #[allow(clippy::too_many_arguments, reason = "the keywords of `copy_to`")]
    fn _copy_to(
        &self,
        py: Python<'_>,
        name: &str,
        other: &Bound<'_, Pool>,
        copy: &str,
        key: Option<&[u8]>,
        rebase: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (to, key) = (other.get().get(py, "copy")?, key.unwrap_or_default());
        let mut progress = Progress::new(progress);
        let copied = |pool: &indelible::Pool| {
            progress.run(|tell| match rebase {
                true => pool.copy_rebased(name, key, &to, copy, tell),
                false => pool.copy_to(name, key, &to, copy, tell),
            })
        };
        self.with(py, "copy", copied)?
    }

    /// Moves a detached object to another pool, and tells `progress`.
    fn _move_to(
        &self,
        py: Python<'_>,
        name: &str,
        other: &Bound<'_, Pool>,
        key: Option<&[u8]>,
        rebase: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (to, key) = (other.get().get(py, "move")?, key.unwrap_or_default());
        let mut progress = Progress::new(progress);
        let move_ = |pool: &indelible::Pool| {
            progress.run(|tell| match rebase {
                true => pool.move_rebased(name, key, &to, tell),
                false => pool.move_to(name, key, &to, tell),
            })
        };
        self.with(py, "move", move_)?
    }

    /// Declares whether a detached object is free of its own addresses. Nothing checks that.
    #[pyo3(signature = (name, is_, *, key = None))]
    fn set_position_independent(
        &self,
        py: Python<'_>,
        name: &str,
        is_: bool,
        key: Option<&[u8]>,
    ) -> PyResult<()> {
        self.with(py, "change", |pool| pool.set_position_independent(name, key.unwrap_or_default(), is_))
    }

    /// The key slots in use of a sealed object, attached or not. Needs no seal key.
    fn _key_slots(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<Vec<Slot>> {
        let slots =
            self.with(py, "list the keys of", |pool| pool.key_slots(name, key.unwrap_or_default()))?;
        Ok(slots.into_iter().map(slot).collect())
    }

    /// Lets another key open a detached sealed object; returns the number of its slot.
    #[pyo3(signature = (name, new, *, seal, key = None, label = ""))]
    fn add_key(
        &self,
        py: Python<'_>,
        name: &str,
        new: &Bound<'_, SealKey>,
        seal: &Bound<'_, SealKey>,
        key: Option<&[u8]>,
        label: &str,
    ) -> PyResult<usize> {
        let (new, seal) = (&new.get().key, &seal.get().key);
        self.with(py, "add a key of", |pool| pool.add_key(name, key.unwrap_or_default(), seal, new, label))
    }

    /// Exchanges the key `seal` of a detached sealed object for `new`, as one step; returns the
    /// number of the slot. Without a `label` it keeps its own.
    #[pyo3(signature = (name, new, *, seal, key = None, label = None))]
    fn change_key(
        &self,
        py: Python<'_>,
        name: &str,
        new: &Bound<'_, SealKey>,
        seal: &Bound<'_, SealKey>,
        key: Option<&[u8]>,
        label: Option<&str>,
    ) -> PyResult<usize> {
        let (new, seal) = (&new.get().key, &seal.get().key);
        let key = key.unwrap_or_default();
        self.with(py, "change a key of", |pool| pool.change_key(name, key, seal, new, label))
    }

    /// Empties a key slot of a detached sealed object, but never the last one.
    #[pyo3(signature = (name, slot, *, seal, key = None))]
    fn remove_key(
        &self,
        py: Python<'_>,
        name: &str,
        slot: usize,
        seal: &Bound<'_, SealKey>,
        key: Option<&[u8]>,
    ) -> PyResult<()> {
        let seal = &seal.get().key;
        self.with(py, "remove a key of", |pool| pool.remove_key(name, key.unwrap_or_default(), seal, slot))
    }

    /// Attaches an object: for reading ("r"), which keeps writers away, or for writing ("r+"); a
    /// sealed one by one of its seal keys.
    #[pyo3(signature = (name, mode = "r+", *, key = None, seal = None))]
    fn attach(
        slf: &Bound<'_, Self>,
        name: &str,
        mode: &str,
        key: Option<&[u8]>,
        seal: Option<&Bound<'_, SealKey>>,
    ) -> PyResult<Object> {
        let writable = choice("mode", &[("r", false), ("r+", true)], mode)?;
        let keys = Keys::new(key, seal);
        if writable
            && let Some(held) = slf.get().kept(slf.py(), name, |held| matches!(held, Held::Writer(_)))?
        {
            return Ok(Object::new(slf.py(), slf.clone().unbind(), name, held));
        }
        Pool::attached(slf, name, |pool| match writable {
            true => keys.attach(pool, name).map(|object| Held::Writer(Box::new(object))),
            false => keys.attach_locked(pool, name).map(Held::Reader),
        })
    }

    /// Attaches the state of an object's last psync, or a snapshot, for reading, beside present and
    /// later writers. A sealed object needs one of its seal keys. `Object.refresh` goes to the
    /// newest psync. Takes a free piece of the pool as large as the object.
    #[pyo3(signature = (name, *, key = None, seal = None))]
    fn attach_snapshot(
        slf: &Bound<'_, Self>,
        name: &str,
        key: Option<&[u8]>,
        seal: Option<&Bound<'_, SealKey>>,
    ) -> PyResult<Object> {
        let keys = Keys::new(key, seal);
        Pool::attached(slf, name, |pool| keys.attach_beside(pool, name).map(Held::Reader))
    }

    /// As `attach_snapshot`, where the kernel likes: for arrays, which have no pointers.
    fn _attach_anywhere(
        slf: &Bound<'_, Self>,
        name: &str,
        key: Option<&[u8]>,
        seal: Option<&Bound<'_, SealKey>>,
    ) -> PyResult<Object> {
        let keys = Keys::new(key, seal);
        Pool::attached(slf, name, |pool| keys.attach_anywhere(pool, name).map(Held::Reader))
    }

    /// Keeps what objects hold, as their last psyncs left them and as of one moment: pairs of names
    /// and names of snapshots.
    fn _snapshot(&self, py: Python<'_>, of: Vec<(String, String)>, key: Option<&[u8]>) -> PyResult<()> {
        let of: Vec<_> = of.iter().map(|(name, snapshot)| (&**name, &**snapshot)).collect();
        self.with(py, "snapshot", |pool| pool.snapshot_all(&of, key.unwrap_or_default()))
    }

    /// Creates an object `copy` that holds what `name`, an object or a snapshot, holds as its last
    /// psync left it.
    ///
    /// It takes no time, for any size, and works while `name` is attached: both share the pages
    /// that neither changes from now on. The copy has the addresses of `name`, so that a process
    /// attaches one of the two at a time. Its key is `new_key`, that of this call without one.
    #[pyo3(signature = (name, copy, *, key = None, new_key = None, read_only = false))]
    fn create_from(
        &self,
        py: Python<'_>,
        name: &str,
        copy: &str,
        key: Option<&[u8]>,
        new_key: Option<&[u8]>,
        read_only: bool,
    ) -> PyResult<()> {
        let options = CreateOptions::new(0).key(new_key.unwrap_or_default()).read_only(read_only);
        self.with(py, "copy", |pool| pool.create_from(name, copy, key.unwrap_or_default(), &options))
    }

    /// Sets a detached object to the bytes and size of its snapshot `snapshot`. The snapshot stays;
    /// data psynced since, and in no other snapshot, is gone. It takes no time, for any size.
    #[pyo3(signature = (name, snapshot, *, key = None))]
    fn rollback(&self, py: Python<'_>, name: &str, snapshot: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "roll back", |pool| pool.rollback(name, snapshot, key.unwrap_or_default()))
    }

    /// Which pages of two objects or snapshots differ, from byte to byte, and the sizes of both.
    fn _diff(&self, py: Python<'_>, older: &str, newer: &str, key: Option<&[u8]>) -> PyResult<Compared> {
        let found = self.with(py, "compare", |pool| pool.diff(older, newer, key.unwrap_or_default()))?;
        let pages = found.pages.into_iter().map(|run| (run.start * PAGE, run.end * PAGE)).collect();
        Ok((pages, found.older_size, found.newer_size))
    }

    /// Destroys snapshots of an object that a retention policy does not keep, and returns their
    /// names: "24h:1h,7d:1d" keeps of those of the last 24 hours one for each hour, and of the
    /// older ones of the last 7 days one for each day. Only snapshots count that are named after
    /// the object and the time, such as "w@2026-11-24T03:00:00Z", as `pmo snapshot` names them; the
    /// newest of them is always kept.
    #[pyo3(signature = (name, keep, *, key = None))]
    fn thin(&self, py: Python<'_>, name: &str, keep: &str, key: Option<&[u8]>) -> PyResult<Vec<String>> {
        let keep: Keep = keep.parse().map_err(|error: BadKeep| PyValueError::new_err(error.to_string()))?;
        self.with(py, "thin the snapshots of", |pool| pool.thin(name, &keep, key.unwrap_or_default()))
    }

    /// Removes remains of deleted snapshots and copies; returns objects removed and bytes copied.
    fn _collect(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<(u64, u64)> {
        let mut progress = Progress::new(progress);
        let done = self.with(py, "collect", |pool| progress.run(|tell| pool.collect(tell)))??;
        Ok((done.removed, done.copied))
    }

    /// Ends the use of the pool by this handle. Attached objects stay so.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)?;
        let lost = py.detach(|| self.kept.lose());
        lost.iter().try_for_each(|what| unsynced::warn(py, what, &Opened::default()))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf.kept.begin();
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !exception.is_none() {
            drop(py.detach(|| self.kept.lose()));
        }
        self.close(py)
    }

    /// Whether there is an object of that name.
    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.with(py, "inspect", |pool| match pool.stat(name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let path = self.path.display();
        if self.closed(py) {
            format!("<indelible.Pool {path}, closed>")
        } else {
            format!("<indelible.Pool {path}>")
        }
    }
}
