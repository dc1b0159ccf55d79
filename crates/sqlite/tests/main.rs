//! Tests of the VFS: one program, so that it is linked once.

mod attached;
mod bad_input;
mod beside;
mod exceptions;
mod extension;
mod kills;
mod one_process;
mod plain;
mod power_cuts;
mod static_library;
mod support;
mod tickets;
