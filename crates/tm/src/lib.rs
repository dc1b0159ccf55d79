//! The run-time library of GCC's transactional memory: programs compiled with `-fgnu-tm` run their
//! `__transaction_atomic` and `__transaction_relaxed` blocks on the transactional memory of
//! [`indelible_stm`]. It takes the place of libitm: linked before it (`-lpmo-tm`), or by
//! `LD_PRELOAD`.
//!
//! The functions are those of the "Intel Transactional Memory Compiler and Runtime Application
//! Binary Interface", version 1.1, as GCC calls them. [`entry`] is where a block begins, and begins
//! again; [`blocks`] says which blocks run, and ends them; [`barriers`] and [`bytes`] are the
//! accesses of compiled code; the other modules keep the work to undo or to do when a block ends.
//! Nothing here may unwind, panic or keep a lock where a block is run again.
//!
//! # Invariants
//!
//! 1. Compiled code keeps the promises of the interface: addresses that it passes may be accessed
//!    as it says, and memory that blocks of several threads share is accessed in blocks alone
//!    meanwhile.
//! 2. A [`Thread`](blocks::Thread) is used by its own thread alone: its address is the thread's
//!    word of [`entry`]. No reference to it is kept over a call of the program's functions.
//! 3. Where [`again`](blocks::Thread::again) may be called, the frames of this library own nothing.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("libpmo-tm knows the registers of x86-64 alone");

mod actions;
mod allocations;
mod barriers;
mod blocks;
mod bytes;
mod clones;
mod codes;
mod entry;
mod exceptions;
mod fork;
mod heaps;
mod interface;
mod log;
mod mutant;
mod objects;
mod registers;
mod tm_interface;
mod version;
mod weak;
mod words;
