//! Tests that start processes, fork or mount file systems. Apart from the others: until `exec` a
//! child has files open that another test closes.
//!
//! A child is this program again, running one hidden test.

mod blocks_on_demand;
mod collections_crash;
mod core_dumps;
mod devices;
mod exposed;
mod failures;
mod fault_log;
mod following;
mod heap_crash;
mod heaps_on_demand;
mod on_demand_deaths;
mod on_demand_origins;
mod page_source;
mod paper;
mod processes;
mod support;
mod ticket_crash;
mod transaction_processes;
mod waits;
