//! The tests of the transactional memory, one program.

mod checked;
mod contract;
mod detectors;
mod ecc;
mod history;
mod model;
#[cfg(feature = "__mutants")]
mod mutants;
mod support;
