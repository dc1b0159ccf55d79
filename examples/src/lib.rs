//! Code that several programs share: of the word indexes, however they are made, texts, commands,
//! progress and sudden death; the tree and the store that are made of far pointers, and on plain
//! files beside them.

#![deny(unsafe_code)]

mod commands;
mod corpus;
mod files;
mod index;
pub mod kv;
mod place;
mod progress;
mod text;
pub mod tree;

pub use commands::run;
pub use index::{Damage, File, Fuse, Index, Reader, Totals, Word, ensure};
pub use text::{Digest, Version, hash};
