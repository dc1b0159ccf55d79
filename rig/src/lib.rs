//! What the machine whose power is cut and the one that cuts it have in common.

pub mod model;
pub mod program;
