//! Pointers from object to object: the table of other objects, spaces, names, IDs, streams of
//! objects that refer to each other.

#[path = "../retention/rounds.rs"]
mod rounds;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "__mutants")]
#[path = "../support/watches.rs"]
mod watches;

mod closure;
mod collections;
mod contexts;
mod crash;
mod entries;
mod graph;
mod hostile;
mod ids;
mod mutants;
mod names;
mod references;
mod spaces;
mod stores;
