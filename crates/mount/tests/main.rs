//! Volumes through the kernel.

mod calls;
mod git;
mod kills;
mod mounted;
mod support;
