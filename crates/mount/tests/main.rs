//! Volumes through the kernel.

mod kills;
mod mounted;
mod support;
