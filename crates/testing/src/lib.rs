//! Simulated media for Indelible: what may be left after a crash, enumerated; programs against a
//! model.
//!
//! - [`SimMedium`] stands in for a file or a device; its fault model is in [`sim`].
//! - [`for_each_crash`] takes samples of the images of power cuts, all images where there are few;
//!   [`for_each_class`] covers all of them, taking together those that its judge cannot tell apart
//!   (`sim/classes.rs` proves that nothing is lost).
//! - [`oracle`] has programs of several processes, random ones and short ones, and the model they
//!   are held against; [`scenario`] has the judges.
//!
//! [`for_each_crash`] records the effects of a piece of code on one and shows every state a power
//! cut could have left to a closure that checks the contract:
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
pub use tpm::EmulatedTpm;

/// Reports on the terminal that a test could not do its work here: past the test harness, which
/// keeps the output of passing tests to itself. Once in a process.
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
