//! Messages about deadly accesses, on request.

use crate::error::{Error, Result, TransactionError};
use crate::mapping::strays;

/// Makes this process report deadly accesses to objects on its standard error, with the object's
/// name, the offset, the reason and the remedy; as does `PMO_EXPLAIN_FAULTS=1` in the environment.
///
/// # Errors
/// `Io`: the system refuses a handler for SIGSEGV.
pub fn explain_faults() -> Result<()> {
    strays::explain_faults().map_err(|error| Error::new("explain faults", TransactionError::Handler(error)))
}
