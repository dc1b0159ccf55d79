//! The guard with processes that have objects on demand. A writer is this program, running one
//! hidden test.

mod clients;
mod deaths;
mod identity;
mod power;
mod support;
mod ups;
