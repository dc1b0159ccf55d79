//! Code shared by the cut machine and its host.

pub mod commits;
pub mod model;
pub mod program;
