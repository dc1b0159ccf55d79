//! Tests of the VFS: one program, so that it is linked once.

mod attached;
mod beside;
mod extension;
mod kills;
mod one_process;
mod power_cuts;
mod support;
