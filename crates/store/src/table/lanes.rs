use crate::error::{Part, Result, StoreError};
use crate::format::lane::Directory;
use crate::format::{LANE_DIRECTORY, LINE};
use crate::space::TableTransaction;

/// Offset of lane `index`'s slot.
#[must_use]
pub fn directory_slot(index: u32) -> u64 {
    LANE_DIRECTORY + u64::from(index) * LINE
}

/// Directory slot of lane `index`; `None`: no space yet.
pub fn directory(table: &TableTransaction<'_>, index: u32) -> Result<Option<Directory>> {
    let found: Directory = table.pages().read(directory_slot(index))?;
    match found.in_use(table.seed(), table.pool_len()) {
        Some(true) => Ok(Some(found)),
        Some(false) => Ok(None),
        None => Err(StoreError::damaged(Part::LaneDirectory, directory_slot(index))),
    }
}

/// Replaces lane `index`'s slot.
pub fn put_directory(table: &mut TableTransaction<'_>, index: u32, value: Directory) -> Result<()> {
    let sealed = value.sealed(table.seed());
    Ok(table.pages_mut().write(directory_slot(index), &sealed)?)
}
