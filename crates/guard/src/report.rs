//! The state of the guard, for people and programs: it travels as one line of JSON.

use serde::{Deserialize, Serialize};

/// A detector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorReport {
    /// Its name, with the device, file or server that it watches.
    pub name: String,
    /// `fine`, `failing`, or `blind`: it cannot tell.
    pub condition: String,
    /// Why it cannot tell.
    pub why: Option<String>,
    /// Milliseconds, at most, from a failure until the guard is told.
    pub latency_ms: u64,
}

/// A process that is registered, with one of its pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterReport {
    /// Process ID.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Path of the pool.
    pub pool: String,
    /// Bytes that may be not durable; more are made durable at once.
    pub budget: u64,
    /// Bytes that its epochs wrote in a second, if there were any.
    pub bytes_per_second: Option<u64>,
}

/// The end that a round had for a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It made its commits durable.
    Published,
    /// It could not.
    Failed,
    /// It did not answer in time, and was killed; its commits were recovered.
    Recovered,
    /// They could not be recovered.
    Lost,
    /// It did not answer in time. A rehearsal kills no writer.
    Silent,
}

/// A writer in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterRound {
    /// Process ID.
    pub pid: i32,
    /// Path of the pool.
    pub pool: String,
    /// The end of it.
    pub outcome: Outcome,
    /// Bytes that became durable, as the writer says.
    pub bytes: u64,
    /// Microseconds since the round began, by the guard's clock.
    pub microseconds: u64,
    /// Why it failed.
    pub why: Option<String>,
}

/// All writers published once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The detector, or `rehearsal`.
    pub cause: String,
    /// Whether everything became durable.
    pub durable: bool,
    /// Microseconds until it had ended.
    pub microseconds: u64,
    /// Microseconds that there were.
    pub allowed: u64,
    /// The writers.
    pub writers: Vec<WriterRound>,
}

/// The guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process ID.
    pub pid: u32,
    /// Whether the power fails now.
    pub failing: bool,
    /// Detectors.
    pub detectors: Vec<DetectorReport>,
    /// Processes that are registered.
    pub writers: Vec<WriterReport>,
    /// Memory of processes that died, which was recovered, since the guard began.
    pub recovered: u64,
    /// Such memory that could not be.
    pub lost: u64,
    /// The last round.
    pub last: Option<RoundReport>,
}
