//! Data that survive changes of their types: named differences, reset, conversion, migration in
//! steps, extension. A program of its own, for its many versions of types.

#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "__mutants")]
#[path = "../support/watches.rs"]
mod watches;

mod convert;
mod crash;
mod differences;
mod extensions;
mod extensions_by_address;
mod extensions_crash;
mod extensions_damage;
mod extensions_gate;
mod extensions_histories;
mod extensions_hostile;
mod extensions_verified;
mod heaps;
mod histories;
mod hostile_chains;
mod mutants;
mod record_histories;
mod reset;
mod rounds;
mod same_code;
mod steps;
mod versions;
