//! The store's tests on simulated media, in one program.
//!
//! Miri runs `interpreted.rs`, a program of its own.

mod check_repair;
mod contract_locks;
mod contract_model;
mod contract_objects;
mod contract_waits;
mod counters;
mod crash_processes;
mod crash_psync;
mod crash_recovery;
mod crash_table;
mod expiry;
mod faults;
mod format;
mod key_devices;
mod lane_headers;
mod latent;
mod length;
mod looks;
mod media_errors;
mod mutants;
#[cfg(feature = "__mutants")]
mod mutants_recovery;
mod regressions;
mod seal_keys;
mod sealing;
mod sealing_changes;
mod shipped_sizes;
mod signing;
mod still;
mod upgrade;
