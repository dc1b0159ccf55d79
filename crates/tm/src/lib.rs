//! The run-time library for GCC's `-fgnu-tm`: runs `__transaction_atomic` and
//! `__transaction_relaxed` blocks on the transactional memory of [`indelible_stm`]. It replaces
//! libitm: linked before it (`-lpmo-tm`), or by `LD_PRELOAD`.
//!
//! The functions follow the "Intel Transactional Memory Compiler and Runtime Application Binary
//! Interface", version 1.1, as GCC uses it. A block begins in [`entry`]; [`blocks`] runs and ends
//! it; [`barriers`] and [`bytes`] are compiled code's accesses. Where a block is rerun, nothing may
//! unwind, panic or hold a lock.
//!
//! # Invariants
//!
//! 1. Compiled code keeps the interface's promises: addresses that it passes are accessible as it
//!    says, and shared memory of blocks is meanwhile accessed in blocks alone.
//! 2. A [`Thread`](blocks::Thread) is used by its own thread alone: its address is the thread's
//!    word of [`entry`]. No reference to it is kept across a call of the program's functions.
//! 3. Where [`again`](blocks::Thread::again) may be called, this library's frames own nothing.

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
