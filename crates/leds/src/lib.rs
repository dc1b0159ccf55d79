//! Lowering of extendible structs of C and C++: a source with
//!
//! ```c
//! extendible struct item {
//!     int id;
//!     EXTENSION(1) { int stock; INIT(struct item *it) { it->stock = it->id; } }
//! };
//! ```
//!
//! becomes plain C in which `p->stock` is in a separate block, as with Rust's `#[extendible]`.
//!
//! `token` and `extendible` find the structs; `parse` has libclang parse the rest into `tree`;
//! `rewrite` changes accesses (`access` classifies them, `dominance` finds unneeded checks);
//! `layout` describes the structs; `emit` writes the output; `lock` compares it with released
//! layouts. Places are offsets in the sources: words unknown to C are blanked out for the parser,
//! and functions of initial values are parsed behind the source.

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
