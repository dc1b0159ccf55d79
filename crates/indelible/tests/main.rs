//! The contract, in one program, which saves linking.
//!
//! Programs of their own: `children.rs` starts and forks processes, `many_pools.rs` takes a
//! thousand ranges of addresses, `forbidden.rs` is a crate without unsafe code, `interpreted.rs` is
//! run whole by Miri.

#[cfg(feature = "__mutants")]
#[path = "support/watches.rs"]
mod watches;

mod anchors;
mod attach_options;
mod audit;
mod audit_pointers;
mod beside;
mod blank_objects;
mod collections;
mod collections_bytes;
mod collections_cuts;
mod collections_enums;
mod collections_explicit;
mod collections_format;
mod collections_hostile;
mod collections_keys;
mod collections_model;
mod collections_padding;
mod collections_panics;
mod collections_scan;
mod collections_shared;
mod collections_std;
mod collections_threads;
mod contents;
mod contract;
mod copies;
mod ecc;
mod ecc_on_demand;
mod evicted;
mod explicit;
mod forged;
mod found_stores;
mod growth;
mod guarded;
mod heap;
mod heap_addresses;
mod heap_format;
mod heap_hostile;
mod heap_model;
mod heap_moves;
mod heap_threads;
mod import;
mod kept;
mod key_sources;
mod large;
mod lifetimes;
mod many_snapshots;
mod on_demand;
mod on_demand_answers;
mod own_pages;
mod pool_growth;
mod ranges;
mod raw_heap;
mod readable;
mod rebase;
mod records;
mod reformatted;
mod revert;
mod rollback;
mod root_blocks;
mod sandboxed;
mod sealed_changes;
mod sealed_copies;
mod sealed_faults;
mod sealed_names;
mod sealing;
mod signing;
mod statics;
mod stores;
mod stray;
mod support;
mod tasks;
mod thinning;
mod tickets;
mod transaction_histories;
mod transactional_collections;
mod transactional_growth;
mod transactional_heap;
mod transactional_heap_crash;
mod transactions;
mod transfer;
mod trust;
