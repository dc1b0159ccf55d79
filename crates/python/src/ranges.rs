//! Objects of page ranges of others.

use crate::pool::Pool;
use indelible::{CreateOptions, PageRange};
use pyo3::prelude::*;

/// Object, first byte, end, place in the new object.
type Of = (String, u64, u64, u64);

/// See `create_from_ranges` in `_snapshots.py`.
#[pyfunction]
pub(crate) fn _create_from_ranges(
    pool: &Bound<'_, Pool>,
    name: &str,
    size: u64,
    ranges: Vec<Of>,
    key: Option<&[u8]>,
    new_key: Option<&[u8]>,
    read_only: bool,
) -> PyResult<()> {
    let options = CreateOptions::new(size).key(new_key.unwrap_or_default()).read_only(read_only);
    let range = |(object, from, end, at): &Of| (object.clone(), *from..*end, *at);
    let ranges: Vec<_> = ranges.iter().map(range).collect();
    pool.get().with(pool.py(), "create", |pool| {
        let of = ranges.iter().map(|(object, bytes, at)| PageRange { object, bytes: bytes.clone(), at: *at });
        pool.create_from_ranges(name, &of.collect::<Vec<_>>(), key.unwrap_or_default(), &options)
    })
}
