//! Backups of real pools, in folders and streams, and their failures.

mod cost;
mod hostile;
mod hot;
mod incremental;
mod interrupted;
mod leftovers;
mod on_demand;
mod rebase;
mod replaced;
mod round_trip;
mod sealed;
mod support;
mod transfer;
