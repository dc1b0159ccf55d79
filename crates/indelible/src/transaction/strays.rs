//! Messages about deadly accesses, where the program asks for them.

use crate::error::{Error, Result, TransactionError};
use crate::mapping::strays;

/// Makes this process report, on its standard error, the object of a deadly access: its name, the
/// offset, the reason and the remedy. Such accesses are a load or store outside of a transaction,
/// in an object for transactions alone; a store to an object attached for reading; an access to a
/// detached object. One line, before the program's or a debugger's own reaction to the SIGSEGV.
///
/// `PMO_EXPLAIN_FAULTS=1` in the environment does the same for a program that does not call it.
///
/// # Errors
/// `Io`: the system takes no handler for SIGSEGV.
pub fn explain_faults() -> Result<()> {
    strays::explain_faults().map_err(|error| Error::new("explain faults", TransactionError::Handler(error)))
}
