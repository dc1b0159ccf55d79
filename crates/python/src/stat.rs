//! A pool in numbers, and its table's entry of an object, for Python.

use crate::rights::named;
use indelible::{Class, PoolInfo, Stat};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::UNIX_EPOCH;

pub(crate) fn fields<'py>(py: Python<'py>, stat: &Stat) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("name", &stat.name)?;
    fields.set_item("id", named(stat.id))?;
    fields.set_item("size", stat.size)?;
    fields.set_item("address", stat.address)?;
    fields.set_item("reach", stat.reach)?;
    fields.set_item("state", stat.state.letter())?;
    fields.set_item("holder", stat.holder)?;
    fields.set_item("other_readers", stat.other_readers.clone())?;
    fields.set_item("unseen_readers", stat.unseen_readers)?;
    fields.set_item("needs_recovery", stat.needs_recovery)?;
    fields.set_item("living_writer", stat.living_writer)?;
    fields.set_item("read_only", stat.read_only)?;
    fields.set_item("sparse", stat.sparse)?;
    fields.set_item("volatile", stat.volatile)?;
    fields.set_item("gone", stat.gone)?;
    fields.set_item("snapshot", stat.snapshot)?;
    fields.set_item("position_independent", stat.position_independent)?;
    fields.set_item("readable_outside", stat.readable_outside)?;
    fields.set_item("shares", stat.shares)?;
    fields.set_item("sealed", stat.sealed)?;
    fields.set_item("ecc", stat.ecc)?;
    fields.set_item("durability", stat.class.map_or("unknown", Class::name))?;
    fields.set_item("own", stat.own)?;
    fields.set_item("psyncs", stat.psyncs)?;
    let created = stat.created.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    fields.set_item("created", created)?;
    Ok(fields)
}

pub(crate) fn numbers<'py>(py: Python<'py>, info: &PoolInfo) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("label", &info.label)?;
    fields.set_item("version", info.version)?;
    fields.set_item("length", info.length)?;
    fields.set_item("objects", info.objects)?;
    fields.set_item("free", info.free)?;
    fields.set_item("largest_free", info.largest_free)?;
    Ok(fields)
}
