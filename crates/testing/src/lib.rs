//! Simulated media for Indelible: enumerates crash images; runs programs against a model.
//!
//! - [`SimMedium`] simulates a file or a device; [`sim`] states its fault model.
//! - [`for_each_crash`] samples the images of power cuts, or takes all of few; [`for_each_class`]
//!   covers all, merging those that its judge cannot tell apart (proof in `sim/classes.rs`).
//! - [`oracle`] has random and short programs of several processes, and their model; [`scenario`]
//!   has the judges.
//!
//! [`for_each_crash`] records the effects of code on a medium and shows each possible image to a
//! closure that checks the contract:
//!
//! ```
//! use indelible_store::medium::Medium;
//! use indelible_testing::{Limits, SimConfig, SimMedium, for_each_crash};
//!
//! let medium = SimMedium::new(4096, SimConfig::default());
//! let record = |m: &SimMedium| {
//!     m.write(0, &[7; 64]).unwrap();
//!     m.barrier().unwrap();
//!     m.mark(1); // from here on the write may not be lost
//! };
//! let report = for_each_crash(&medium, record, |image| {
//!     let mut byte = [0];
//!     image.medium().read(0, &mut byte).map_err(|e| e.to_string())?;
//!     match (image.last_mark(), byte[0]) {
//!         (None, 0 | 7) | (Some(1), 7) => Ok(()),
//!         (mark, byte) => Err(format!("{byte} after mark {mark:?}")),
//!     }
//! }, &Limits::default()).unwrap();
//! assert_eq!(report.distinct, 3);
//! ```
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "for tests alone: names tell")]

mod cargo;
mod codewords;
mod crash;
mod hooked;
pub mod hostile;
mod independent;
pub mod oracle;
pub mod page;
mod poly1305;
pub mod pool;
pub mod rules;
pub mod scenario;
pub mod sealed;
mod seed;
pub mod sim;
mod sparse;
pub mod tamper;
mod tpm;

pub use cargo::cargo;
pub use codewords::codewords;
pub use crash::{CrashFailure, CrashReport, for_each_class, for_each_crash};
pub use hooked::{BeforeRead, Hook, Hooked};
pub use seed::Seeded;
pub use sim::{
    Choice, ClassLimits, ClassReport, CrashImage, CrashImages, Cut, Discard, Event, EventKind, Fault, Limits,
    OpKind, SMALL, SimConfig, SimMedium, TearUnit,
};
pub use sparse::sparse;
pub use tpm::EmulatedTpm;

/// Reports once per process, on the terminal, that a test could not run here.
pub fn not_tested(what: impl std::fmt::Display) {
    use std::io::Write;
    static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let line = format!("NOT TESTED: {what}");
    let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !said.contains(&line) {
        let _ = writeln!(std::io::stderr(), "{line}");
        said.push(line);
    }
}
