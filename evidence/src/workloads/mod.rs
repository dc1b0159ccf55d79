//! Work on a pool whose outcome can be worked out: what the campaigns with real processes share.

pub(crate) mod journal;
pub(crate) mod program;
pub(crate) mod ring;
pub(crate) mod wire;
pub(crate) mod world;
