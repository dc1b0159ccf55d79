//! The safe half of Indelible.
#![forbid(unsafe_code)]

pub mod medium;
