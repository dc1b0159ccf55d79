//! The tests of the transactional memory.

mod checked;
mod contract;
mod detectors;
mod ecc;
mod history;
mod in_place;
mod model;
#[cfg(feature = "__mutants")]
mod mutants;
mod support;
