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

/// Ranges of bytes, and both sizes.
type Compared = (Vec<(u64, u64)>, u64, u64);

/// A pool. `indelible.Pool` adds arrays and dicts.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct Pool {
    pub(crate) pool: Mutex<Option<indelible::Pool>>,
    path: PathBuf,
    process: u32,
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

    /// Creates an object of `size` zero bytes. A volatile one lasts until the machine restarts:
    /// then an attach is VolatileGone, and a new object replaces it. With a seal key, its bytes in
    /// the pool are encrypted and authenticated. A position-independent one contains none of its
    /// addresses: copy_to and move_to give it others unchanged.
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

    /// Deletes an object, attached or not: its name is free at once. Attached processes keep it;
    /// its space is free after the last detach.
    #[pyo3(signature = (name, *, key = None))]
    fn delete(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "delete", |pool| pool.delete(name, key.unwrap_or_default()))
    }

    /// Ties an object to another one, which it outlives: deleted or removed, it goes when the other
    /// one does.
    #[pyo3(signature = (name, to, *, key = None))]
    fn tie(&self, py: Python<'_>, name: &str, to: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie(name, to, key.unwrap_or_default()))
    }

    /// Ties an object to this process: deleted or removed, it stays until the process ends, or
    /// closes its last handle of the pool.
    #[pyo3(signature = (name, *, key = None))]
    fn tie_to_process(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie_to_process(name, key.unwrap_or_default()))
    }

    /// As tie_to_process, to the calling thread.
    #[pyo3(signature = (name, *, key = None))]
    fn tie_to_thread(&self, py: Python<'_>, name: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "tie", |pool| pool.tie_to_thread(name, key.unwrap_or_default()))
    }

    /// Removes a tie to an object named as by `ties`; returns whether it existed.
    #[pyo3(signature = (name, to, *, key = None))]
    fn untie(&self, py: Python<'_>, name: &str, to: &str, key: Option<&[u8]>) -> PyResult<bool> {
        self.with(py, "untie", |pool| pool.untie(name, to, key.unwrap_or_default()))
    }

    fn _ties(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(String, bool)>> {
        let ties = self.with(py, "list the ties of", |pool| pool.ties(name))?;
        Ok(ties.into_iter().map(|tie| (tie.name, tie.deleted)).collect())
    }

    /// Makes the pool `size` bytes long, rounded down to whole pages; returns its length. A device
    /// limits its pool; no pool becomes shorter.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        self.with(py, "grow", |pool| pool.grow(size))
    }

    /// Copies an object's last psync, or a snapshot, to a pool.
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

    /// Moves a detached object to another pool.
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

    /// Declares whether a detached object contains its own addresses, unchecked.
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

    /// Adds a key to a detached sealed object; returns its slot's number.
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

    /// Replaces the key `seal` of a detached sealed object by `new`, as one step; returns the
    /// slot's number. By default the label stays.
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

    /// Empties a key slot of a detached sealed object, except the last one.
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

    /// Attaches an object: for reading ("r"), which excludes writers, or for writing ("r+"); a
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

    /// Attaches an object's last psync, or a snapshot, for reading, beside any writers. A sealed
    /// object needs one of its seal keys. `Object.refresh` goes to the newest psync. Takes a free
    /// piece of the pool as large as the object.
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

    /// As `attach_snapshot`, at any address: for arrays, which have no pointers.
    fn _attach_anywhere(
        slf: &Bound<'_, Self>,
        name: &str,
        key: Option<&[u8]>,
        seal: Option<&Bound<'_, SealKey>>,
    ) -> PyResult<Object> {
        let keys = Keys::new(key, seal);
        Pool::attached(slf, name, |pool| keys.attach_anywhere(pool, name).map(Held::Reader))
    }

    /// Makes snapshots of objects' last psyncs, as of one moment: pairs of names and snapshots'
    /// names.
    fn _snapshot(&self, py: Python<'_>, of: Vec<(String, String)>, key: Option<&[u8]>) -> PyResult<()> {
        let of: Vec<_> = of.iter().map(|(name, snapshot)| (&**name, &**snapshot)).collect();
        self.with(py, "snapshot", |pool| pool.snapshot_all(&of, key.unwrap_or_default()))
    }

    /// Creates an object `copy` with the last psynced contents of `name`, an object or a snapshot,
    /// in constant time, also while `name` is attached.
    ///
    /// Both share pages that neither changes. The copy has the addresses of `name`: a process
    /// attaches one of the two at a time. Its key is `new_key`, by default that of this call.
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

    /// Restores a detached object from its snapshot `snapshot`, in constant time. The snapshot
    /// stays; later data in no other snapshot is lost.
    #[pyo3(signature = (name, snapshot, *, key = None))]
    fn rollback(&self, py: Python<'_>, name: &str, snapshot: &str, key: Option<&[u8]>) -> PyResult<()> {
        self.with(py, "roll back", |pool| pool.rollback(name, snapshot, key.unwrap_or_default()))
    }

    /// The pages that differ between two objects or snapshots, as ranges of bytes, and both sizes.
    fn _diff(&self, py: Python<'_>, older: &str, newer: &str, key: Option<&[u8]>) -> PyResult<Compared> {
        let found = self.with(py, "compare", |pool| pool.diff(older, newer, key.unwrap_or_default()))?;
        let pages = found.pages.into_iter().map(|run| (run.start * PAGE, run.end * PAGE)).collect();
        Ok((pages, found.older_size, found.newer_size))
    }

    /// Destroys snapshots of an object that a retention policy does not keep; returns their names.
    /// "24h:1h,7d:1d" keeps one for each hour of the last 24, and of the older ones of the last 7
    /// days one for each day. Only snapshots named after object and time count, such as
    /// "w@2026-11-24T03:00:00Z", as by `pmo snapshot`; the newest is always kept.
    #[pyo3(signature = (name, keep, *, key = None))]
    fn thin(&self, py: Python<'_>, name: &str, keep: &str, key: Option<&[u8]>) -> PyResult<Vec<String>> {
        let keep: Keep = keep.parse().map_err(|error: BadKeep| PyValueError::new_err(error.to_string()))?;
        self.with(py, "thin the snapshots of", |pool| pool.thin(name, &keep, key.unwrap_or_default()))
    }

    /// Removes remains of deleted snapshots and copies; returns the number of removed objects, and
    /// the bytes copied.
    fn _collect(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<(u64, u64)> {
        let mut progress = Progress::new(progress);
        let done = self.with(py, "collect", |pool| progress.run(|tell| pool.collect(tell)))??;
        Ok((done.removed, done.copied))
    }

    /// Ends this handle's use of the pool. Attached objects stay attached.
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
