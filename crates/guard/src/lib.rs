//! The guard: it has commits on demand become durable when the power fails, and when the process
//! that made them dies.
//!
//! Objects on demand ([`indelible::Class::OnDemand`]) are committed to memory that outlives the
//! process, and become durable now and then. A process that has some registers with the guard by
//! itself. The guard
//!
//! - tells it how much may be not durable at a time, so that all of it can be written in the time
//!   that the power supply gives ([`Budget`]);
//! - asks it to publish when a [`Detector`] says that the power fails, kills it if it does not
//!   answer in time, and recovers its memory then;
//! - recovers its memory when it dies.
//!
//! Nothing that the contract of objects on demand promises depends on it: a guard that is absent,
//! dead, slow, or lies, costs time, or the commits of the last interval in a power cut.
//!
//! | module | owns |
//! |---|---|
//! | `detector` | detectors, each with a thread |
//! | `budget` | the bytes that may be not durable |
//! | `protocol` | lines between writers and the guard |
//! | `socket` | the socket, and the lock that makes the guard the only one there |
//! | `connection` | bytes of a client in both directions, bounded |
//! | `process` | the process that made a connection |
//! | `writer` | a process that is registered |
//! | `round` | having all writers publish once |
//! | `recoveries` | bringing to pools what processes left |
//! | `places` | the clients that there is room for, by user |
//! | `state` | clients, power, the round: what happens when something happens |
//! | `guard` | the loop that waits for things to happen |
//! | `events`, `note` | things that threads tell the loop, and the loop people |
//! | `report` | the state, for people and programs |
//! | `client` | asking a guard for its state |
//! | `kernel` | calls of the kernel: the only unsafe code |

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
