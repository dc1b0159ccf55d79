//! Addresses in attached objects that mean nothing in the next run: `indelible.audit` says more of
//! where they lie.

use crate::attachment::Attachment;
use crate::dict::{Dict, Place, places};
use crate::error::read_only;
use crate::held::Held;
use crate::object::Object;
use pyo3::prelude::*;

/// Offset, address, place, the address's target, and the key of a dict under which it lies.
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
        let places = if found.is_empty() { None } else { places(held)? };
        let told = found.into_iter().filter_map(|stray| {
            let key = match places.as_ref().map(|places| places.at(base + stray.offset as usize)) {
                Some(Place::Own) => return None,
                Some(Place::Value(key)) => Some(key.to_owned()),
                Some(Place::Elsewhere) | None => None,
            };
            let into = stray.target_words();
            Some((stray.offset, stray.target, stray.place, into, key))
        });
        Ok(Some(told.collect()))
    })?;
    found.ok_or_else(|| read_only(py, "audit", &format!("object {:?}", attachment.name)))
}
