use super::registry::{Mapping, remove};
use super::{shared, transactions};
use crate::error::{Cause, Error, Result};
use indelible_store::store::Store;
use std::sync::PoisonError;

/// Ends an attachment. The bytes become inaccessible; stores that were not psynced are lost.
///
/// # Errors
/// `NotAttached`: no attached object begins at `address`. `Unsuitable`: a view has it attached
/// ([`AttachedView`](crate::AttachedView)).
pub fn detach(address: *const u8) -> Result<()> {
    detach_as(address, false)
}

pub(super) fn detach_as(address: *const u8, by_view: bool) -> Result<()> {
    let key = address.addr();
    match remove(key, by_view) {
        Some(Ok(Some(attachment))) => {
            attachment.close();
            let ended = match &attachment.mapping {
                Mapping::Beside(core) | Mapping::Apart(core) => {
                    core.lock().unwrap_or_else(PoisonError::into_inner).end()
                }
                _ => attachment.core().map_or(Ok(()), |mut core| core.detach()),
            };
            ended.map_err(|cause| attachment.error("detach", cause))
        }
        Some(removed) => removed.map(|_| ()),
        None => {
            let missing = || Err(Error::new("detach", Cause::NotAttached(key)));
            transactions::detach(key).or_else(|| shared::detach(key)).unwrap_or_else(missing)
        }
    }
}

/// Changes the table once per lane. If that fails, the next attach recovers the object.
pub(super) fn detach_of_view(addresses: impl IntoIterator<Item = usize>) {
    let mut writers = Vec::new();
    for address in addresses {
        if let Some(Ok(Some(attachment))) = remove(address, true) {
            attachment.close();
            writers.extend(attachment.core().and_then(|mut core| core.detach_memory()));
        }
    }
    let _ = Store::detach_writers(writers);
}
