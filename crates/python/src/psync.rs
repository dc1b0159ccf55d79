//! psync of several objects as one step.

use crate::attachment::Attachment;
use crate::dict::Dict;
use crate::error::closed;
use crate::held::Held;
use crate::object::Object;
use crate::patience;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn attachment_of<'a>(of: &'a Bound<'_, PyAny>) -> Option<&'a Arc<Attachment>> {
    match (of.cast::<Object>(), of.cast::<Dict>()) {
        (Ok(object), _) => Some(&object.get().attachment),
        (_, Ok(dict)) => Some(&dict.get().attachment),
        _ => None,
    }
}

/// Makes the stores to all `objects` durable as one step.
#[pyfunction]
#[pyo3(signature = (objects, *, cut = false))]
pub(crate) fn psync_all(py: Python<'_>, objects: Vec<Bound<'_, PyAny>>, cut: bool) -> PyResult<()> {
    // By address: each once, and in one order, against deadlocks.
    let mut found: BTreeMap<usize, Arc<Attachment>> = BTreeMap::new();
    for object in &objects {
        let Some(attachment) = attachment_of(object) else {
            return Err(PyTypeError::new_err(format!("not an attached object: {}", object.repr()?)));
        };
        attachment.check_process(py, "psync")?;
        found.insert(Arc::as_ptr(attachment).addr(), attachment.clone());
    }
    if cut && found.len() > 1 {
        return Err(PyValueError::new_err("a consistent cut is of one object: call psync for each"));
    }
    if cut {
        return found.into_values().try_for_each(|attachment| attachment.psync(py, true));
    }
    let together = || {
        let mut locked: Vec<_> = found.values().map(|attachment| (attachment, attachment.open())).collect();
        let (mut objects, mut heaps) = (Vec::new(), Vec::new());
        for (attachment, held) in &mut locked {
            match held.as_mut().and_then(|held| held.as_mut()) {
                Some(Held::Writer(object)) => objects.push(&mut **object),
                Some(Held::Heap(heap)) => heaps.push(&mut **heap),
                Some(Held::Reader(_) | Held::ReadHeap(_)) => {}
                None => return Ok(Err(attachment.name.clone())),
            }
        }
        indelible::Heap::psync_all(&mut heaps, &mut objects).map(Ok)
    };
    let done = patience::in_slices(py, together)?;
    done.map_err(|name| closed(py, "psync", &format!("object {name:?}")))
}
