//! Work on a pool with a computable outcome, shared by campaigns with real processes.

pub(crate) mod journal;
pub(crate) mod program;
pub(crate) mod ring;
pub(crate) mod wire;
pub(crate) mod world;
