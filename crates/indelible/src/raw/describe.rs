use super::registry::find;
use crate::error::Result;
use crate::pool::Tracking;
use std::ptr::NonNull;

/// An attached object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attached {
    /// Its name.
    pub name: String,
    /// Its first byte.
    pub base: NonNull<u8>,
    /// Its size in bytes.
    pub len: usize,
    /// Whether it may be stored to.
    pub writable: bool,
    /// Psyncs with changes over its life; 0 if attached for reading.
    pub psyncs: u64,
    /// Bytes of lane that the attach replayed; 0 if the last writer detached.
    pub recovered_bytes: u64,
    /// How stores are found; `Auto` if attached for reading.
    pub tracking: Tracking,
}

/// The attached object that contains `address`.
pub fn attached(address: *const u8) -> Result<Attached> {
    let found = find("look up", address.addr())?;
    let core = found.core();
    let writer = core.as_ref().and_then(|core| core.writer().ok());
    let rung = core.as_ref().and_then(|core| core.shadow().ok()?.rung());
    Ok(Attached {
        tracking: rung.map_or(Tracking::Auto, Tracking::of),
        name: found.name.clone(),
        base: found.base,
        len: found.len(),
        writable: core.is_some(),
        psyncs: writer.map_or(0, |writer| writer.psyncs()),
        recovered_bytes: writer.map_or(0, |writer| writer.recovered().lane_bytes),
    })
}
