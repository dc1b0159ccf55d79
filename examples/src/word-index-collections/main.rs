//! The word index of `word-index`, on collections: maps, vectors and strings that live in the heap
//! of an object.

#![deny(unsafe_code)]

mod check;
mod reader;
mod words;
mod writer;

fn main() -> std::process::ExitCode {
    indelible_examples::run::<writer::Collected>()
}
