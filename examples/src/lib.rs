//! Shared code: of the word indexes, and the tree and the store, of far pointers and of plain
//! files.
#![allow(missing_docs, reason = "not published: names tell")]
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
