//! `word-index` on collections: maps, vectors and strings in an object's heap.

#![deny(unsafe_code)]

mod check;
mod reader;
mod words;
mod writer;

fn main() -> std::process::ExitCode {
    indelible_examples::run::<writer::Collected>()
}
