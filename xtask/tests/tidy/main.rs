//! Rules that can be enforced, enforced: layers, circles, unsafe code, commits, sizes of files, words.

mod circles;
mod code;
mod layers;
mod sources;
mod tests;
mod words;
