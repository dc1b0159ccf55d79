//! Enforced rules: layers, circles, unsafe code, commits, sizes of files, words, documentation of
//! packages, rules of the protocol.

mod circles;
mod code;
mod layers;
mod locks;
mod protocol;
mod published;
mod sources;
mod tests;
mod words;
