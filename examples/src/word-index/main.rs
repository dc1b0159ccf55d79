//! A word index over folders of text files that survives being killed at any instant.
//!
//! All of it is one persistent memory object full of plain structures and native pointers
//! (`layout`). Building it psyncs as it goes; a build that dies continues after its last psync. A
//! query attaches the object and follows the pointers. `word-index-collections` is the same on
//! collections.

#![deny(unsafe_code)]

mod arena;
mod check;
mod layout;
mod reader;
mod writer;

fn main() -> std::process::ExitCode {
    indelible_examples::run::<writer::Native>()
}
