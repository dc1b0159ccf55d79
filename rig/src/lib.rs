//! Code shared by the cut machine and its host.
#![allow(missing_docs, reason = "not published: names tell")]

pub mod commits;
pub mod model;
pub mod program;
