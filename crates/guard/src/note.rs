//! Notes of a running guard.

use crate::report::{DetectorReport, RoundReport};
use serde::Serialize;
use std::fmt;

/// A note; as JSON an object with a field `event`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Note {
    /// A process has registered.
    Registered {
        /// Process ID.
        pid: i32,
        /// Path of the pool.
        pool: String,
    },
    /// A process has detached its objects on demand.
    Left {
        /// Process ID.
        pid: i32,
        /// Path of the pool.
        pool: String,
    },
    /// A process died; everything in its memory is durable.
    Recovered {
        /// Process ID.
        pid: i32,
        /// Path of the pool.
        pool: String,
    },
    /// A process died; its memory could not be recovered.
    Lost {
        /// Process ID.
        pid: i32,
        /// Path of the pool.
        pool: String,
        /// The reason.
        why: String,
    },
    /// The guard refused a client.
    Refused {
        /// Process ID.
        pid: i32,
        /// The reason.
        why: String,
    },
    /// A detector's condition changed.
    Detector(DetectorReport),
    /// A round ended.
    Round(RoundReport),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Registered { pid, pool } => write!(f, "process {pid} has objects on demand of {pool}"),
            Note::Left { pid, pool } => {
                write!(f, "process {pid} has no objects on demand of {pool} any more")
            }
            Note::Recovered { pid, pool } => {
                write!(f, "process {pid} is gone: all its commits are in {pool}")
            }
            Note::Lost { pid, pool, why } => {
                write!(
                    f,
                    "process {pid} is gone, and its commits could not be brought to {pool}; the next attach tries again: {why}"
                )
            }
            Note::Refused { pid, why } => write!(f, "process {pid} was sent away: {why}"),
            Note::Detector(DetectorReport { name, condition, why, .. }) => {
                let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                write!(f, "{name} is {condition}{why}")
            }
            Note::Round(round) => {
                let durable =
                    if round.durable { "everything is durable" } else { "NOT everything is durable" };
                let (took, allowed) = (round.microseconds as f64 / 1e3, round.allowed as f64 / 1e3);
                let writers = round.writers.len();
                write!(f, "{}: {durable}, {writers} writers, {took:.3} ms of {allowed:.0} ms", round.cause)
            }
        }
    }
}
