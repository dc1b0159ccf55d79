//! Open addressing: a key's slot in a table.

use anyhow::Result;
use twox_hash::XxHash3_64;

/// An empty slot's hash.
pub(super) const EMPTY: u64 = 0;
/// A removed key's hash: others may follow.
pub(super) const REMOVED: u64 = 1;
const FIRST: u64 = 16;

/// Avoids hashes of slots without a key.
pub(super) fn hash(seed: u64, key: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, key).max(REMOVED + 1)
}

pub(super) fn has_room(used: u64, room: u64) -> bool {
    used.saturating_add(1).saturating_mul(4) <= room.saturating_mul(3)
}

pub(super) fn room_for(keys: u64) -> u64 {
    (2 * (keys + 1)).next_power_of_two().max(FIRST)
}

/// The order of probing.
pub(super) fn way(hash: u64, room: usize) -> impl Iterator<Item = usize> {
    let first = (hash >> 8).checked_rem(room as u64).unwrap_or(0) as usize;
    (first..room).chain(0..first)
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) at: Option<usize>,
    pub(super) free: Option<usize>,
}

#[inline]
pub(super) fn find(
    hash: u64,
    room: usize,
    hash_of: impl Fn(usize) -> u64,
    mut is_key: impl FnMut(usize) -> Result<bool>,
) -> Result<Found> {
    let mut free = None;
    for slot in way(hash, room) {
        match hash_of(slot) {
            EMPTY => return Ok(Found { at: None, free: free.or(Some(slot)) }),
            REMOVED => free = free.or(Some(slot)),
            other if other == hash && is_key(slot)? => return Ok(Found { at: Some(slot), free }),
            _ => {}
        }
    }
    Ok(Found { at: None, free })
}
