//! The guard's state, as one line of JSON.

use serde::{Deserialize, Serialize};

/// A detector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorReport {
    /// Its name, with the watched device, file or server.
    pub name: String,
    /// `fine`, `failing` or `blind`.
    pub condition: String,
    /// Why it is blind.
    pub why: Option<String>,
    /// Most milliseconds from a failure to its report.
    pub latency_ms: u64,
}

/// A registered process with one of its pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterReport {
    /// Process ID.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Path of the pool.
    pub pool: String,
    /// Bytes that may be not durable.
    pub budget: u64,
    /// Bytes per second of its epochs, if any.
    pub bytes_per_second: Option<u64>,
}

/// A writer's outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It made its commits durable.
    Published,
    /// It could not publish.
    Failed,
    /// Killed without a timely answer; its commits were recovered.
    Recovered,
    /// Its commits could not be recovered.
    Lost,
    /// No timely answer in a rehearsal, which kills no writer.
    Silent,
}

/// A writer in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterRound {
    /// Process ID.
    pub pid: i32,
    /// Path of the pool.
    pub pool: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Durable bytes, as reported by the writer.
    pub bytes: u64,
    /// Microseconds from the round's begin, by the guard's clock.
    pub microseconds: u64,
    /// Why it failed.
    pub why: Option<String>,
}

/// A round in which all writers publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The detector, or `rehearsal`.
    pub cause: String,
    /// Whether everything became durable.
    pub durable: bool,
    /// Microseconds until its end.
    pub microseconds: u64,
    /// Allowed microseconds.
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
    /// Registered processes.
    pub writers: Vec<WriterReport>,
    /// Recovered memories of dead processes since the start.
    pub recovered: u64,
    /// Memories that could not be recovered.
    pub lost: u64,
    /// The last round.
    pub last: Option<RoundReport>,
}
