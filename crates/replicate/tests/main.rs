//! Shipping, restoring and ownership, on stores in memory whose every call may fail, on a folder,
//! and on a server that speaks S3.

mod faults;
mod lag;
mod oracle;
mod owners;
mod page;
mod program;
mod restarts;
mod server;
mod stores;
mod support;
