//! Code that the machine whose power is cut shares with the one that cuts it.

pub mod commits;
pub mod model;
pub mod program;
