use super::{registry, transactions};
use crate::error::{ErrorKind, Result, TransactionError};

/// Begins a transaction on objects of one pool, each given by any address in it: see
/// [`transactions`].
///
/// # Errors
/// `NotAttached`; `ClassMismatch`: one is attached for plain stores and psync; those of
/// [`transaction`](crate::transaction()).
pub fn begin_transaction(objects: &[*const u8]) -> Result<()> {
    const OPERATION: &str = "begin a transaction on";
    transactions::begin(objects).map_err(|error| {
        let plain = |address: &*const u8| registry::find(OPERATION, address.addr()).ok();
        match objects.iter().find_map(plain).filter(|_| error.kind() == ErrorKind::NotAttached) {
            Some(object) => object.error(OPERATION, TransactionError::PsyncObject),
            None => error,
        }
    })
}
