//! Addresses in attached objects that mean nothing in the next run: `indelible.audit` says more of where they lie.

use crate::attachment::Attachment;
use crate::dict::Dict;
use crate::error::read_only;
use crate::held::Held;
use crate::object::Object;
use pyo3::prelude::*;

/// Offset, address, place, what the address leads into, and the key of a dict under which it lies.
type Found = (u64, u64, String, String, Option<String>);

/// See `indelible.audit`.
#[pyfunction]
pub(crate) fn _audit(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<Found>> {
    match object.cast::<Dict>() {
        Ok(dict) => stray(py, &dict.get().attachment),
        Err(_) => stray(py, &object.cast::<Object>()?.get().attachment),
    }
}

fn stray(py: Python<'_>, attachment: &Attachment) -> PyResult<Vec<Found>> {
    attachment.check_process(py, "audit")?;
    let found = attachment.with(py, "audit", |held| {
        let found = match held {
            Held::Writer(object) => object.stray_pointers()?,
            Held::Heap(heap) => heap.stray_pointers()?,
            Held::Reader(_) | Held::ReadHeap(_) => return Ok(None),
        };
        let base = held.base().addr();
        let places = if found.is_empty() { None } else { crate::dict::places(held)? };
        let key = |offset: u64| places.as_ref()?.key(base + offset as usize).map(str::to_owned);
        let told = found.into_iter().map(|stray| {
            let into = stray.target_words();
            (stray.offset, stray.target, stray.place, into, key(stray.offset))
        });
        Ok(Some(told.collect()))
    })?;
    found.ok_or_else(|| read_only(py, "audit", &format!("object {:?}", attachment.name)))
}
