//! The guard: makes commits on demand durable when the power fails, and when their process dies.
//!
//! Objects on demand ([`indelible::Class::OnDemand`]) are committed to memory that outlives the
//! process. Their processes register with the guard by themselves. The guard
//!
//! - tells each how much may be not durable, so that all can be written in the hold-up time
//!   ([`Budget`]);
//! - asks each to publish when a [`Detector`] reports a power failure, kills silent ones, and
//!   recovers their memory;
//! - recovers a process's memory when it dies.
//!
//! The contract of objects on demand does not depend on it: an absent, slow or lying guard costs
//! time, or the last commits in a power cut.

#![deny(unsafe_code)]

mod budget;
mod client;
mod condition;
mod connection;
pub mod detector;
mod error;
mod events;
mod guard;
mod kernel;
mod note;
mod notify;
mod places;
mod process;
mod protocol;
mod recoveries;
mod report;
mod round;
mod socket;
mod state;
mod writer;

pub use budget::{ASSUMED, Budget};
pub use client::{rehearse, status};
pub use condition::Condition;
pub use detector::{Detector, Watch};
pub use error::GuardError;
pub use guard::{Config, Guard, Stop};
pub use kernel::hold_back_signals;
pub use note::Note;
pub use notify::ready;
pub use recoveries::Recover;
pub use report::{DetectorReport, Outcome, RoundReport, Status, WriterReport, WriterRound};
pub use socket::default_socket;
pub use writer::Departed;
