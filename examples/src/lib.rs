//! Code that the word indexes share, however they are made: texts, commands, progress, sudden death.

#![forbid(unsafe_code)]

mod commands;
mod corpus;
mod index;
mod place;
mod progress;
mod text;

pub use commands::run;
pub use index::{Damage, File, Fuse, Index, Reader, Totals, Word, ensure};
pub use text::{Digest, Version, hash};
