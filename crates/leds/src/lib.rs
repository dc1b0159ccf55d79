//! Lowering of extendible structs of C and C++: a source with
//!
//! ```c
//! extendible struct item {
//!     int id;
//!     EXTENSION(1) { int stock; INIT(struct item *it) { it->stock = it->id; } }
//! };
//! ```
//!
//! becomes plain C in which `p->stock` is found in a block of its own, as Rust's `#[extendible]`
//! has it.
//!
//! `token` and `extendible` find the structs; `parse` has libclang understand the rest, which
//! `tree` keeps; `rewrite` changes accesses (`access` says how one is meant, `dominance` which
//! checks it does not need); `layout` describes the structs; `emit` puts the output together;
//! `lock` compares it with the layouts of earlier releases. Places are offsets in the sources:
//! words that C does not know are blanked out for the parser, and functions that compute initial
//! values are parsed behind the source.

#![forbid(unsafe_code)]

mod access;
mod bytes;
mod copies;
mod dominance;
mod edit;
mod emit;
mod extendible;
mod headers;
mod initial;
mod layout;
mod lock;
mod lower;
mod parse;
mod problem;
mod program;
mod rewrite;
mod templates;
mod token;
mod tree;

pub use lock::Lock;
pub use lower::{Lowered, Request, lower};
pub use parse::Compiler;
pub use problem::Problem;
