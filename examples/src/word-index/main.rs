//! A word index over folders of text files that survives a kill at any instant.
//!
//! It is one persistent memory object of plain structures and native pointers (`layout`). A build
//! psyncs as it goes, and continues after its last psync; a query attaches the object and follows
//! pointers. `word-index-collections` is the same on collections.

#![deny(unsafe_code)]

mod arena;
mod check;
mod layout;
mod reader;
mod writer;

fn main() -> std::process::ExitCode {
    indelible_examples::run::<writer::Native>()
}
