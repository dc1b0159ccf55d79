//! Messages about deadly accesses, on request.

use crate::error::{Error, Result, TransactionError};
use crate::mapping::strays;

/// Makes this process report deadly accesses on its standard error: the object's name, the offset,
/// the reason and the remedy, in one line before other reactions to the SIGSEGV. It covers accesses
/// outside of transactions to objects for transactions alone, stores to objects attached for
/// reading, and accesses to detached objects.
///
/// `PMO_EXPLAIN_FAULTS=1` in the environment does the same.
///
/// # Errors
/// `Io`: the system takes no handler for SIGSEGV.
pub fn explain_faults() -> Result<()> {
    strays::explain_faults().map_err(|error| Error::new("explain faults", TransactionError::Handler(error)))
}
