//! Indelible.

#![deny(unsafe_code)]
// The layers are built bottom-up: what a lower one offers may have no user yet.
#![allow(dead_code, unused_imports)]

mod dirty;
mod fault;
mod mapping;
mod media;
mod shadow;
mod sys;
