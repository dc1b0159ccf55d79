//! Attached objects.

mod anchored;
mod attach;
mod attach_options;
mod batch_source;
mod beside;
mod compare;
mod cut;
mod engine;
mod follow;
mod growth;
mod origin;
mod prediction;
mod prefault;
mod reader;
mod sealed;
mod seals;
mod shared;
mod stats;
mod together;
#[cfg(test)]
mod together_tests;
#[cfg(test)]
mod torture;
mod tracked;
mod trust;
mod whole;
mod writer;

pub use crate::dirty::{Beside, Bystanders};
pub(crate) use attach_options::Attach;
pub use attach_options::AttachOptions;
pub use reader::ReadObject;
pub use seals::BrokenPage;
pub use shared::Shared;
pub use stats::PsyncStats;
pub use writer::{Object, psync_all};

pub(crate) use attach::{attach_core, attach_cores, attach_reader};
pub(crate) use engine::Core;
pub(crate) use prefault::prefault;
pub(crate) use reader::ReadCore;
pub(crate) use together::{cut_cores, psync_cores};
pub(crate) use tracked::Finding;
pub(crate) use whole::read_whole;
