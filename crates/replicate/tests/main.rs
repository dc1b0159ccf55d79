//! Shipping, restoring and ownership, on stores in memory whose every call may fail, and on a
//! folder.

mod faults;
mod oracle;
mod owners;
mod page;
mod support;
