//! A security context opened for changes.

use super::open_or_make;
use crate::handle::Handle;
use crate::kept::Dropped;
use crate::pool::Pool;
use crate::rights::{asked, named, word};
use crate::unsynced::Unsynced;
use indelible::{RuleKind, Rules};
use pyo3::prelude::*;

/// A security context. `indelible.SecurityContext` has its rules as Python values.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct SecurityContext {
    handle: Handle<indelible::SecurityContext>,
    unsynced: Unsynced,
    pool: Py<Pool>,
    name: String,
    room: usize,
}

/// Default rights; of each rule its kind, its object's name, its rights.
type Said = (Option<&'static str>, Vec<(&'static str, String, Option<&'static str>)>);

fn said(rules: Rules) -> Said {
    let kind = |kind: RuleKind| match kind {
        RuleKind::Capability => "allow",
        RuleKind::Mask => "mask",
        RuleKind::Delegation => "delegate",
        _ => "unknown",
    };
    let all = rules.rules.into_iter();
    let all = all.map(|rule| (kind(rule.kind), named(rule.target), rule.rights.map(word))).collect();
    (rules.default.map(word), all)
}

/// See `Pool.context_rules`.
#[pyfunction]
pub(crate) fn _read_context(pool: &Bound<'_, Pool>, name: &str) -> PyResult<Said> {
    Ok(said(pool.get().with(pool.py(), "read", |pool| indelible::SecurityContext::read(pool, name))?))
}

/// See `Pool.rights`.
#[pyfunction]
pub(crate) fn _rights(
    pool: &Bound<'_, Pool>,
    object: &str,
    contexts: Vec<String>,
) -> PyResult<Option<&'static str>> {
    let rights = |pool: &indelible::Pool| indelible::SecurityContext::rights(pool, &contexts, object);
    Ok(pool.get().with(pool.py(), "look for rights to", rights)?.map(word))
}

impl SecurityContext {
    fn change<R: Send>(
        &self,
        py: Python<'_>,
        mut f: impl FnMut(&mut indelible::SecurityContext) -> indelible::Result<R> + Send,
    ) -> PyResult<R> {
        self.handle.with(py, "change", |context| {
            let changed = f(context)?;
            self.unsynced.set(true);
            Ok(changed)
        })
    }
}

#[pymethods]
impl SecurityContext {
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: &str, entries: Option<usize>) -> PyResult<Self> {
        let context = pool.get().with(pool.py(), "open", |pool| {
            let make = entries.map(|entries| move || indelible::SecurityContext::create(pool, name, entries));
            open_or_make(|| indelible::SecurityContext::open(pool, name), make)
        })?;
        let what = format!("security context {name:?}");
        Ok(SecurityContext {
            unsynced: Unsynced::new(pool.py(), &what, &pool.get().kept),
            room: context.room(),
            handle: Handle::new(what, context),
            pool: pool.clone().unbind(),
            name: name.to_owned(),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Number of possible entries.
    #[getter]
    fn room(&self) -> usize {
        self.room
    }

    /// States the rights to all objects without an `allow`: "r", "rw", None.
    fn set_default(&self, py: Python<'_>, rights: Option<&str>) -> PyResult<()> {
        let rights = asked(rights)?;
        self.change(py, |context| context.set_default(rights))
    }

    /// States the rights to an object: "r", "rw", or None for none, whatever the default.
    ///
    /// An object of another pool is named by its ID: "id:" and 32 hexadecimal digits.
    fn allow(&self, py: Python<'_>, object: &str, rights: Option<&str>) -> PyResult<()> {
        let rights = asked(rights)?;
        self.change(py, |context| context.allow(object, rights))
    }

    /// Limits the context's rights to an object, also delegated ones.
    fn mask(&self, py: Python<'_>, object: &str, rights: Option<&str>) -> PyResult<()> {
        let rights = asked(rights)?;
        self.change(py, |context| context.mask(object, rights))
    }

    /// Adds another security context's rights, up to these.
    fn delegate(&self, py: Python<'_>, context: &str, rights: Option<&str>) -> PyResult<()> {
        let rights = asked(rights)?;
        self.change(py, |own| own.delegate(context, rights))
    }

    /// Removes all entries about an object, which may be gone if named by its ID; returns their
    /// number.
    fn clear(&self, py: Python<'_>, target: &str) -> PyResult<usize> {
        self.change(py, |context| context.clear(target))
    }

    fn _rules(&self, py: Python<'_>) -> PyResult<Said> {
        Ok(said(self.handle.with(py, "inspect", |context| context.rules())?))
    }

    /// Makes the changes durable as one step.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "psync", |context| {
            context.psync()?;
            self.unsynced.set(false);
            Ok(())
        })
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Closes it; unpsynced changes are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())?;
        self.unsynced.lost(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes; on an exception nothing is psynced.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match exception.is_none() {
            true if !self.closed() => self.psync(py)?,
            true => {}
            false => self.unsynced.set(false),
        }
        self.close(py)
    }
}

impl Dropped for indelible::SecurityContext {
    fn psync(&mut self) -> indelible::Result<()> {
        indelible::SecurityContext::psync(self)
    }
}

impl Drop for SecurityContext {
    fn drop(&mut self) {
        let handle = &self.handle;
        self.unsynced.dropped(|| handle.take());
    }
}
